#!/bin/sh
# grammar_packages.sh - prints the npm packages that lode-parser is made of: tree-sitter and those of deps/grammars/grammars.txt
set -eu
cd "$(dirname "$0")/../.."
{ echo tree-sitter; sed -n 's/^[a-z][^ ]* \(\(@[^/]*\/\)\{0,1\}[^/]*\)\/.*/\1/p' deps/grammars/grammars.txt; } | LC_ALL=C sort -u
