#!/bin/sh
# grammar_licences.sh MODULES OUT - the licence of tree-sitter and of each grammar as OUT/PACKAGE.txt. A package without a text of its licence gets
# the name that its package.json has.
set -eu
cd "$(dirname "$0")/../.."
modules=$1 out=$2
mkdir -p "$out"
for name in $(tools/dist/grammar_packages.sh); do
  to=$out/$(echo "$name" | tr -d @ | tr / -).txt
  file=$(find "$modules/$name" -maxdepth 1 \( -iname 'licen[sc]e*' -o -iname copying \) | LC_ALL=C sort | head -n 1)
  if [ -n "$file" ]; then
    install -m 644 "$file" "$to"
  else
    sed -n 's/^ *"license": *"\(.*\)".*/\1, as its package.json says; the package has no text of it./p' "$modules/$name/package.json" >"$to"
  fi
  [ -s "$to" ] || { echo "licences: $name has none" >&2; exit 1; }
done
install -m 644 "$modules/tree-sitter/vendor/tree-sitter/lib/src/unicode/LICENSE" "$out/tree-sitter-icu.txt"
