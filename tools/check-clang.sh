#!/bin/sh
# check-clang.sh - does everything compile with clang too, without a warning?
set -eu
cd "$(dirname "$0")/.."
flags=$(pkg-config --cflags sqlite3 libpcre2-8 libutf8proc)
# shellcheck disable=SC2086
if clang -std=c11 -D_GNU_SOURCE -Iinclude -Isrc -ffp-contract=off -O1 -Wall -Wextra -Werror -Wshadow -Wvla -Wstrict-prototypes \
  -Wmissing-prototypes -fsyntax-only $flags src/*/*.c test/*.c; then
  echo "1 passed, 0 failed"
else
  echo "0 passed, 1 failed"; exit 1
fi
