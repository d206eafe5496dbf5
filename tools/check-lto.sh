#!/bin/sh
# check-lto.sh [SOURCES] - do all files of the library agree about the types of what they share? gcc compares them when it links with -flto.
# Without SOURCES: all of src/lib.
set -eu
cd "$(dirname "$0")/.."
command -v gcc >/dev/null || { echo "skipped: gcc is not installed"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
work=$(mktemp -d "${TMPDIR:-/tmp}/lode-lto-XXXXXX")
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- src/lib/*/*.c
for source; do echo "$source"; done | work="$work" flags=$(pkg-config --cflags sqlite3 libpcre2-8 libutf8proc) xargs -P2 -n8 sh -c '
  for source; do
    gcc -std=c11 -D_GNU_SOURCE -Iinclude -Isrc/lib $flags -O1 -w -flto -fPIC -c -o "$work/$(echo "$source" | tr / -).o" "$source" || exit 255
  done' -
# shellcheck disable=SC2046
if gcc -shared -O1 -flto=2 -Wlto-type-mismatch -Werror -o "$work/lode.so" "$work"/*.o $(pkg-config --libs sqlite3 libpcre2-8 libutf8proc) -lpthread -lm -ldl; then
  echo "1 passed, 0 failed"
else
  echo "0 passed, 1 failed"; exit 1
fi
