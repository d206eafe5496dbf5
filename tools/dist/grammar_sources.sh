#!/bin/sh
# grammar_sources.sh MODULES OUT - the C sources of tree-sitter and of the grammars, with their licences, as OUT/node_modules: what a build
# without a network starts from (tools/grammars.sh)
set -eu
cd "$(dirname "$0")/../.."
out=$(realpath -m "$2")
mkdir -p "$out/node_modules"
packages=$(tools/dist/grammar_packages.sh)
cd "$1"
for package in $packages; do
  find "$package" \( -name node_modules -o -name bindings -o -name prebuilds -o -name test -o -path tree-sitter/src \) -prune -o -type f \
    \( -name '*.[ch]' -o -iname 'licen[sc]e*' -o -iname copying -o -path "$package/package.json" \) -print
done | xargs cp --parents -t "$out/node_modules"
: >"$out/complete"
