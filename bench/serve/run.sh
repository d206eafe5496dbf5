#!/bin/bash
# run.sh - `lode serve` beside the real Chroma server: the same client, data and requests for both; writes bench/SERVE.md.
#
#   bench/serve/run.sh            20,000 records of 384 numbers, 16 connections, 20 s a phase: under ten minutes
#   bench/serve/run.sh --quick    small, to try the scripts; writes build/bench/SERVE.md, which proves nothing
#   bench/serve/run.sh --soak N   nothing but mixed load for N seconds: prints the memory of both processes after each round
#
# Chroma's server comes with npm's chromadb (test/clients/package-lock.json), into build/clients; where it cannot be had or does not
# start, its column stays empty. LODE_BENCH_DIR: where the stores are made (build/bench/work); the figures hold for the disk under it.
set -u
cd "$(dirname "$0")/../.." || exit 1
records=20000 dim=384 connections=16 seconds=20 result=bench/SERVE.md
[ "${1:-}" = --quick ] && { records=2000 seconds=3 result=build/bench/SERVE.md; }
work=${LODE_BENCH_DIR:-build/bench/work}/serve
figures=build/bench/serve.txt
lode=build/release/lode
load=build/bench/load
server='' killer=''
trap 'for p in $killer $server; do kill -9 "$p" 2> /dev/null; done; rm -rf "$work"' EXIT
mkdir -p build/bench "$work"
: > $figures
before=$(cut -d' ' -f1 /proc/loadavg)
say() { echo "bench-serve: $*" >&2; }
rss() { awk '/VmRSS/ { n = $2 } END { printf "%d", n }' "/proc/$1/status" 2> /dev/null; }
both_rss() { local w; w=$(pgrep -P "$server" | head -1); echo $((($(rss "$server") + $(rss "${w:-$server}")) / 1024)); }

${CC:-cc} -O2 -std=c11 -D_GNU_SOURCE -Wall -Wextra -o $load bench/serve/load.c -lpthread || exit 1

start_lode() {
  rm -rf "$work/lode"
  "$lode" serve --store "$work/lode" --port 0 --log nothing 2> "$work/log" > /dev/null &
  server=$!
  for _ in $(seq 200); do
    port=$(sed -n 's/.* at http:[^ ]*:\([0-9]*\)[,;].*/\1/p' "$work/log" | head -1)
    [ -n "$port" ] && grep -q "is ready" "$work/log" && return 0
    sleep 0.05
  done
  return 1
}
stop_lode() { kill -TERM "$server"; wait "$server"; server=; }

start_chroma() {
  command -v node > /dev/null && command -v npm > /dev/null || { say "Chroma is skipped: node and npm are not installed"; return 1; }
  mkdir -p build/clients
  cp test/clients/package.json test/clients/package-lock.json bench/peers/glibc.mjs bench/peers/glibc.c bench/peers/chroma_server.mjs build/clients/
  if [ ! -d build/clients/node_modules ]; then
    (cd build/clients && timeout 300 npm ci --ignore-scripts --no-audit --no-fund) > "$work/npm.log" 2>&1 || { say "Chroma is skipped: npm cannot get it"; return 1; }
  fi
  (cd build/clients && node -e 'import("./glibc.mjs").then((m) => { const l = m.loadable("native"); console.log(l.binding); console.log(l.preload); })') > "$work/binding" 2> "$work/node.log" ||
    { say "Chroma is skipped: its server does not load here"; return 1; }
  port=$((20000 + RANDOM % 20000))
  (cd build/clients && LD_PRELOAD=$(sed -n 2p "$work/binding") exec node chroma_server.mjs "$(sed -n 1p "$work/binding")" run --path "$work/chroma" --host 127.0.0.1 --port $port) > "$work/chroma.log" 2>&1 &
  server=$!
  for _ in $(seq 300); do
    curl -s -o /dev/null -m 1 "http://127.0.0.1:$port/api/v2/heartbeat" && return 0
    sleep 0.1
  done
  say "Chroma is skipped: its server does not start here"
  kill -9 $server
  return 1
}

work=$(realpath "$work")
if [ "${1:-}" = --soak ]; then
  start_lode || { say "lode does not start"; exit 1; }
  until=$(($(date +%s) + ${2:-600}))
  while [ "$(date +%s)" -lt $until ]; do
    $load 127.0.0.1 "$port" soak 1000 64 $connections 10 > "$work/soak"
    echo "$(date +%T) front $(($(rss "$server") / 1024)) MiB, worker $(($(rss "$(pgrep -P "$server" | head -1)") / 1024)) MiB, store $(du -sm "$work/lode" | cut -f1) MiB," \
      "$(curl -s "http://127.0.0.1:$port/metrics" | awk '/^lode_worker_calls_total/ { print $2 }') calls, $(ls "/proc/$server/fd" | wc -l) + $(ls "/proc/$(pgrep -P "$server" | head -1)/fd" | wc -l) files open," \
      "errors $(awk '/errors/ { n += $2 } END { print n + 0 }' "$work/soak"), lost $(awk '/lost/ { n += $2 } END { print n + 0 }' "$work/soak")"
  done
  stop_lode
  exit 0
fi
say "lode: $records records of $dim numbers, $connections connections, $seconds s a phase"
start_lode || { say "lode does not start"; exit 1; }
$load 127.0.0.1 "$port" lode $records $dim $connections $seconds >> $figures
echo "lode.memory_mib $(both_rss)" >> $figures
stop_lode

say "lode with its worker killed every second"
start_lode || exit 1
(n=0; while sleep 1; do w=$(pgrep -P "$server" | head -1); set -- KILL SEGV BUS; shift $((n % 3)); [ -n "$w" ] && kill -"$1" "$w" 2> /dev/null; n=$((n + 1)); done) &
killer=$!
$load 127.0.0.1 "$port" killed 1000 64 $connections $seconds >> $figures
kill $killer
killer=
curl -s "http://127.0.0.1:$port/metrics" | awk '/^lode_worker_restarts_total/ { print "killed.restarts", $2 } /^lode_worker_last_restart_seconds/ { print "killed.restart_ms", $2 * 1000 }' >> $figures
stop_lode

say "lode, soak: memory after one and after five rounds of mixed load"
start_lode || exit 1
for round in 1 2 3 4 5; do
  $load 127.0.0.1 "$port" soak 1000 64 $connections $((seconds / 4 + 1)) > /dev/null
  echo "soak.round${round}_mib $(both_rss)" >> $figures
done
stop_lode

if start_chroma; then
  say "Chroma: the same"
  $load 127.0.0.1 $port chroma $records $dim $connections $seconds >> $figures
  echo "chroma.memory_mib $(($(rss $server) / 1024))" >> $figures
  kill -INT $server
  sleep 1
  kill -9 $server 2> /dev/null
  server=
fi

value() { awk -v k="$1" '$1 == k { v = $2 } END { print v }' $figures; }
row() { # text, figure, larger is better, goal of the ratio (or -)
  awk -v t="$1" -v a="$(value "lode.$2")" -v b="$(value "chroma.$2")" -v up="$3" -v g="${4:--}" 'BEGIN {
    r = b == "" || b == 0 || a == 0 ? "" : up ? a / b : b / a
    goal = g == "-" ? "-" : "at least " g "x"
    met = g == "-" ? "-" : (r == "" ? "not known" : (r + 0 >= g + 0 ? "yes" : "no"))
    printf "| %s | %s | %s | %s | %s | %s |\n", t, a, (b == "" ? "-" : b), (r == "" ? "-" : sprintf("%.1fx", r)), goal, met }'
}
goal() { # text, value, most, unit
  awk -v t="$1" -v a="$2" -v m="$3" -v u="$4" 'BEGIN {
    met = a == "" ? "not known" : (a + 0 <= m + 0 ? "yes" : "no")
    printf "| %s | %s%s | - | - | at most %s%s | %s |\n", t, a, u, m, u, met }'
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (b) printf "%.2f", a / b }'; }
{
  echo "# \`lode serve\` beside the Chroma server"
  echo
  echo "Made by \`make bench-serve\` (bench/serve/run.sh${1:+ $1}) on $(date +%F): $records records of $dim numbers, $connections connections, $seconds s a phase; lode $($lode --version | cut -d' ' -f2), Chroma as in npm's"
  echo "chromadb $(sed -n 's/.*"chromadb": "\(.*\)".*/\1/p' test/clients/package.json); $(nproc) CPUs ($(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)), load average before the run $before."
  echo "The client (bench/serve/load.c) runs on the same machine and sends the same bytes to both. Mixed load is 90 % query and 10 % upsert of one record."
  echo
  echo "| figure | lode | Chroma | lode is better by | goal | met |"
  echo "|---|---|---|---|---|---|"
  row 'ingest, records a second' ingest.records_per_second 1 10
  row 'queries a second' query.query_per_second 1 10
  row 'query, p50 ms' query.query_p50_ms 0
  row 'query, p99 ms' query.query_p99_ms 0
  row 'queries that found their target, %' query.found_percent 1
  row 'mixed: queries a second' mixed.query_per_second 1
  row 'mixed: query p50 ms' mixed.query_p50_ms 0
  row 'mixed: query p99 ms' mixed.query_p99_ms 0
  row 'mixed: upserts a second' mixed.upsert_per_second 1
  row 'memory at the end, MiB' memory_mib 0
  goal 'mixed: p99 in multiples of p50' "$(ratio "$(value lode.mixed.query_p99_ms)" "$(value lode.mixed.query_p50_ms)")" 5 ''
  goal 'mixed: acknowledged writes that are lost' "$(value lode.mixed.lost)" 0 ''
  goal 'mixed: requests that failed' "$(value lode.mixed.errors)" 0 ''
  goal "worker killed $(value killed.restarts) times under load (SIGKILL, SIGSEGV, SIGBUS): acknowledged writes lost of $(value killed.mixed.acknowledged)" "$(value killed.mixed.lost)" 0 ''
  goal 'worker killed: from its death to the next one taking calls' "$(value killed.restart_ms)" 200 ' ms'
  goal 'worker killed: queries that were answered, and did not find their target' "$(value killed.query.found_percent | awk '{ print 100 - $1 }')" 0 ' %'
  goal 'soak: memory after the last round in multiples of the second' "$(ratio "$(value soak.round5_mib)" "$(value soak.round2_mib)")" 1.1 ''
  echo
  echo "With the worker killed, $(value killed.query.errors) + $(value killed.mixed.errors) requests in flight were answered with an error, and the longest time without an answer on a connection was"
  echo "$(value killed.mixed.longest_silence_ms) ms. Soak: memory of both processes after rounds 1 to 5 of mixed load: $(value soak.round1_mib), $(value soak.round2_mib), $(value soak.round3_mib), $(value soak.round4_mib), $(value soak.round5_mib) MiB."
} > $result
say "wrote $result"
cat $result
