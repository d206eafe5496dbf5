#!/bin/sh
# sources.sh - prints a sum of everything that the self-contained programs are made of, but for what deps/dist/sources.txt pins
# sources.sh check FILE... - do these files, each written when a program was built, have the sum of today's sources? What is packed must be of one
# state: a library that is older than its header lacks functions, or takes other structs.
set -eu
cd "$(dirname "$0")/../.."
sum=$(find include src web deps/dist deps/grammars mk/build.mk mk/dist.mk tools/dist/static tools/dist/config tools/dist/libs.mk tools/dist/grammars.mk \
  -type f | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -d' ' -f1)
[ "${1:-}" = check ] || { echo "$sum"; exit 0; }
shift
for file in "$@"; do
  [ "$(cat "$file" 2>/dev/null)" != "$sum" ] || continue
  echo "dist: ${file%.sources} is of other sources than those here: make dist builds it again" >&2
  exit 1
done
