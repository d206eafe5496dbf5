#!/bin/sh
# picture.sh LODE - makes docs/picture.svg of the README: real commands and their answers, on a copy of this project's sources.
set -eu
lode=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")/.."
here=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp -r src include "$dir"
cd "$dir"
export LC_ALL=C.UTF-8 LODE_PAGER=
run() {
  printf '$ lode'
  for word in "$@"; do
    case $word in *[\ \{\"]*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
  done
  echo
  "$lode" "$@" --color always 2>&1 | sed "s|$dir|~/lode|g" | head -"$most" || true
  echo
}
{
  most=30
  run index
  run search 'verify the checksum of a page' -n 1
  run search json_parse --type function -n 1
  most=7
  run callers json_parse --depth 2
  # one byte in the middle of the database
  printf '\377' | dd of=.lode/lode.db bs=1 seek=$((40 * 16384 + 9000)) conv=notrunc 2>/dev/null
  echo '$ # a byte rots on the disk'
  most=4
  run db verify
} | awk -v most=110 -f "$here/tools/terminal-svg.awk" >"$here/docs/picture.svg"
