# docs_blocks.awk - takes the code blocks out of Markdown files: awk -v to=FOLDER -f docs_blocks.awk FILE...
#
# A block is fenced, or indented by four spaces after an empty line; indented ones are shell. Block N becomes to/N, and a line of standard output:
#
#   N FILE:LINE LANGUAGE OPTIONS
#
# The options stand in a comment before the block, which readers do not see:
#
#   <!-- test: SCENE... exit=N file=NAME WORD=TEXT -->   how it is run (test/shell/docs.sh)
#   <!-- elsewhere: FILE -->                             the test that runs it, because it takes long
#   <!-- skip: REASON -->                                why it cannot be
#   <!-- text -->                                        an indented block that is no command
function begin(language) {
  n++
  if (kind == "skip" || kind == "elsewhere") language = kind
  if (kind == "text") language = "text"
  print n, FILENAME ":" FNR, language, options
  printf "" >(to "/" n)
  kind = options = ""
}
function end() { if (n) close(to "/" n) }

FNR == 1 { fenced = indented = list = 0; empty = 1; kind = options = "" }
fenced && /^ *```/ { fenced = 0; empty = 0; end(); next }
fenced { print >(to "/" n); next }
/^```/ { fenced = 1; indented = 0; begin(substr($0, 4) == "" ? "none" : substr($0, 4)); next }
/^<!-- (test|elsewhere|skip|text)[ :]/ {
  kind = $2
  sub(/:$/, "", kind)
  options = $0
  sub(/^<!-- [a-z]*:? */, "", options)
  sub(/ *-->$/, "", options)
  next
}
/^    / && !list && (empty || indented) {
  if (!indented) begin("sh")
  indented = 1
  print substr($0, 5) >(to "/" n)
  next
}
/^[ \t]*$/ { if (indented) { print "" >(to "/" n) }; empty = 1; next }
{
  if (indented) end()
  indented = empty = 0
  if ($0 !~ /^ /) list = /^([-*]|[0-9]+\.) /
  if (kind != "") { kind = options = "" }
}
