#!/bin/bash
# clients.sh PROGRAM - Chroma's real clients, unchanged, against `lode serve`: npm's chromadb and Python's chromadb-client, versions as
# pinned. They are fetched once, into build/clients; where one cannot be had it is skipped, and says so. Ends with
# "N passed, N failed[, N skipped]".
set -u
. "$(dirname "$0")/../support/kit.sh"
begin clients "$@"
export HOME="$user_home"
unset XDG_DATA_HOME
cd "$(dirname "$0")/../.." || exit 1
from=test/clients
to=build/clients
python_client=chromadb-client==1.5.9
mkdir -p "$to"

have_python() {
  command -v python3 > /dev/null || { why="python3 is not installed"; return 1; }
  [ -f "$to/venv/installed" ] && return 0
  rm -rf "$to/venv"
  python3 -m venv "$to/venv" > "$tmp/pip.log" 2>&1 || { why="python3 has no venv"; return 1; }
  timeout 300 "$to/venv/bin/pip" install --quiet "$python_client" >> "$tmp/pip.log" 2>&1 && touch "$to/venv/installed" && return 0
  rm -rf "$to/venv"
  why="pip cannot get the package $python_client"
  return 1
}

start() {
  : > "$tmp/log"
  "$lode" serve --store "$tmp/store" --port 0 "$@" 2> "$tmp/log" > /dev/null &
  server=$!
  wait_ready "$tmp/log"
}
stop() {
  kill -TERM "$server"
  wait "$server" || bad "the server did not stop well: $(tail -3 "$tmp/log")"
  server=
}

have_npm "$from" "$to" chroma.mjs && npm=yes || { npm=; skip "npm's client, because $why"; }
have_python && python=yes || { python=; skip "Python's client, because $why"; }

token=0123456789abcdef0123
echo $token > "$tmp/token"
start --token-file "$tmp/token"
[ -z "$npm" ] || tally npm sh -c "cd '$to' && exec node chroma.mjs 127.0.0.1 $port $token"
[ -z "$python" ] || tally python "$to/venv/bin/python" "$from/chroma.py" 127.0.0.1 "$port" "$token"
stop

# Without a token the clients of the server's own user need no headers, and those of another user are refused
start
[ -z "$npm" ] || tally npm-owner sh -c "cd '$to' && exec node chroma.mjs 127.0.0.1 $port"
hello="import chromadb; c = chromadb.HttpClient(port=$port); c.get_or_create_collection('hello', embedding_function=None).add(ids=['a'], embeddings=[[1]])"
if [ -n "$python" ]; then
  "$to/venv/bin/python" -c "$hello" > "$tmp/owner.out" 2>&1 && ok || bad "the owner's client: $(tail -3 "$tmp/owner.out")"
  stranger="setpriv --reuid 54321 --regid 54321 --clear-groups env HOME=/nonexistent $(realpath "$to/venv/bin")/python"
  if [ "$(id -u)" != 0 ] || ! $stranger -c 'import chromadb' > /dev/null 2>&1; then skip "another user's client, because there is no other user who can run it"
  elif $stranger -c "$hello" > "$tmp/stranger.out" 2>&1 || ! grep -q 'its own user' "$tmp/stranger.out"; then bad "another user's client: $(tail -3 "$tmp/stranger.out")"
  else ok; fi
fi
stop
[ -d "$tmp/store/crashes" ] && [ -n "$(ls "$tmp/store/crashes")" ] && bad "the worker died: $(cat "$tmp"/store/crashes/*)"
finish
