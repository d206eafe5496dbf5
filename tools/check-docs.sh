#!/bin/sh
# check-docs.sh - does what the documents name exist? In every Markdown file of the project except CHANGELOG.md, which tells of the past:
#
#   links           [text](path), from the file's folder
#   paths           src/..., test/..., tools/... and so on, from the top; * is a glob
#   `file.c`        a file of that name, in any folder
#   figures         each number of README's table of figures, rounded as it is there, on the page of bench/ that its row links to
#   `name_of_it`    a word of the sources; and every lode_... is one, in backquotes or not
#
# Names in capitals are placeholders (test_NAME).
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d "${TMPDIR:-/tmp}/lode-docs-XXXXXX")
trap 'rm -rf "$work"' EXIT

git ls-files >"$work/files"
docs=$(grep '\.md$' "$work/files" | grep -vE '^(deps|test/chunk|test/fixtures)/|^CHANGELOG\.md$')
# words of other projects, and what a build makes
cat >"$work/foreign" <<'EOF'
arch_prctl
fmt/core.h
i_size_read
lode/_abi.py
sqlite3_memory_used
tools/call
tools/list
EOF

# FILE:LINE KIND TEXT
# shellcheck disable=SC2086
awk '
  function each(line, pattern, kind, before, after,   text) {
    while (match(line, pattern)) {
      text = substr(line, RSTART + before, RLENGTH - before - after)
      if (text !~ /[A-Z][A-Z]/ || kind == "link" || text ~ /\.md$/) print FILENAME ":" FNR, kind, text
      line = substr(line, RSTART + RLENGTH - after)
    }
  }
  {
    each($0, "\\]\\([^)#:]+[)#]", "link", 2, 1)
    each(" " $0, "[^A-Za-z0-9_/.$~-](src|include|test|tools|bench|fuzz|docs|examples|mk|web|bindings)/[A-Za-z0-9_./*-]*[A-Za-z0-9_*]", "path", 1, 0)
    each($0, "`[A-Za-z0-9_/.*-]+[.](c|h|sh|py|awk|mk)`", "file", 1, 1)
    each($0, "`[a-z][a-z0-9]*(_[a-z0-9]+)+(`|[(][)]`)", "word", 1, 1)
    each(" " $0 " ", "[^A-Za-z0-9_/.-]lode_[a-z0-9_]*[a-z0-9][^A-Za-z0-9_.*-]", "word", 1, 1)
  }' $docs >"$work/named"

# every word of the sources
grep -vE '\.(md|svg|png)$|^(deps|models)/' "$work/files" | tr '\n' '\0' | xargs -0 cat 2>/dev/null | LC_ALL=C tr -cs 'A-Za-z0-9_' '\n' >"$work/words"
sed -e 's#.*/##' -e 's/[.].*//' "$work/files" >>"$work/words" # programs and scripts
sort -u -o "$work/words" "$work/words"
sed 's#.*/##' "$work/files" | sort -u >"$work/names"

exists() {
  case "$1" in
    link) [ -e "$(dirname "${2%:*}")/$3" ] ;;
    path) set -- $3 && [ -e "$1" ] ;;
    file) case "$3" in *'*'*) grep -qx "$(echo "${3##*/}" | sed -e 's/[.]/[.]/g' -e 's/[*]/.*/g')" "$work/names" ;; *) grep -qxF "${3##*/}" "$work/names" ;; esac ;;
    word) grep -qxF "$3" "$work/words" ;;
  esac
}
bad=0
while read -r where kind text; do
  text=${text%"()"}
  grep -qxF "$text" "$work/foreign" || exists "$kind" "$where" "$text" || { echo "$where: there is no $text"; bad=$((bad + 1)); }
done <"$work/named"
awk '
  function number(text) { gsub(/,/, "", text); return text }
  function places(n) { return index(n, ".") ? length(n) - index(n, ".") : 0 }
  function rounded(value, n) { return sprintf("%." places(n) "f", value + 1e-9) }
  function next_number() {
    if (!match(text, /[0-9][0-9,]*(\.[0-9]+)?/)) return ""
    found = number(substr(text, RSTART, RLENGTH))
    text = substr(text, RSTART + RLENGTH)
    return found
  }
  function holds(page, n,   line, all, is) {
    all = text
    while ((getline line < page) > 0) for (text = line; next_number() != "";) if (rounded(found, n) == n) is = 1
    close(page)
    text = all
    return is
  }
  BEGIN { FS = "|" }
  /^\|.*`make bench/ {
    page = match($5, /bench\/[A-Z]+\.md/) ? substr($5, RSTART, RLENGTH) : ""
    text = $4
    if (page == "") print FILENAME ":" FNR ": the row links to no page of bench/"
    else while ((n = next_number()) != "") if (!holds(page, n)) print FILENAME ":" FNR ": " n " is not in " page
  }' README.md >"$work/figures"
cat "$work/figures"
bad=$((bad + $(wc -l <"$work/figures")))
grep -q '^|.*`make bench' README.md || { echo "README.md: there is no table of figures"; bad=$((bad + 1)); }
if [ "$bad" = 0 ]; then echo "1 passed, 0 failed"; else echo "0 passed, 1 failed"; exit 1; fi
