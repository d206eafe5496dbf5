#!/bin/bash
# examples.sh LODE - every example is built or run, and says what it should.
set -u
lode=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")/../.." || exit 1
tmp=$(mktemp -d "${TMPDIR:-/tmp}/lode-examples-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
export HOME=$tmp XDG_DATA_HOME=$tmp/data
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() { echo "FAIL: $*"; failed=$((failed + 1)); }
skip() { echo "skipped: $*"; skipped=$((skipped + 1)); }

mkdir "$tmp/bin"
ln -s "$lode" "$tmp/bin/lode"
[ ! -x "$(dirname "$lode")/lode-parser" ] || ln -s "$(dirname "$lode")/lode-parser" "$tmp/bin/lode-parser"
export PATH=$tmp/bin:$PATH
want='e 0.000 due east
ne 0.293 in between'

# C, against the static library as it is installed
# shellcheck disable=SC2046
if [ ! -f "$(dirname "$lode")/liblode.a" ]; then
  skip "notes.c: no liblode.a beside the program"
elif ${CC:-cc} -std=c11 -Wall -Wextra -Werror -Iinclude -o "$tmp/notes" examples/notes.c "$(dirname "$lode")/liblode.a" \
  $(pkg-config --libs sqlite3 libpcre2-8 libutf8proc) -lpthread -lm -ldl; then
  out=$("$tmp/notes" "$tmp/c" 2>&1)
  [ "$out" = "$want" ] && ok || bad "notes.c: $out"
else
  bad "notes.c does not compile"
fi

if command -v python3 >/dev/null; then
  mkdir "$tmp/package" && cp -r bindings/python/lode "$tmp/package/lode"
  python3 bindings/python/abi.py include/lode.h >"$tmp/package/lode/_abi.py" || bad "abi.py"
  out=$(PYTHONPATH=$tmp/package LODE_LIBRARY=${LODE_LIBRARY:-$(dirname "$lode")/liblode.so} python3 examples/notes.py "$tmp/py" 2>&1)
  [ "$out" = "$want" ] && ok || bad "notes.py: $out"
else
  skip "notes.py: no python3"
fi

if command -v curl >/dev/null; then
  out=$(examples/notes-http.sh "$tmp/http" 2>&1)
  case $out in *'"id":"e","distance":0.0,'*'"id":"ne"'*) ok ;; *) bad "notes-http.sh: $out" ;; esac
else
  skip "notes-http.sh: no curl"
fi

mkdir -p "$tmp/project/.git"
printf 'int parse_header_line(const char *p) { return *p; }\n' >"$tmp/project/header.c"
lode index "$tmp/project" --quiet >/dev/null 2>"$tmp/log" || cat "$tmp/log"
out=$(examples/search-mcp.sh "$tmp/project" "parse header line" 2>&1)
case $out in *parse_header_line*) ok ;; *) bad "search-mcp.sh: $out" ;; esac

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
