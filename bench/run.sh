#!/bin/sh
# run.sh - all figures of the store, beside its peers in the same run; writes bench/RESULTS.md.
#
#   bench/run.sh              everything; keep the machine quiet meanwhile
#   bench/run.sh --quick      small sizes, to try the scripts; writes build/bench/RESULTS.md, which proves nothing
#   bench/run.sh --no-peers   without LanceDB and Chroma
#
# LODE_BENCH_DIR: where the stores are made (build/bench/work); the figures hold for the disk under it.
# Programs print lines "name value", collected in build/bench/figures.txt and made into the table by report.awk.
# A slow figure is reported and never fails the run; a program that fails is named in the table.
set -u
cd "$(dirname "$0")/.." || exit 1

quick=0 peers=1
for arg; do
  case $arg in
    --quick) quick=1 ;;
    --no-peers) peers=0 ;;
    *) sed -n '2,11s/^# \{0,1\}//p' bench/run.sh; exit 2 ;;
  esac
done

out=build/bench
bin=$out/bin
work=${LODE_BENCH_DIR:-$out/work}
figures=$out/figures.txt
lode=build/release/lode
command="bench/run.sh${*:+ $*}"

if [ $quick = 1 ]; then
  results=$out/RESULTS.md
  rounds=2 rows=5000 chroma_rows=2000 adds=200 delete_rows=8000 delete_paths=990 small=1000 large=10000 runs=20
  seconds=2 query_rounds=5 need_gb=1
else
  results=bench/RESULTS.md
  rounds=3 rows=100000 chroma_rows=20000 adds=5000 delete_rows=256000 delete_paths=31985 small=10000 large=1000000 runs=200
  seconds=10 query_rounds=40 need_gb=15
fi

say() { echo "bench: $*" >&2; }
figure() { echo "$*" >> "$figures"; }
# What the peers write may still be on its way to the disk: never let one program pay for another
settle() { sync; sleep 1; }
fresh() { rm -rf "${work:?}/$1"; echo "$work/$1"; }

# measure NAME COMMAND... : its output becomes figures
measure() {
  name=$1
  shift
  say "$name"
  settle
  if ! "$@" >> "$figures"; then
    say "$name failed"
    figure "failed $name"
  fi
}

programs() {
  ${MAKE:-make} all || exit 1
  mkdir -p $bin
  libs=$(pkg-config --libs sqlite3 libpcre2-8 libutf8proc) || exit 1
  for source in bench/bench_*.c; do
    # shellcheck disable=SC2086
    ${CC:-cc} -std=c11 -D_GNU_SOURCE -Iinclude -Isrc/lib -Isrc/app -Ibench -g -O2 -ffp-contract=off -Wall -Wextra \
      -o "$bin/$(basename "$source" .c)" "$source" bench/common.c build/release/inside/lib.a $libs -lpthread -lm || exit 1
  done
}

# Sets lance and chroma to 1 where they can be measured; says why where they cannot.
install_peers() {
  lance=0 chroma=0
  if [ $peers = 0 ]; then
    figure "skipped LanceDB and Chroma: --no-peers"
    return
  fi
  if ! command -v node > /dev/null || ! command -v npm > /dev/null; then
    figure "skipped LanceDB and Chroma: they need node and npm (Debian packages nodejs and npm)"
    say "LanceDB and Chroma are skipped: install the Debian packages nodejs and npm"
    return
  fi
  if [ ! bench/peers/node_modules/.package-lock.json -nt bench/peers/package-lock.json ]; then
    say "installing @lancedb/lancedb and chromadb (npm, as pinned by bench/peers/package-lock.json) into bench/peers/node_modules"
    (cd bench/peers && npm install --no-save && touch node_modules/.package-lock.json) >&2
  fi
  if node --input-type=module -e 'await import(process.argv[1])' "$PWD/bench/peers/node_modules/@lancedb/lancedb/dist/index.js"; then
    lance=1
  else
    figure "skipped LanceDB: it does not load on this machine"
    say "LanceDB is skipped: it does not load on this machine"
  fi
  if node bench/peers/chroma.mjs check $out >> "$figures" 2> $out/chroma.txt; then
    chroma=1
  else
    why=$(sed -n 's/^chroma: //p' $out/chroma.txt | head -n 1 | sed "s|$PWD/||g")
    figure "skipped Chroma: ${why:-its server does not start here}"
    say "Chroma is skipped: ${why:-its server does not start here}"
  fi
}

machine() {
  figure "text.command $command"
  figure "text.date $(date -u +%F)"
  figure "text.cpu $(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"
  figure "text.cores $(nproc)"
  figure "text.memory $(awk '/^MemTotal/ {printf "%.0f GiB", $2 / 1048576}' /proc/meminfo)"
  figure "text.disk $(df -PT "$work" | awk 'NR == 2 {print $2}')"
  figure "text.load $(cut -d ' ' -f 1 /proc/loadavg)"
  figure "text.lode $($lode --version 2> /dev/null | head -n 1)"
  figure "quick $quick"
  for size in "rows $rows" "chroma $chroma_rows" "adds $adds" "delete $delete_rows" "paths $delete_paths" "small $small" \
    "large $large" "runs $runs"; do figure "size.$size"; done
  free_gb=$(df -Pk "$work" | awk 'NR == 2 {printf "%d", $4 / 1048576}')
  [ "$free_gb" -ge $need_gb ] || say "only $free_gb GB are free; $need_gb may be needed (LODE_BENCH_DIR names another disk)"
  measure disk $bin/bench_disk disk "$work" $((runs * 2))
}

ingest() {
  for round in $(seq $rounds); do
    measure "ingest.lode.$round" $bin/bench_ingest "ingest.lode.$round" "$(fresh lode)" $rows
    [ $lance = 1 ] || continue
    measure "ingest.lance.$round" node bench/peers/lance.mjs ingest "ingest.lance.$round" "$(fresh lance)" $rows index
    measure "ingest.synced.$round" node bench/peers/lance.mjs ingest "ingest.synced.$round" "$(fresh synced)" $rows durable
  done
  if [ $lance = 1 ] && command -v strace > /dev/null; then
    say "ingest.lance: counting its fsync calls"
    strace -f -qq -e trace=fsync,fdatasync,msync,sync_file_range -o "$work/calls" \
      node bench/peers/lance.mjs ingest calls "$(fresh synced)" 5000 > /dev/null &&
      figure "ingest.lance.syncs $(grep -c 'sync' "$work/calls")"
  fi
  rm -rf "$work/synced" "$work/calls"
  if [ $chroma = 1 ]; then
    measure small.lode.1 $bin/bench_ingest small.lode.1 "$(fresh small)" $chroma_rows
    measure small.chroma node bench/peers/chroma.mjs ingest small.chroma $out "$(fresh chroma)" $chroma_rows
    measure small.lode.2 $bin/bench_ingest small.lode.2 "$(fresh small)" $chroma_rows
    rm -rf "$work/chroma" "$work/small"
  fi
  sums=$(awk '/^[a-z]+\.[a-z.0-9]+\.data / {print $2}' $figures | sort -u | wc -l)
  [ "$sums" = 1 ] || figure "failed same-data"
}

# Vectors that no index holds yet, then on what the last round of ingest left
query() {
  measure query.lode $bin/bench_query query.lode "$(fresh exact)" $rows $query_rounds
  measure query.indexed $bin/bench_query query.indexed "$work/lode" $rows $query_rounds
  [ $lance = 1 ] && measure query.lance node bench/peers/lance.mjs query query.lance "$work/lance" $query_rounds
  say kernel
  # shellcheck disable=SC2016
  $bin/bench_scan $rows 384 $query_rounds |
    awk '/% of plain read/ && /^scan/ {print "kernel." $2 "_percent " $(NF - 4)}' >> $figures
  rm -rf "$work/lode" "$work/lance" "$work/exact"
}

single_adds() {
  measure adds.lode $bin/bench_adds adds.lode "$(fresh adds)" $adds
  [ $lance = 1 ] && measure adds.lance node bench/peers/lance.mjs adds adds.lance "$(fresh adds-lance)" $adds
  rm -rf "$work/adds" "$work/adds-lance"
}

delete_paths() {
  measure delete.lode $bin/bench_delete delete.lode "$(fresh delete)" $delete_rows $delete_paths
  rm -rf "$work/delete"
  if [ $lance = 1 ]; then
    measure prepare.lance node bench/peers/lance.mjs ingest prepare.lance "$(fresh delete-lance)" $delete_rows index
    measure delete.lance node bench/peers/lance.mjs delete delete.lance "$work/delete-lance" $delete_paths
    rm -rf "$work/delete-lance"
  fi
}

# Stores of the small and the large size: memory of filling the large one, count of both, delete of all by a file of ids
sizes() {
  measure fill.small $bin/bench_ingest fill.small "$(fresh size-small)" $small
  measure fill.large $bin/bench_ingest fill.large "$(fresh size-large)" $large
  for round in 1 2; do
    measure "count.small.$round" $bin/bench_process "count.small.$round" $runs $small $lode db count bench --store "$work/size-small"
    measure "count.large.$round" $bin/bench_process "count.large.$round" $runs $large $lode db count bench --store "$work/size-large"
  done
  $bin/bench_process --ids $large > "$work/ids"
  measure ids.lode $bin/bench_process ids.lode 1 - $lode db delete bench --store "$work/size-large" --ids-file "$work/ids"
  measure ids.left $bin/bench_process ids.left 1 0 $lode db count bench --store "$work/size-large"
  rm -rf "$work/size-small" "$work/size-large" "$work/ids"
}

readers() {
  for commit in 0 1 1000; do
    measure "readers.$commit" $bin/bench_readers "readers.$commit" "$(fresh readers)" $small $seconds $commit
  done
  rm -rf "$work/readers"
}

mkdir -p $out "$work"
: > $figures
programs
install_peers
machine
ingest
query
single_adds
delete_paths
sizes
readers
awk -f bench/report.awk $figures > $results.new && mv $results.new $results
say "written to $results"
cat $results
