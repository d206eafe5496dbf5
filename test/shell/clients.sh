#!/bin/bash
# clients.sh PROGRAM - Chroma's real clients, unchanged, against `lode serve`: npm's chromadb and Python's chromadb-client, versions as
# pinned. They are fetched once, into build/clients; where one cannot be had it is skipped, and says so. Ends with
# "N passed, N failed[, N skipped]".
set -u
patience=${LODE_TEST_PATIENCE:-1} # times as long as on a quiet machine
lode=$(realpath "$1")
cd "$(dirname "$0")/../.." || exit 1
from=test/clients
to=build/clients
python_client=chromadb-client==1.5.9
work=$(mktemp -d "${TMPDIR:-/tmp}/lode-clients-XXXXXX")
passed=0 failed=0 skipped=0 server=
trap 'test -n "$server" && kill -9 "$server" 2> /dev/null; rm -rf "$work"' EXIT
mkdir -p "$to"

skip() { echo "skipped: $1"; skipped=$((skipped + 1)); }

have_npm() {
  command -v node > /dev/null && command -v npm > /dev/null || { why="node and npm are not installed"; return 1; }
  cp "$from/package.json" "$from/package-lock.json" "$from/chroma.mjs" "$to/"
  cmp -s "$to/package-lock.json" "$to/installed.json" && [ -d "$to/node_modules" ] && return 0
  (cd "$to" && timeout 300 npm ci --ignore-scripts --no-audit --no-fund) > "$work/npm.log" 2>&1 && cp "$to/package-lock.json" "$to/installed.json" && return 0
  why="npm cannot get the package chromadb"
  return 1
}

have_python() {
  command -v python3 > /dev/null || { why="python3 is not installed"; return 1; }
  [ -f "$to/venv/installed" ] && return 0
  rm -rf "$to/venv"
  python3 -m venv "$to/venv" > "$work/pip.log" 2>&1 || { why="python3 has no venv"; return 1; }
  timeout 300 "$to/venv/bin/pip" install --quiet "$python_client" >> "$work/pip.log" 2>&1 && touch "$to/venv/installed" && return 0
  rm -rf "$to/venv"
  why="pip cannot get the package $python_client"
  return 1
}

# run NAME COMMAND...: adds up the last line of its output
run() {
  local name=$1
  shift
  timeout $((300 * patience)) "$@" > "$work/$name.out" 2>&1
  local last p f
  last=$(tail -1 "$work/$name.out")
  p=$(expr "$last" : '\([0-9]*\) passed') f=$(expr "$last" : '.* \([0-9]*\) failed')
  if [ -n "$p" ] && [ -n "$f" ]; then
    passed=$((passed + p)) failed=$((failed + f))
    [ "$f" = 0 ] || cat "$work/$name.out"
  else
    failed=$((failed + 1))
    echo "FAILED $name"
    tail -20 "$work/$name.out"
  fi
}

start() {
  : > "$work/log"
  "$lode" serve --store "$work/store" --port 0 "$@" 2> "$work/log" > /dev/null &
  server=$!
  for _ in $(seq $((600 * patience))); do
    port=$(sed -n 's/.* at http:[^ ]*:\([0-9]*\)[,;].*/\1/p' "$work/log" | head -1)
    [ -n "$port" ] && grep -q "is ready" "$work/log" && break
    sleep 0.05
  done
}
stop() {
  kill -TERM "$server"
  wait "$server" || { failed=$((failed + 1)); echo "FAILED: the server did not stop well: $(tail -3 "$work/log")"; }
  server=
}

have_npm && npm=yes || { npm=; skip "npm's client, because $why"; }
have_python && python=yes || { python=; skip "Python's client, because $why"; }

token=0123456789abcdef0123
echo $token > "$work/token"
start --token-file "$work/token"
[ -z "$npm" ] || run npm sh -c "cd '$to' && exec node chroma.mjs 127.0.0.1 $port $token"
[ -z "$python" ] || run python "$to/venv/bin/python" "$from/chroma.py" 127.0.0.1 "$port" "$token"
stop

# Without a token the clients of the server's own user need no headers, and those of another user are refused
start
[ -z "$npm" ] || run npm-owner sh -c "cd '$to' && exec node chroma.mjs 127.0.0.1 $port"
hello="import chromadb; c = chromadb.HttpClient(port=$port); c.get_or_create_collection('hello', embedding_function=None).add(ids=['a'], embeddings=[[1]])"
if [ -n "$python" ]; then
  "$to/venv/bin/python" -c "$hello" > "$work/owner.out" 2>&1 && passed=$((passed + 1)) || { failed=$((failed + 1)); echo "FAILED: the owner's client"; tail -3 "$work/owner.out"; }
  stranger="setpriv --reuid 54321 --regid 54321 --clear-groups env HOME=/nonexistent $(realpath "$to/venv/bin")/python"
  if [ "$(id -u)" != 0 ] || ! $stranger -c 'import chromadb' > /dev/null 2>&1; then skip "another user's client, because there is no other user who can run it"
  elif $stranger -c "$hello" > "$work/stranger.out" 2>&1 || ! grep -q 'its own user' "$work/stranger.out"; then failed=$((failed + 1)); echo "FAILED: another user's client: $(tail -3 "$work/stranger.out")"
  else passed=$((passed + 1)); fi
fi
stop
[ -d "$work/store/crashes" ] && [ -n "$(ls "$work/store/crashes")" ] && { failed=$((failed + 1)); echo "FAILED: the worker died"; cat "$work"/store/crashes/*; }
if [ $skipped = 0 ]; then echo "$passed passed, $failed failed"; else echo "$passed passed, $failed failed, $skipped skipped"; fi
[ $failed = 0 ]
