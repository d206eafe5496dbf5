#!/bin/bash
# doors.sh PROGRAM - every way to write into a store, tried on the collections of a project's code index: each is refused, and nothing in them
# changes. A command, tool or route that is in none of the tables below fails the test. Ends with "N passed, N failed, N skipped".
set -u
patience=${LODE_TEST_PATIENCE:-1} # times as long as on a quiet machine
lode=$(realpath "${1:?usage: doors.sh PATH-OF-LODE}")
here=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d "${TMPDIR:-/tmp}/lode-doors-XXXXXX")
server=
cleanup() {
  [ -n "$server" ] && kill -9 "$server" 2>/dev/null
  rm -rf "$tmp"
}
trap cleanup EXIT
export HOME="$tmp/home" XDG_DATA_HOME="$tmp/data" NO_COLOR=1 LODE_PAGER= GIT_CONFIG_GLOBAL=/dev/null
unset LODE_STORE
mkdir -p "$HOME" "$tmp/p/.git"
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() {
  failed=$((failed + 1))
  echo "FAIL: $*"
}
skip() {
  skipped=$((skipped + 1))
  echo "skipped: $*"
}

cd "$tmp/p" || exit 1
printf 'int parse(void) { return 1; }\n' > a.c
"$lode" index --quiet || bad "no index"
"$lode" db create notes --quiet > /dev/null
printf '{"id":"a.c#0","document":"planted"}\n' > "$tmp/planted.jsonl"
"$lode" --store "$tmp/other" db add code "$tmp/planted.jsonl" --create --quiet > /dev/null
"$lode" --store "$tmp/other" db add files "$tmp/planted.jsonl" --create --quiet > /dev/null
# all that the index is: its records, and the collections with their metadata
state() { for c in code files; do "$lode" db export "$c" --quiet; done | cksum; "$lode" db collections --json | grep -E '"name":"(code|files|quality|notes|other)'; }
before=$(state)
unchanged() {
  local now
  now=$(state)
  [ "$now" = "$before" ] && ok || { bad "$1 changed the code index: $now"; before=$now; }
}
# refused CODE-OR-STATUS WANTED TEXT WHAT
refused() {
  [ "$1" = "$2" ] || { bad "$4: $1, wanted $2: ${3:0:300}"; return; }
  case $3 in *'belongs to the code index'*) ok ;; *) bad "$4: not refused for the code index: ${3:0:300}" ;; esac
}

# ---- The command line ----

mkdir -p "$tmp/ch"
tar -C "$tmp/ch" -xf "$here/test/fixtures/chroma/chroma-1.5.9.tar.xz" 2> /dev/null && python3 - "$tmp/ch/chroma/chroma.sqlite3" << 'EOF' || bad "no Chroma directory"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
last = db.execute("select name from collections order by rowid desc limit 1").fetchone()[0]  # others come first
db.execute("update collections set name = 'code' where name = ?", (last,))
db.commit()
EOF
cli=$(cat << EOF
db create code
db create quality
db create files.new
db rename code other
db rename notes quality
db drop code --yes
db drop files --yes
db add code $tmp/planted.jsonl
db upsert code $tmp/planted.jsonl
db update code $tmp/planted.jsonl
db import files $tmp/planted.jsonl
db embed code
db delete code --where {}
db delete files --ids a.c
db pull code --from $tmp/other
db pull files --from $tmp/other
db pull code --from $tmp/other --as quality
db push code --to $tmp/p/.lode --store $tmp/other
db push notes --to $tmp/p/.lode --as files
rescue chroma $tmp/ch/chroma --to $tmp/p/.lode
import chroma $tmp/ch/chroma
chroma quarantine $tmp/ch/chroma
EOF
)
while read -r line; do
  # shellcheck disable=SC2086
  out=$("$lode" $line 2>&1 < /dev/null)
  refused $? 5 "$out" "lode $line"
  unchanged "lode $line"
done <<< "$cli"
[ -e "$tmp/p/.lode-doubtful.jsonl" ] && bad "a rescue that was refused left a file" || ok
out=$("$lode" rescue chroma "$tmp/ch/chroma" --to "$tmp/fresh" 2>&1) && ok || bad "a Chroma directory with a collection \"code\" into a store without an index: $out"
out=$("$lode" db pull code --from "$tmp/other" --as mine 2>&1) && ok || bad "under another name: $out"
"$lode" db drop mine --yes --quiet > /dev/null

# Those that read, and those that treat the whole store; restore makes a new store, and refuses one that is there
harmless=' collections get query count facets map stats verify salvage backup restore compact optimize export '
for command in $("$lode" help db | sed -n 's/^  db \([a-z]*\) .*/\1/p'); do
  case $harmless in *" $command "*) continue ;; esac
  grep -q "^db $command " <<< "$cli" && ok || bad "lode db $command is not in this test"
done

# ---- MCP ----

tools='add upsert delete'
harmless=' embed_pending search_code search_similar search_context get_project_status index_project collections get query count '
id=1
request() { echo "{\"jsonrpc\":\"2.0\",\"id\":$((id++)),\"method\":\"$1\",\"params\":$2}"; }
: > "$tmp/answers"
{
  request tools/list '{}'
  for tool in $tools; do
    for name in code files quality code.new; do
      request tools/call "{\"name\":\"$tool\",\"arguments\":{\"collection\":\"$name\",$([ $tool = delete ] && echo '"where":{}' || echo '"records":[{"id":"a.c#0","document":"x"}]')}}"
    done
  done
  for _ in $(seq $((1200 * patience))); do [ "$(grep -c '"id"' "$tmp/answers")" -ge 13 ] && break; sleep 0.05; done
} | timeout $((120 * patience)) "$lode" mcp > "$tmp/answers" 2> "$tmp/err"
n=$(grep -c 'belongs to the code index.*"isError":true\|"isError":true.*belongs to the code index' "$tmp/answers")
[ "$n" = 12 ] && ok || bad "$n of 12 calls of tools were refused: $(head -c 600 "$tmp/answers")"
unchanged 'a tool'
listed=$(grep -o '"name":"[a-z_]*","title"' "$tmp/answers" | cut -d'"' -f4)
[ -n "$listed" ] && ok || bad "no list of tools: $(head -c 300 "$tmp/answers")"
for tool in $listed; do
  case "$harmless $tools " in *" $tool "*) ok ;; *) bad "the tool $tool is not in this test" ;; esac
done

# ---- HTTP ----

if ! command -v curl > /dev/null; then
  skip 'HTTP: curl is not installed'
  echo "$passed passed, $failed failed, $skipped skipped"
  exit $((failed > 0))
fi
"$lode" serve --port 0 2> "$tmp/log" > /dev/null &
server=$!
for _ in $(seq $((600 * patience))); do
  port=$(sed -n 's/.* at https\{0,1\}:[^ ]*:\([0-9]*\)[,;].*/\1/p' "$tmp/log" | head -1)
  [ -n "$port" ] && grep -q 'is ready' "$tmp/log" && break
  sleep 0.05
done
api=http://127.0.0.1:$port/api
# call METHOD PATH BODY: $status and $body
call() {
  status=$(curl -s -m $((60 * patience)) -o "$tmp/body" -w '%{http_code}' -X "$1" "$api$2" ${3:+-d "$3"})
  body=$(cat "$tmp/body")
}
D=/v2/tenants/default_tenant/databases/default_database
ids() { call GET "$D/collections/$1"; sed -n 's/.*"id":"\([0-9a-f-]*\)".*/\1/p' <<< "$body"; }
code=$(ids code) notes=$(ids notes)
routes=$(cat << EOF
add POST $D/collections/$code/add {"ids":["a.c#0"],"documents":["x"],"embeddings":[[1]]}
upsert POST $D/collections/$code/upsert {"ids":["a.c#0"],"documents":["x"],"embeddings":[[1]]}
update POST $D/collections/$code/update {"ids":["a.c#0"],"documents":["x"],"embeddings":[[1]]}
delete POST $D/collections/$code/delete {"ids":["a.c#0"]}
update_collection PUT $D/collections/$code {"new_name":"other"}
update_collection PUT $D/collections/$code {"new_metadata":{"revision":0}}
update_collection PUT $D/collections/$notes {"new_name":"quality"}
delete_collection DELETE $D/collections/code
create_collection POST $D/collections {"name":"quality"}
create_collection POST $D/collections {"name":"code","get_or_create":true}
EOF
)
while read -r name method path sent; do
  call "$method" "$path" "$sent"
  refused "$status" 400 "$body" "$name: $method $path $sent"
  unchanged "$name"
done <<< "$routes"
call POST "$D/collections/$code/fork" '{"new_name":"other"}'
[ "$status" = 501 ] && ok || bad "fork: $status $body"
# Those that read, or know no collection; reset and delete_database leave the index (agents.sh)
harmless=' query get search fork delete_database create_database create_tenant reset '
for name in $(sed -n 's/^ *{"\(POST\|PUT\|DELETE\|PATCH\)", .*"chroma\.\([a-z_]*\)".*/\2/p' "$here/src/app/server/server_route.c"); do
  case $harmless in *" $name "*) continue ;; esac
  grep -q "^$name " <<< "$routes" && ok || bad "Chroma's $name is not in this test"
done
call DELETE "$D"
[ "$status" = 200 ] && ok || bad "deleting the database: $status $body"
"$lode" db create notes --quiet > /dev/null
before=$(grep -v '"notes"' <<< "$before")
[ "$(state | grep -v '"notes"')" = "$before" ] && ok || bad "deleting the database changed the index"
before=$(state)

ops=$(cat << 'EOF'
db/create {"collection":"quality"}
db/rename {"collection":"code","new_name":"other"}
db/rename {"collection":"notes","new_name":"quality"}
db/drop {"collection":"code"}
db/add {"collection":"code","records":[{"id":"x"}]}
db/upsert {"collection":"code","records":[{"id":"a.c#0","document":"x"}]}
db/update {"collection":"code","records":[{"id":"a.c#0","document":"x"}]}
db/embed {"collection":"code"}
db/delete {"collection":"files","where":{}}
EOF
)
while read -r path sent; do
  call POST "/lode/v1/$path" "$sent"
  refused "$status" 422 "$body" "$path $sent"
  unchanged "$path"
done <<< "$ops"
harmless=' collections get query count facets map stats verify compact optimize '
call GET /lode/v1
listed=$(grep -o '"path":"/api/lode/v1/db/[a-z]*"' <<< "$body" | sed 's|.*/||; s|"||')
[ -n "$listed" ] && ok || bad "no list of operations"
for op in $listed; do
  case $harmless in *" $op "*) continue ;; esac
  grep -q "^db/$op " <<< "$ops" && ok || bad "the operation db/$op is not in this test"
done
kill "$server"; wait "$server" 2> /dev/null; server=

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
