#!/bin/sh
# check-clang.sh - does everything compile with clang too, without a warning? Warnings are errors with the versions that CI knows.
set -eu
cd "$(dirname "$0")/.."
flags=$(pkg-config --cflags sqlite3 libpcre2-8 libutf8proc)
sources=$(ls src/*/*/*.c)
# lode-parser needs the source of tree-sitter, which `make grammars` fetches
ts=build/grammars/npm/node_modules/tree-sitter/vendor/tree-sitter/lib/include
if [ -d "$ts" ]; then flags="$flags -isystem $ts"; else sources=$(ls src/*/*/*.c | grep -v ^src/app/parser/); fi
check() { # the dialect first. In C23 a lode_status that is ignored is a warning, also that of a static function (lode.h)
  dialect=$1
  shift
  # shellcheck disable=SC2046,SC2086
  clang -std="$dialect" -D_GNU_SOURCE -Iinclude -Isrc/lib -Isrc/app -Itest -ffp-contract=off -O1 $(tools/werror.sh clang) -Wall -Wextra -Wshadow -Wvla \
    -Wstrict-prototypes -Wmissing-prototypes -fsyntax-only $flags "$@"
}
# Benchmarks and training tools, but for the one that needs a library of its own
others=$(ls bench/*.c bench/code/*.c bench/quality/*.c bench/cluster/*.c tools/train/*.c | grep -v tools/train/train.c)
# dist_trace.c is for the C library of self-contained programs. The program as it is shipped; tests are compiled only with the checked build, like what it alone has of the program
# shellcheck disable=SC2046,SC2086
if check c2x $sources && check c11 -Ibench $others && check c11 -DLODE_CHECKED $(grep -l LODE_CHECKED src/*/*/*.c) $(ls test/*/*.c | grep -v "^test/chunk/\|^test/outside/\|^test/parity/\|^test/shell/dist_"); then
  echo "1 passed, 0 failed"
else
  echo "0 passed, 1 failed"; exit 1
fi
