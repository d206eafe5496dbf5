#!/bin/sh
# notes-http.sh FOLDER - the same over HTTP: lode's own interface, with curl. `lode` must be on the PATH.
set -eu
lode serve --store "$1" --port 0 >"$1.log" 2>&1 &
server=$!
trap 'kill $server' EXIT
while ! base=$(grep -o 'http://[0-9.]*:[0-9]*' "$1.log"); do kill -0 $server; sleep 0.1; done
api=$base/api/lode/v1
curl -sS "$api/db/create" -d '{"collection":"notes","metric":"cosine"}' >/dev/null
curl -sS "$api/db/upsert" -d '{"collection":"notes","records":[
  {"id":"n","document":"due north","metadata":{"year":2024},"embedding":[0,1]},
  {"id":"e","document":"due east","metadata":{"year":2025},"embedding":[1,0]},
  {"id":"ne","document":"in between","metadata":{"year":2026},"embedding":[1,1]}]}' >/dev/null
curl -sS "$api/db/query" -d '{"collection":"notes","vector":[1,0],"k":2,"where":{"year":{"$gte":2025}}}'
echo
