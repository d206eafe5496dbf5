#!/bin/sh
# deb_copyright.sh FOLDER - prints debian/copyright of the grammars in FOLDER/node_modules, each with its own licence
set -eu
cd "$(dirname "$0")/../.."
folder=$1
texts=$(mktemp -d "${TMPDIR:-/tmp}/lode-copyright-XXXXXX")
trap 'rm -rf "$texts"' EXIT
tools/dist/grammar_licences.sh "$folder/node_modules" "$texts"

# FILES TEXT LICENCE
stanza() {
  echo
  echo "Files: $1"
  holders=$(sed -n 's/^ *Copyright *\(([cC])\|©\) *\(.*\)/\2/p; s/^ *Copyright *\([12][0-9].*\)/\1/p' "$2" | sed '2,$s/^/ /')
  echo "Copyright: ${holders:-its authors, whom its licence does not name}"
  case "$3" in
    Apache-2.0) printf 'License: Apache-2.0\n On Debian systems, the full text of the Apache License, version 2.0, is in\n /usr/share/common-licenses/Apache-2.0.\n' ;;
    *) echo "License: $3"; sed 's/[[:space:]]*$//; s/^$/./; s/^/ /' "$2" ;;
  esac
}
for name in $(tools/dist/grammar_packages.sh); do
  licence=$(sed -n 's/^ *"license": *"\(.*\)".*/\1/p' "$folder/node_modules/$name/package.json" | head -n 1 | sed 's/^MIT$/Expat/')
  text=$texts/$(echo "$name" | tr -d @ | tr / -).txt
  ! grep -q "Permission is hereby granted, free of charge" "$text" || licence=Expat # whatever the package calls it
  stanza "grammars/node_modules/$name/*" "$text" "$licence"
done
stanza "grammars/node_modules/tree-sitter/vendor/tree-sitter/lib/src/unicode/*" "$texts/tree-sitter-icu.txt" Unicode-DFS-2016
