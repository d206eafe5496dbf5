#!/bin/sh
# check-symbols.sh OUT VERSION - do the shared and the static library in OUT define exactly the global names that lode.h declares?
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d "${TMPDIR:-/tmp}/lode-symbols-XXXXXX")
trap 'rm -rf "$work"' EXIT
tools/public-names.sh >"$work/want"
nm -D --defined-only "$1/liblode.so.$2" | awk '$2 ~ /[TDBR]/ { print $3 }' | LC_ALL=C sort -u >"$work/shared"
nm -g --defined-only "$1/liblode.a" | awk 'NF == 3 { print $3 }' | LC_ALL=C sort -u >"$work/static"
if diff "$work/want" "$work/shared" && diff "$work/want" "$work/static"; then echo "1 passed, 0 failed"; else echo "0 passed, 1 failed"; exit 1; fi
