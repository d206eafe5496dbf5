#!/bin/sh
# quickstart.sh LODE - makes a store of real text (this project's own sources and documents) and searches it.
set -eu
lode=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")/.."
store=${LODE_QUICKSTART_STORE:-build/quickstart}
export LC_ALL=C

show() {
  printf '\n$ lode'
  for word in "$@"; do
    case $word in *[\ \{\"\$]*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
  done
  printf '\n'
  "$lode" "$@" --store "$store"
}

rm -rf "$store"
echo "A store of this project's own sources and documents, in $store:"
show db create source --counters kind
echo
echo '$ awk -f tools/chunk.awk README.md docs/*.md include/*.h src/*/*.[ch] | lode db add source'
awk -f tools/chunk.awk README.md docs/*.md include/*.h src/*/*.[ch] | "$lode" db add source --store "$store"
show db query source --text 'step aside when somebody waits' -k 3
show db query source --text 'checksum of a page' --where '{"kind":"c"}' --where-document '{"$regex":"crc32c?\\("}' -k 2
show db facets source kind
show db verify
show db stats
echo
echo "That was Lode. Next: \`$1 db --help\`, README.md, \`make test\`."
