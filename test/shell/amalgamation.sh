#!/bin/bash
# amalgamation.sh OUT - the library as two C files (tools/amalgamation.sh): plain `cc -O2` by gcc and clang compiles it, it defines no
# names but its own, and the tests of the API and those of the known bits of the kernels pass with it. OUT: build/release.
set -u
cd "$(dirname "$0")/../.." || exit 1
tmp=$(mktemp -d "${TMPDIR:-/tmp}/lode-amalgamation-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0 skipped=0
check() { # text command...
  local text=$1; shift
  if "$@" >"$tmp/log" 2>&1; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL: $text"; tail -n 20 "$tmp/log"; fi
}
libs="$(pkg-config --libs sqlite3 libpcre2-8 libutf8proc) -lpthread -lm -ldl"
check "it is written" env LODE_LIB="$1/inside/lib.a" tools/amalgamation.sh "$tmp"

compile() { # compiler folder
  mkdir -p "$tmp/$2"
  for f in lode lode_gemm; do $1 -O2 -c -o "$tmp/$2/$f.o" "$tmp/$f.c" || return 1; done
}
only_own_names() { ! nm -g --defined-only "$tmp/$1"/*.o | awk 'NF == 3 && $3 !~ /^lode_/ { print; found = 1 } END { exit !found }'; }
run_test() { # compiler folder test source
  # shellcheck disable=SC2086
  $1 -std=c11 -D_GNU_SOURCE -O1 -w -include "$tmp/names.h" -Iinclude -Isrc/lib -Isrc/app -Itest -o "$tmp/$2/$3" "$4" \
    test/support/test.c "$tmp/$2"/*.o $libs && "$tmp/$2/$3"
}
for compiler in gcc clang; do
  if ! command -v $compiler >/dev/null; then
    echo "skipped: $compiler is not installed"; skipped=$((skipped + 1)); continue
  fi
  check "$compiler -O2 compiles it" compile $compiler $compiler
  check "$compiler: all global names begin with lode_" only_own_names $compiler
  for t in engine/test_api engine/test_api_read engine/test_api_streams index/test_kernel index/test_quant; do
    check "$compiler: $t" run_test $compiler $compiler "$(basename $t)" "test/$t.c"
  done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
