#!/bin/sh
# picture.sh LODE - makes docs/picture.svg of the README: real commands, real answers, on the store of the quick start.
set -eu
lode=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")/.."
store=$(mktemp -d)/store
trap 'rm -rf "$(dirname "$store")"' EXIT
LODE_QUICKSTART_STORE=$store tools/quickstart.sh "$lode" >/dev/null
run() {
  printf '$ lode'
  for word in "$@"; do
    case $word in *[\ \{\"]*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
  done
  echo
  "$lode" "$@" --store "$store" --color always
  echo
}
{
  run db query source --text 'kill -9 between steps' -k 2
  run db query source --text checkNameOfRecord --where '{"path":{"$in":["src/core/core.h","src/store/store.h"]}}' -k 1
  run db facets source kind
  # one flipped bit in the middle of the truth
  page=40
  printf '\377' | dd of="$store/lode.db" bs=1 seek=$((page * 16384 + 9000)) conv=notrunc 2>/dev/null
  echo '$ # one bit rots on the disk'
  run db count source
  echo '$ lode db verify'
  "$lode" db verify --store "$store" --color always 2>&1 | sed "s|$store|.lode|" | head -4 || true
} | cut -c1-140 | awk -f tools/terminal-svg.awk >docs/picture.svg
