#!/bin/bash
# against.sh REV [--quick] - what a change costs: the same programs of bench/ built from revision REV and from this tree, run in turns. Writes
# build/bench/against.md. Keep the machine quiet meanwhile; counts of instructions hold on a busy one, too.
#
#   single adds, batches of 1,000, warm queries, `lode db count` of a large store (which is mostly opening it): the best of each round's times
#   instructions inside lode_add() for single adds and for batches, where valgrind is installed. It counts a copied byte as one.
#
# LODE_BENCH_DIR: where the stores are made (build/bench/work); the times hold for the disk under it.
set -u
cd "$(dirname "$0")/.." || exit 1
revision=${1:?usage: bench/against.sh REV [--quick]}
rounds=5 adds=2000 rows=50000 large=1000000 count_adds=300 count_rows=3000
if [ "${2:-}" = --quick ]; then rounds=2 adds=100 rows=2000 large=5000 count_adds=50 count_rows=1000; fi
out=$PWD/build/bench
work=${LODE_BENCH_DIR:-$out/work}
then=$out/against
mkdir -p "$work" "$out"

say() { echo "against: $*" >&2; }
# programs TREE BIN: builds lode and the programs of TREE
programs() (
  cd "$1" || exit 1
  mkdir -p "$2" build
  [ -e build/grammars ] || ln -s "$out/../grammars" build/grammars
  ${MAKE:-make} -j2 all >"$2/log" 2>&1 || { tail -n 5 "$2/log" >&2; exit 1; }
  libs=$(pkg-config --libs sqlite3 libpcre2-8 libutf8proc)
  lib=build/release/inside/lib.a
  [ -e $lib ] || lib=build/release/liblode.a # 0.1.0
  for name in adds ingest query process; do
    # shellcheck disable=SC2086
    ${CC:-cc} -std=c11 -D_GNU_SOURCE -Iinclude -Isrc -Isrc/lib -Isrc/app -Ibench -g -O2 -ffp-contract=off \
      -o "$2/bench_$name" "bench/bench_$name.c" bench/common.c $lib $libs -lpthread -lm || exit 1
  done
  cp build/release/lode "$2/lode"
)
say "building $revision and this tree"
rm -rf "$then"
mkdir -p "$then/tree"
git archive "$revision" | tar -xf - -C "$then/tree" || exit 1
programs "$then/tree" "$then/before" || exit 1
programs "$PWD" "$then/now" || exit 1

# figure SIDE NAME VALUE
: >"$then/figures"
figure() { echo "$*" >>"$then/figures"; }
# one SIDE: a round of all programs
one() {
  local bin=$then/$1 folder=$work/against-$1
  rm -rf "$folder"
  figure "$1" single_adds_ms "$("$bin/bench_adds" x "$folder" $adds | awk '$1 == "x.median_ms" {print $2}')"
  rm -rf "$folder"
  figure "$1" batches_s "$("$bin/bench_ingest" x "$folder" $rows | awk '$1 == "x.seconds" {print $2}')"
  rm -rf "$folder"
  figure "$1" query_ms "$("$bin/bench_query" x "$folder" $rows 40 | awk '$1 == "x.median_ms" {print $2}')"
  rm -rf "$folder"
}
# opens SIDE: the time of `lode db count` on a large store
opens() {
  figure "$1" count_ms "$("$then/$1/bench_process" x 50 $large "$then/$1/lode" db count bench --store "$work/against-large-$1" | awk '$1 == "x.median_ms" {print $2}')"
}
# instructions SIDE
instructions() {
  local bin=$then/$1 inside=lode_add
  nm "$bin/bench_adds" | grep -q ' lode_add_sized$' && inside=lode_add_sized
  for what in "adds $count_adds" "ingest $count_rows"; do
    # shellcheck disable=SC2086
    set -- "$1" $what
    rm -rf "$work/against-count"
    figure "$1" "instructions_$2" "$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=$inside "$bin/bench_$2" x \
      "$work/against-count" "$3" 2>&1 | awk '/Collected/ {print $NF}')"
  done
  rm -rf "$work/against-count"
}

for side in before now; do
  say "a store of $large records ($side)"
  rm -rf "$work/against-large-$side"
  "$then/$side/bench_ingest" x "$work/against-large-$side" $large >"$then/large" || exit 1
done
for round in $(seq $rounds); do
  say "round $round of $rounds"
  for side in before now; do one $side; done
  for side in before now; do opens $side; done
done
if command -v valgrind >"$then/valgrind"; then
  for side in before now; do instructions $side; done
else
  say "instructions are not counted: valgrind is not installed"
fi
rm -rf "$work"/against-large-*
{
  echo "# $revision and $(git describe --always --dirty), $(date -u +%F), load average $(cut -d ' ' -f 1 /proc/loadavg)"
  echo
  echo "| figure | before | now | now / before |"
  echo "|---|---|---|---|"
  awk '$3 != "" { k = $1 " " $2; if (!(k in best) || $3 < best[k]) best[k] = $3; if (!($2 in seen)) order[++n] = $2; seen[$2] }
    END { for (i = 1; i <= n; i++) { b = best["before " order[i]]; c = best["now " order[i]]; if (b > 0) printf "| %s | %s | %s | %.3f |\n", order[i], b, c, c / b } }' \
    "$then/figures"
} | tee "$out/against.md"
