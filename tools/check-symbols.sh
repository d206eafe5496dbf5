#!/bin/sh
# check-symbols.sh LIB - does the shared library export exactly what lode.h declares?
set -eu
cd "$(dirname "$0")/.."
want=$(mktemp) have=$(mktemp)
trap 'rm -f "$want" "$have"' EXIT
tr '\n' ' ' <include/lode.h | sed 's/;/;\n/g' | sed -n 's/.*LODE_API[^(]*[ *]\(lode_[a-z0-9_]*\)(.*/\1/p' | sort -u >"$want"
nm -D --defined-only "$1" | awk '$2 ~ /[TDBR]/ { print $3 }' | sort -u >"$have"
if diff "$want" "$have"; then echo "1 passed, 0 failed"; else echo "0 passed, 1 failed"; exit 1; fi
