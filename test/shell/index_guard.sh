#!/bin/bash
# index_guard.sh PROGRAM - every way to write into a store, tried on the collections of a project's code index: each is refused, and nothing in them
# changes. A command, tool or route that is in none of the tables below fails the test. A copy of a code index is no project's: commands
# update, complete and remove it. Ends with "N passed, N failed, N skipped".
set -u
. "$(dirname "$0")/../support/kit.sh"
begin index_guard "$@"
here=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$tmp/p/.git"

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
printf '#!/bin/sh\necho '"'"'{"table":"code","version":1,"rows":1,"records":1,"metric":"l2"}'"'"'\n' > "$tmp/python" && chmod +x "$tmp/python"
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
db reembed code --model code
db delete code --where {}
db delete files --ids a.c
db pull code --from $tmp/other
db pull files --from $tmp/other
db pull code --from $tmp/other --as quality
db push code --to $tmp/p/.lode --store $tmp/other
db push notes --to $tmp/p/.lode --as files
rescue chroma $tmp/ch/chroma --to $tmp/p/.lode
import chroma $tmp/ch/chroma
import lance $tmp --python $tmp/python
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
harmless=' db collections|db get|db query|db count|db facets|db map|db stats|db verify|db salvage|db backup|db restore|db compact|db optimize|db export'
# Those whose index it is, and those that write no collection: settings, models, AI tools; servers and mcp have parts of their own below
harmless+='|outline|def|read|refs|callers|callees|impact|trace|unused|cycles|hotspots|setup|index|search|context|status|skipped|watch|doctor|reset|trust|completion|config get|config set|config unset|config list'
harmless+='|rescue palace|chroma check|export jsonl|export chroma-jsonl|export npy|serve|ui|embed|model list|model install|model info|model verify|mcp|mcp install|mcp remove|'
# listed_by_help: the commands of `lode help`, of all its groups
listed_by_help() { "$lode" help | sed -n '/^Topics of/q; s/^  \([a-z][a-z-]*\( [a-z][a-z-]*\)\{0,1\}\)  .*/\1/p'; }
# listed_by_completion: those too that `lode help` leaves out, such as trust
listed_by_completion() {
  local script group groups
  script=$("$lode" completion bash)
  groups=" $(sed -n 's/^    case $word in \([a-z|-]*\)) ;;.*/\1/p' <<< "$script" | tr '|' ' ') "
  words() { sed -n "s/^    '$1') .*COMPREPLY=(\$(compgen -W '\([^']*\)'.*/\1/p" <<< "$script" | tr ' ' '\n' | grep -v '^-'; }
  for group in $groups; do words "$group" | sed "s/^/$group /"; done
  for group in $(words ''); do case "$groups help version " in *" $group "*) ;; *) echo "$group" ;; esac; done
}
by_help=$(listed_by_help) by_completion=$(listed_by_completion)
for group in 'db push' 'rescue chroma' 'import chroma' 'chroma quarantine' 'export npy' 'mcp install' reset; do
  grep -qx "$group" <<< "$by_help" && grep -qx "$group" <<< "$by_completion" && ok || bad "the lists of commands lack $group: $by_help / $by_completion"
done
grep -qx trust <<< "$by_completion" && ok || bad "the completions lack trust: $by_completion"
while read -r command; do
  case $harmless in *[\ \|]"$command|"*) ok; continue ;; esac
  grep -q "^$command " <<< "$cli" && ok || bad "lode $command is not in this test"
done <<< "$(printf '%s\n' "$by_help" "$by_completion" | sort -u)"

# ---- A copy of the code index is no project's ----

# The copy is updated, and goes on after it was interrupted; the project's own store stays closed
mkdir -p "$tmp/q/.git" && cd "$tmp/q" || exit 1
for i in $(seq 1200); do echo "int f$i(void) { return $i; }" > "$i.c"; done
"$lode" index --quiet || bad "no index of many files"
same() { # same COLLECTION STORE: is its content that of the project's?
  [ "$("$lode" db export "$1" | sort | cksum)" = "$("$lode" --store "$2" db export "$1" | sort | cksum)" ]
}
# push FLAGS: a push that must succeed
push() { out=$("$lode" db push "$@" 2>&1) && ok || bad "push $*: $out"; }
push code --to "$tmp/copy"
push files --to "$tmp/copy"
echo 'int changed(void) { return 0; }' > 7.c
"$lode" index --quiet || bad "no second index"
push code --to "$tmp/copy"
push files --to "$tmp/copy"
same code "$tmp/copy" && same files "$tmp/copy" && ok || bad "a copy that was updated differs"
out=$("$lode" --store "$tmp/copy2" db pull files --from .lode 2>&1 && "$lode" --store "$tmp/copy2" db pull files --from .lode 2>&1) && ok || bad "a second pull: $out"
# Interrupted: by a limit on the size of files, raised until some of the ranges are written, and by a kill
for limit in $(seq 128 64 2048); do
  (ulimit -f "$limit"; "$lode" db push files --to "$tmp/half" > /dev/null 2>&1) && { bad "a push into a small file was not interrupted"; break; }
  n=$("$lode" --store "$tmp/half" db count files 2> /dev/null)
  [ "${n:-0}" -gt 0 ] && break
done
[ "${n:-0}" -gt 0 ] && [ "$n" -lt 1200 ] && ok || bad "not in the middle: $n of 1200 files"
"$lode" db push files --to "$tmp/killed" > /dev/null 2>&1 &
pid=$!
for _ in $(seq $((1200 * patience))); do [ "$("$lode" --store "$tmp/killed" db count files 2> /dev/null)" ] && break; sleep 0.01; done
kill -9 $pid 2> /dev/null; wait $pid 2> /dev/null
for copy in half killed; do
  push files --to "$tmp/$copy"
  same files "$tmp/$copy" && ok || bad "a copy that was interrupted differs: $copy"
done
# What was copied is an ordinary collection there
for line in 'db add code' 'db upsert code'; do
  # shellcheck disable=SC2086
  out=$("$lode" --store "$tmp/copy" $line "$tmp/planted.jsonl" 2>&1) && ok || bad "$line in a copy: $out"
done
out=$("$lode" --store "$tmp/copy" db rename code mine 2>&1) && ok || bad "renaming a copy: $out"
out=$("$lode" --store "$tmp/copy" db drop files --yes 2>&1) && ok || bad "dropping a copy: $out"
# ... and removing it leaves no mark of an index
out=$("$lode" reset index --yes --no-backup --store "$tmp/killed" 2>&1) && ok || bad "reset of a copy: $out"
[ ! -e "$tmp/killed/index.lock" ] && ok || bad "reset marked a copy as an index"
# An index that `lode index` keeps in another folder is as closed as .lode, also by a link or after it was moved
"$lode" index --store "$tmp/named" --quiet || bad "no index in a folder that was named"
ln -s q/.lode "$tmp/link"
cp -r .lode "$tmp/moved"
for store in "$tmp/q/.lode" "$tmp/q/.lode/" "$tmp/q/../q/.lode" "$tmp/link" "$tmp/named" "$tmp/moved"; do
  out=$("$lode" --store "$tmp/other" db push code --to "$store" 2>&1)
  refused $? 5 "$out" "push to $store"
  out=$("$lode" --store "$store" db drop files --yes 2>&1)
  refused $? 5 "$out" "drop in $store"
  [ "$("$lode" --store "$store" db count files)" = 1200 ] && [ "$("$lode" --store "$store" db get code --ids 'a.c#0' --json)" = '' ] && ok || bad "the index in $store was changed"
done
out=$("$lode" --store "$tmp/other" db push code --to "$tmp/named" 2>&1)
case $out in *"$tmp/named"*) ok ;; *) bad "the refusal does not name the other store: $out" ;; esac
case $out in *'of this project'*) bad "the other store is called this project: $out" ;; *) ok ;; esac
cd "$tmp/p" || exit 1

# ---- MCP ----

tools='add upsert delete'
# memory passes its arguments on to these
tools+=' memory'
harmless=' search outline symbol impact read grep status index '
id=1
request() { echo "{\"jsonrpc\":\"2.0\",\"id\":$((id++)),\"method\":\"$1\",\"params\":$2}"; }
: > "$tmp/answers"
{
  request tools/list '{}'
  for tool in $tools; do
    for name in code files quality code.new; do
      [ $tool != memory ] || { request tools/call "{\"name\":\"memory\",\"arguments\":{\"action\":\"upsert\",\"collection\":\"$name\",\"records\":[{\"id\":\"a.c#0\",\"document\":\"x\"}]}}"; continue; }
      request tools/call "{\"name\":\"$tool\",\"arguments\":{\"collection\":\"$name\",$([ $tool = delete ] && echo '"where":{}' || echo '"records":[{"id":"a.c#0","document":"x"}]')}}"
    done
  done
  for _ in $(seq $((1200 * patience))); do [ "$(grep -c '"id"' "$tmp/answers")" -ge 17 ] && break; sleep 0.05; done
} | timeout $((120 * patience)) "$lode" mcp > "$tmp/answers" 2> "$tmp/err"
n=$(grep -c 'belongs to the code index.*"isError":true\|"isError":true.*belongs to the code index' "$tmp/answers")
[ "$n" = 16 ] && ok || bad "$n of 16 calls of tools were refused: $(head -c 600 "$tmp/answers")"
unchanged 'a tool'
listed=$(grep -o '"name":"[a-z_]*","title"' "$tmp/answers" | cut -d'"' -f4)
grep -qx memory <<< "$listed" && ok || bad "no list of tools: $(head -c 300 "$tmp/answers")"
for tool in $listed; do
  case "$harmless $tools " in *" $tool "*) ok ;; *) bad "the tool $tool is not in this test" ;; esac
done

# ---- HTTP ----

if ! command -v curl > /dev/null; then
  skip 'HTTP: curl is not installed'
  echo "$passed passed, $failed failed, $skipped skipped"
  exit $((failed > 0))
fi
serve() { # serve FLAGS: $server and $api
  "$lode" serve --port 0 "$@" 2> "$tmp/log" > /dev/null &
  server=$!
  wait_ready "$tmp/log"
  api=http://127.0.0.1:$port/api
}
serve
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
harmless=' query get search fork delete_database create_database create_tenant update_tenant attach_function detach_function reset '
listed=$(sed -n 's/^ *{"\(POST\|PUT\|DELETE\|PATCH\)", .*"chroma\.\([a-z_]*\)".*/\2/p' "$here/src/app/server/server_route.c")
grep -qx delete_collection <<< "$listed" && ok || bad "no list of Chroma's routes: $listed"
for name in $listed; do
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
db/reembed {"collection":"code","model":"code"}
db/delete {"collection":"files","where":{}}
EOF
)
while read -r path sent; do
  call POST "/lode/v1/$path" "$sent"
  refused "$status" 422 "$body" "$path $sent"
  unchanged "$path"
done <<< "$ops"
harmless=' outline def refs callers callees impact trace unused cycles hotspots search context status config/get config/list read embed model/list model/info model/verify'
harmless+=' db/collections db/get db/query db/count db/facets db/map db/stats db/verify db/compact db/optimize '
call GET /lode/v1
listed=$(grep -o '"path":"/api/lode/v1/[a-z/-]*"' <<< "$body" | sed 's|.*/v1/||; s|"||')
grep -qx db/upsert <<< "$listed" && ok || bad "no list of operations: ${body:0:300}"
for op in $listed; do
  case $harmless in *" $op "*) continue ;; esac
  grep -q "^$op " <<< "$ops" && ok || bad "the operation $op is not in this test"
done
kill "$server"; wait "$server" 2> /dev/null; server=

# Requests do not change a copy either
serve --store "$tmp/half"
call POST /lode/v1/db/upsert '{"collection":"files","records":[{"id":"x","document":"x"}]}'
refused "$status" 422 "$body" 'writing to a copy over HTTP'
call DELETE "$D/collections/files"
refused "$status" 400 "$body" 'deleting a copy as Chroma does'
same_half=$(cd "$tmp/q" && same files "$tmp/half" && echo yes)
[ "$same_half" = yes ] && ok || bad "a request changed a copy"
kill "$server"; wait "$server" 2> /dev/null; server=

finish
