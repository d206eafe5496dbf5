#!/bin/sh
# make-store-seeds.sh PROGRAM - rebuilds fuzz/seeds/store: small stores of 512-byte pages in the form that fuzz_store.c reads.
#   plain        as it is on disk         sealed   the same, to be given valid page checksums after each mutation
#   interrupted  killed while a commit was written: a database file and its hot journal (strace does the killing)
set -eu
program=$(realpath "$1")
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
lode() { "$program" db "$@" --store "$work/store" --quiet; }

records() { # FROM TO
  i=$1
  while [ "$i" -le "$2" ]; do
    printf '{"id":"r%d","document":"document %d about getUserName","metadata":{"n":%d,"tags":["t"]},"embedding":[%d,1]}\n' "$i" "$i" "$i" "$i"
    i=$((i + 1))
  done
}

byte() { printf "\\$(printf '%03o' "$1")"; }

seed() { # FLAGS NAME
  journal=$work/store/lode.db-journal size=0
  [ ! -s "$journal" ] || size=$(stat -c %s "$journal")
  { byte "$1"; for shift in 0 8 16 24; do byte $((size >> shift & 255)); done
    cat "$work/store/lode.db"; [ "$size" = 0 ] || cat "$journal"; } >"fuzz/seeds/store/$2"
}

mkdir -p fuzz/seeds/store
lode create things --metric l2 --page-bytes 512
records 1 8 | lode add things
lode optimize
lode delete things --ids r3
records 9 10 | lode add things
seed 0 plain
seed 1 sealed
records 11 14 >"$work/more"
# the third write to the database file of this commit never happens
strace -f -o /dev/null -P "$work/store/lode.db" -e trace=pwrite64 -e inject=pwrite64:signal=KILL:when=3 \
  "$program" db add things --store "$work/store" --quiet <"$work/more" || true
[ -s "$work/store/lode.db-journal" ] || { echo "no journal was left" >&2; exit 1; }
seed 0 interrupted
ls -l fuzz/seeds/store
