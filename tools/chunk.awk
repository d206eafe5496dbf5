# chunk.awk - texts to JSON lines: each run of lines between blank ones becomes a record with its path and line.
# Usage: awk -f chunk.awk FILE...
function quote(s) {
  gsub(/\\/, "\\\\\\\\", s); gsub(/"/, "\\\\\"", s); gsub(/\t/, "\\\\t", s); gsub(/\r/, "", s); gsub(/[\001-\037]/, " ", s)
  return "\"" s "\""
}
function flush_chunk(   path, ext) {
  if (n > 0) {
    path = file; ext = path; sub(/.*\./, "", ext); sub(/\\n$/, "", body)
    printf "{\"id\":%s,\"document\":\"%s\",\"metadata\":{\"path\":%s,\"line\":%d,\"kind\":%s}}\n", quote(path ":" first), body, quote(path), first, quote(ext)
  }
  n = 0; body = ""
}
FNR == 1 { flush_chunk(); file = FILENAME; sub(/^\.\//, "", file) }
/^[ \t]*$/ && n > 2 { flush_chunk(); next }
/^[ \t]*$/ { next }
{ if (n == 0) first = FNR; line = quote($0); body = body substr(line, 2, length(line) - 2) "\\n"; n++ }
n >= 40 { flush_chunk() }
END { flush_chunk() }
