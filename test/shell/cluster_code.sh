#!/bin/bash
# cluster_code.sh - a team's code index on a real Qdrant cluster of three nodes on loopback. Usage: cluster_code.sh LODE
#
# The commands of code search, MCP and the page on a store on the cluster, from two checkouts of a project. A reader sees a file as it was or as
# it is, never half of it, while others index: a file whose parts all change together is rewritten again and again. A node dies during
# an index run and during searches, an indexer is killed in the middle, two index at once. What a cluster cannot do is refused with
# UNSUPPORTED (exit code 5).
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=test/support/kit.sh
. "$here/test/support/kit.sh"
begin cluster_code "${1:-}"
nothing() { echo "skipped: $*"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
skip() { nothing "$@"; }
# shellcheck source=test/support/qdrant.sh
. "$here/test/support/qdrant.sh"
loop='' indexer=''
cleanup() {
  for pid in "${pids[@]}" $loop $indexer $server; do [ "$pid" -gt 0 ] 2>/dev/null && kill -9 "$pid" 2>/dev/null; done
  wait 2>/dev/null
  rm -rf "$tmp"
}
trap cleanup EXIT
start_all
S="qdrant://$all/team?replicas=2&shards=2"
code() { "$lode" --store "$S" "$@"; }

# ---- Two checkouts

mkdir -p "$tmp/a/src"
cp "$here"/src/app/project/*.[ch] "$here"/src/app/indexer/*.[ch] "$tmp/a/src"
moving() { # K: a file of six functions that all say generation K
  for f in 1 2 3 4 5 6; do
    printf 'int moving_part_%s(int x) {\n' "$f"
    for line in $(seq 1 30); do printf '  x += x * %s + %s; /* generation_%s of part %s */\n' "$line" "$f" "$1" "$f"; done
    printf '  return x;\n}\n\n'
  done
}
moving 0 >"$tmp/a/src/moving.c"
cd "$tmp/a" && git init -q .
cp -r "$tmp/a" "$tmp/b"

run 6 --store "$S" status
has "not indexed"
run 6 --store "$S" search "lock of the index"
says "not indexed yet"
run 0 --store "$S" index --json
has '"added":'
files=$(sed 's/.*"files":\([0-9]*\).*/\1/' <<<"$out")
check "no store is made in the project's folder" [ ! -e "$tmp/a/.lode/lode.db" ]
# The same questions to the same index in a folder
"$lode" --store "$tmp/folder" index "$tmp/a" --quiet >/dev/null || bad "an index in a folder"
same() { [ "$("$lode" --store "$S" "$@" 2>/dev/null | sort)" = "$("$lode" --store "$tmp/folder" "$@" 2>/dev/null | sort)" ]; }
check "outline" same outline src/job.c
check "def" same def project_job_begin
check "refs" same refs project_job_begin
check "callers" same callers indexer_note
check "callees" same callees indexer_run
check "impact" same impact src/job.c:41
check "hotspots" same hotspots --limit 500
check "cycles" same cycles
check "unused" same unused
for q in indexer_remove_files project_job_begin; do # of questions the order differs: docs/SCALING.md, BM25 score
  a=$("$lode" --store "$S" search "$q" --files-only --limit 3 2>/dev/null | head -1)
  b=$("$lode" --store "$tmp/folder" search "$q" --files-only --limit 3 2>/dev/null | head -1)
  check "the first answer to '$q': $a, not $b" [ "$a" = "$b" ]
done
check "a regular expression" same search --regex 'lode_status project_[a-z]+\(' --files-only --limit 50
run 0 --store "$S" context project_job_begin
has definition
run 0 --store "$S" status --check --json
has '"state":"ready"'
has '"changed_files":0'
run 0 --store "$S" doctor --json
hasnt '"state":"bad"'

# The other checkout: nothing to do, no file is stale; what it changes, the first sees
cd "$tmp/b" || exit 1
run 0 --store "$S" search project_job_begin
silent "changed since"
run 0 --store "$S" index --json
has '"added":0,"changed":0,"removed":0'
printf 'int brand_new_function(void) { return 7; }\n' >>src/job.c
run 0 --store "$S" index --json
has '"changed":1'
cd "$tmp/a" || exit 1
run 0 --store "$S" search brand_new_function --json
has '"stale":"changed"'
run 0 --store "$S" def brand_new_function
has src/job.c
cp "$tmp/b/src/job.c" src/job.c
rm "$tmp/a/src/job.h" "$tmp/b/src/job.h" 2>/dev/null
run 0 --store "$S" search brand_new_function --json
hasnt '"stale"'

# ---- What a cluster cannot do

run 5 --store "$S" index --model none
says "another model"
run 0 --store "$S" config get model
has code
run 5 --store "$S" reset all --yes
says "on a cluster"
run 5 --store "$S" reset index --yes
says "pull"

# ---- MCP and the page

: >"$tmp/mcp"
printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' \
  '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search","arguments":{"query":"project_job_begin"}}}' \
  '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"symbol","arguments":{"name":"indexer_note","what":"callers"}}}' \
  '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"status","arguments":{}}}' \
  '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"index","arguments":{}}}' >"$tmp/requests"
{ cat "$tmp/requests"; for _ in $(seq 1 $((300 * patience))); do grep -q '"id":5,' "$tmp/mcp" && break; sleep 0.1; done; } |
  "$lode" --store "$S" mcp "$tmp/a" >"$tmp/mcp" 2>"$tmp/mcp.err"
answer() { grep "\"id\":$1," "$tmp/mcp"; }
check "MCP: search: $(answer 2)" grep -q 'src/job.c' <<<"$(answer 2)"
check "MCP: callers: $(answer 3)" grep -q 'indexer.c' <<<"$(answer 3)"
check "MCP: status: $(answer 4)" grep -q 'chunks: ' <<<"$(answer 4)"
check "MCP: index: $(answer 5) $(tail -3 "$tmp/mcp.err")" grep -q 'unchanged' <<<"$(answer 5)"
check "MCP: nothing failed" [ "$(grep -c '"isError":true' "$tmp/mcp")" = 0 ]

"$lode" --store "$S" serve --port 0 2>"$tmp/serve" >/dev/null &
server=$!
wait_ready "$tmp/serve"
url="http://127.0.0.1:$port"
page() { curl -fs -m 60 -X POST -H 'Content-Type: application/json' "$url/api/lode/v1/$1" -d "$2"; }
check "the page's search" grep -q 'src/job.c' <<<"$(page search '{"query":"project_job_begin"}')"
check "the page's status" grep -q '"chunks"' <<<"$(page status '{}')"
kill "$server"; wait "$server" 2>/dev/null
server=

# ---- Never half a file

parts() { # the generations that an answer shows of the moving file, and of how many parts
  code search --regex 'generation_[0-9]+ of part' --path src/moving.c --limit 50 --json 2>/dev/null |
    grep -o 'generation_[0-9]* of part [0-9]' | sort -u | sed 's/ of.*//' | uniq -c | sed 's/^ *//'
}
check "the moving file as a whole: $(parts)" [ "$(parts)" = "6 generation_0" ]
writing() { # FOLDER FIRST STEP
  local k=$2
  cd "$1" || return
  while [ ! -e "$tmp/stop" ]; do
    moving "$k" >src/moving.c
    "$lode" --store "$S" index --quiet >/dev/null 2>>"$tmp/writing.err" && echo "$k" >>"$tmp/written"
    k=$((k + $3))
  done
}
reading() { # seconds: each answer has one generation, of all parts
  local end=$(($(date +%s) + $1 * patience))
  while [ "$(date +%s)" -lt "$end" ]; do
    local got; got=$(parts)
    case $got in
      "6 generation_"*[!0-9]*) echo "$got" | tr '\n' ';' >>"$tmp/half" ;;
      "6 generation_"*) echo "$got" >>"$tmp/whole" ;;
      "") echo none >>"$tmp/none" ;;
      *) echo "$got" | tr '\n' ';' >>"$tmp/half" ;;
    esac
  done
}
: >"$tmp/written"; : >"$tmp/whole"; : >"$tmp/none"
writing "$tmp/a" 1 1 & loop=$!
reading 12
check "one indexes: the file was seen whole ($(wc -l <"$tmp/whole") times, $(sort -u "$tmp/whole" | wc -l) generations, $(wc -l <"$tmp/none") times said to be in motion)" [ "$(sort -u "$tmp/whole" | wc -l)" -ge 2 ]
check "and never half of it: $(cat "$tmp/half" 2>/dev/null)" [ ! -e "$tmp/half" ]

# ---- Two at once, and a node that is killed: a run may fail then, and is started again

writing "$tmp/b" 100001 1 & loop="$loop $!"
reading 6
kill -9 "${pids[2]}"
reading 12
check "and no answer had half of the file: $(cat "$tmp/half" 2>/dev/null)" [ ! -e "$tmp/half" ]
touch "$tmp/stop"
# shellcheck disable=SC2086
wait $loop
loop=
rm "$tmp/stop"
start 2
check "the node comes back" ready 2
caught_up() { # every replica is active again: until then, who asks the node that was away may get what it had
  local name; for name in $(curl -fs "http://127.0.0.1:$(http 0)/collections" | grep -o '"name":"[^"]*"' | cut -d'"' -f4); do
    for n in 0 1 2; do curl -fs "http://127.0.0.1:$(http "$n")/collections/$name/cluster" | grep -q '"state":"\(Dead\|Partial\|Recovery\|Initializing\|Listener\)"' && return 1; done
  done
  return 0
}
for _ in $(seq 1 $((300 * patience))); do caught_up && break; sleep 0.2; done
check "and catches up" caught_up

# ---- An indexer that is killed

cd "$tmp/a" || exit 1
for n in 1 2 3 4 5 6; do
  moving $((200000 + n)) >src/moving.c
  for f in src/indexer*.c; do printf '/* touched %s */\n' "$n" >>"$f"; done
  "$lode" --store "$S" index --quiet >/dev/null 2>&1 &
  indexer=$!
  sleep "0.$((n + 1))"
  kill -9 "$indexer"
  wait "$indexer" 2>/dev/null
  got=$(parts)
  case $got in "6 generation_"*[!0-9]*) bad "after a killed indexer: $got" ;; "6 generation_"*) ok ;; *) bad "after a killed indexer: $got" ;; esac
done
indexer=
run 0 --store "$S" index --json
check "the next run goes on: $(parts)" [ "$(parts)" = "6 generation_200006" ]
run 0 --store "$S" status --json
has '"state":"ready"'
has "\"files\":$((files))"
check "the graph is whole" same callers project_job_read
run 0 --store "$S" status --json
# A table of symbols that is lost is missed
hasnt symbols_missing
run 0 --store "$S" db delete code.symbols --ids src/job.c --yes --no-backup
run 0 --store "$S" status --json
has '"symbols_missing":1'
says "symbols are partial"
run 0 --store "$S" index --force --quiet
run 0 --store "$S" status --json
hasnt symbols_missing
check "the moving file after --force: $(parts)" [ "$(parts)" = "6 generation_200006" ]

# ---- Removed

run 0 --store "$S" reset index --yes --no-backup
run 1 --store "$S" status
has "not indexed"
finish
