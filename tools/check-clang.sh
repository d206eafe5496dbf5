#!/bin/sh
# check-clang.sh - does everything compile with clang too, without a warning?
set -eu
cd "$(dirname "$0")/.."
# Warnings are errors with the versions that CI knows
flags=$(pkg-config --cflags sqlite3 libpcre2-8 libutf8proc)
# lode-parser needs the source of tree-sitter, which `make grammars` fetches
ts=build/grammars/npm/node_modules/tree-sitter/vendor/tree-sitter/lib/include
sources=$(ls src/*/*.c test/*.c)
if [ -d "$ts" ]; then flags="$flags -isystem $ts"; else sources=$(ls src/*/*.c test/*.c | grep -v ^src/parser/); fi
# shellcheck disable=SC2086
if clang -std=c11 -D_GNU_SOURCE -Iinclude -Isrc -ffp-contract=off -O1 $(tools/werror.sh clang) -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes \
  -Wmissing-prototypes -fsyntax-only $flags $sources; then
  echo "1 passed, 0 failed"
else
  echo "0 passed, 1 failed"; exit 1
fi
