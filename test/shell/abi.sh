#!/bin/bash
# abi.sh OUT - programs compiled with another lode.h than the library: one whose structs have fewer fields and one whose structs have
# more, both made from today's, work with it, and no byte after their structs is read or written. OUT: build/asan.
set -u
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.." || exit 1
tmp=$(mktemp -d "${TMPDIR:-/tmp}/lode-abi-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0 skipped=0
check() { # text command...
  local text=$1; shift
  if "$@" >"$tmp/log" 2>&1; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL: $text"; tail -n 20 "$tmp/log"; fi
}
# Structs that pass the boundary with their size, and how many of their last fields an older header lacks
structs='lode_open_options=1 lode_collection_options=2 lode_replacement=0 lode_record=2 lode_write_result=1 lode_get_request=1
  lode_query_request=1 lode_stats=2 lode_salvage_report=1 lode_import_request=1 lode_import_report=1 lode_embedder_options=1
  lode_reembed_request=0 lode_reembed_report=1'

# A header whose structs are changed: by how many fields less, or which one is added
header() { # folder drop|add
  mkdir -p "$tmp/$1"
  cc -fpreprocessed -dD -E -P include/lode.h | awk -v structs="$structs" -v how="$2" '
    BEGIN { n = split(structs, list, /[ \n]+/); for (i = 1; i <= n; i++) if (split(list[i], w, "=") == 2) less[w[1]] = w[2] }
    $1 == "typedef" && $2 == "struct" && $4 == "{" && ($3 in less) { print; inside = $3; fields = ""; next }
    inside != "" && $1 == "}" {
      n = split(fields, field, ";") - 1
      for (i = 1; i <= n - (how == "drop" ? less[inside] : 0); i++) print field[i] ";"
      if (how == "add") print "  uint64_t added[3];"
      inside = ""
      changed++
    }
    inside != "" { fields = fields $0; next }
    { print }
    END { for (i in less) want++; exit changed != want }' >"$tmp/$1/lode.h"
}
# Every struct of a _sized function must be in the list
for name in $(tr -s ' \n' ' ' <include/lode.h | sed 's/;/;\n/g' | grep -o 'LODE_API [^;]*_sized([^;]*' | grep -oE 'lode_[a-z_]+ \*[a-z]+, size_t [a-z]+_size' | cut -d' ' -f1 | sort -u); do
  check "$name is tried" grep -q "$name=" <<<"$structs"
done

caller() { # name flags...
  local name=$1; shift
  # shellcheck disable=SC2046
  cc -std=c11 -Wall -Wextra -Werror -g -fsanitize=address,undefined -fno-sanitize-recover=all "$@" -o "$tmp/$name-caller" \
    test/engine/abi_caller.c "$out/inside/lib.a" $(pkg-config --libs sqlite3 libpcre2-8 libutf8proc) -lpthread -lm -ldl &&
    "$tmp/$name-caller" "$tmp/$name-store"
}
check "today's header" caller today -Iinclude
check "an older header is made" header shorter drop
check "a newer header is made" header longer add
check "a program with an older header" caller shorter -DSHORTER -I"$tmp/shorter"
check "a program with a newer header" caller longer -DLONGER -I"$tmp/longer"

# The header itself, in the languages that read it
echo '#include <lode.h>' >"$tmp/use.c"
check "C99, pedantic" cc -std=c99 -pedantic -Wall -Wextra -Werror -Wredundant-decls -Iinclude -fsyntax-only "$tmp/use.c"
if command -v c++ >/dev/null; then
  check "C++" c++ -x c++ -std=c++11 -pedantic -Wall -Wextra -Werror -Iinclude -fsyntax-only "$tmp/use.c"
else
  echo "skipped: there is no C++ compiler"; skipped=$((skipped + 1))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
