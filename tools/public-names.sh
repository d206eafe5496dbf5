#!/bin/sh
# public-names.sh - prints the functions that lode.h declares, which are all that the library exports
set -eu
cd "$(dirname "$0")/.."
tr '\n' ' ' <include/lode.h | sed 's/;/;\n/g' | sed -n 's/.*LODE_API[^(]*[ *]\(lode_[a-z0-9_]*\)(.*/\1/p' | LC_ALL=C sort -u
