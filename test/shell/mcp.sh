#!/bin/bash
# mcp.sh PROGRAM - `lode mcp` as clients see it: transcripts of both eras, hostile input, cancellation, the worker killed, two servers on
# one project, the end of the input; and the settings of clients. Ends with "N passed, N failed".
set -u
. "$(dirname "$0")/../support/kit.sh"
begin mcp "$@"
here=$(cd "$(dirname "$0")/../.." && pwd)
unset LODE_MODELS # what is said where minilm is not at hand
mkdir -p "$tmp/p/net"
cd "$tmp/p" || exit 1
git init -q . 2>/dev/null || mkdir .git

# A small project
{ echo 'def retry(work, times=5):'; echo '    """Retry with growing pauses."""'; echo '    return work()'; } > net/retry.py
printf 'int open_socket(int port) {\n  return socket(2, 1, port);\n}\n' > net/socket.c
printf 'int main(void) {\n  return open_socket(80);\n}\n' > main.c

# ---- Whole sessions: lines in, lines out ----

# The input stays open until as many answers are there as there are requests
session() {
  local want
  cat > "$tmp/requests"
  : > "$tmp/answers"
  want=$(grep -c '"id":' "$tmp/requests")
  {
    cat "$tmp/requests"
    for _ in $(seq $((1200 * patience))); do
      [ "$(wc -l < "$tmp/answers")" -ge "$want" ] && break
      sleep 0.05
    done
  } | timeout $((120 * patience)) "$lode" mcp "$@" > "$tmp/answers" 2> "$tmp/err"
  code=$?
  out=$(cat "$tmp/answers")
}
# line ID: the answer with that id
line() { printf '%s\n' "$out" | grep -F "\"id\":$1," | head -1; }
has() { case $(line "$1") in *"$2"*) ok ;; *) bad "answer $1 has no '$2': $(line "$1" | cut -c1-400)" ;; esac; }
hasnt() { case $(line "$1") in *"$2"*) bad "answer $1 has '$2': $(line "$1" | cut -c1-400)" ;; *) ok ;; esac; }
count() { check "$(printf '%s\n' "$out" | grep -c .) lines, wanted $1: ${out:0:400}" [ "$(printf '%s\n' "$out" | grep -c .)" = "$1" ]; }
modern='"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}'
call() { # ID TOOL ARGUMENTS [META]
  echo "{\"jsonrpc\":\"2.0\",\"id\":$1,\"method\":\"tools/call\",\"params\":{\"name\":\"$2\",\"arguments\":$3${4:+,$4}}}"
}

# Handshake: each revision is echoed, another one is answered with the newest
for version in 2024-11-05 2025-03-26 2025-06-18 2025-11-25; do
  session <<< '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"'$version'","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}'
  has 1 "\"protocolVersion\":\"$version\""
done
session << 'EOF'
{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"1999-01-01","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"ping"}
{"jsonrpc":"2.0","id":"three","method":"tools/list"}
{"jsonrpc":"2.0","id":4,"method":"subscriptions/listen"}
{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"cursor":"x"}}
{"jsonrpc":"2.0","id":6,"method":"prompts/list"}
{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{"name":"explain_module","arguments":{"path":"a\"b"}}}
{"jsonrpc":"2.0","id":8,"method":"prompts/get","params":{"name":"explain_module","arguments":{"path":1}}}
{"jsonrpc":"2.0","id":9,"method":"prompts/get","params":{"name":"no_such"}}
{"jsonrpc":"2.0","id":10,"method":"prompts/get","params":{"arguments":{}}}
EOF
check "exit code $code" [ $code = 0 ]
count 10
has 6 '"name":"onboard"'
has 7 'Explain \"a\\\"b\" to'
has 8 'needs \"path\"'
has 9 'there is no prompt \"no_such\"'
has 10 '"code":-32602'
has 1 '"protocolVersion":"2025-11-25"'
has 1 '"capabilities":{"tools":{},"prompts":{},"resources":{}}'
has 2 '"result":{}'
has '"three"' '"name":"symbol"'
hasnt '"three"' outputSchema
hasnt '"three"' resultType
has 4 '"code":-32601'
has 5 '"code":-32602'
check "nothing is opened before a tool is called: $(cat "$tmp/err")" [ ! -s "$tmp/err" ]
check "nothing is written" [ ! -e .lode ]

# Resources, before there is an index
session << EOF
{"jsonrpc":"2.0","id":1,"method":"resources/list"}
{"jsonrpc":"2.0","id":2,"method":"resources/templates/list"}
{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"lode://status"}}
{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"lode://outline/nothing.c"}}
{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"lode://nothing"}}
{"jsonrpc":"2.0","id":6,"method":"resources/read","params":{"uri":7}}
{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"lode://nothing",$modern}}
EOF
count 7
has 1 '"uri":"lode://overview"'
has 2 '"uriTemplate":"lode://outline/{+path}"'
has 3 'state: not indexed'
has 4 '"code":-32002'
has 5 '"code":-32002'
has 6 '"code":-32602'
has 7 '"code":-32602'

# Stateless
session << EOF
{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{$modern}}
{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{$modern}}
{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2031-01-01"}}}
{"jsonrpc":"2.0","id":4,"method":"ping","params":{$modern}}
$(call 5 get_project_status '{}' "$modern")
$(call 6 no_such_tool '{}' "$modern")
EOF
count 6
has 1 '"supportedVersions":["2026-07-28"]'
has 1 '"ttlMs":'
has 1 '"cacheScope":'
has 1 '"resultType":"complete"'
has 1 'io.modelcontextprotocol/serverInfo'
has 2 '"ttlMs":'
has 3 '"code":-32022'
has 3 '"supported":["2026-07-28"],"requested":"2031-01-01"'
has 4 '"code":-32601'
has 5 '"resultType":"complete"'
has 5 '"state":"not indexed"'
has 6 '"code":-32602'

# Not indexed yet, then indexed when asked for, with progress that only grows
session << EOF
$(call 1 search_code '{"query":"x"}')
$(call 2 search_context '{"name":"main"}')
EOF
has 1 '"isError":true'
has 1 "call the tool index"
has 2 '"isError":true'
check "searching makes nothing" [ ! -e .lode ]

# A store of memory alone is no index
mkdir -p "$tmp/memory/.git"
session "$tmp/memory" <<< "$(call 1 add '{"collection":"notes","records":[{"id":"a","document":"tea"}]}')"
has 1 '"written":1'
check "git does not see the store" [ -e "$tmp/memory/.lode/.gitignore" ]
# The first write has a sandbox too, also where a tool that only reads started a worker before there was a folder
mkdir -p "$tmp/boxed/.git" "$tmp/scratch" && echo 'int x;' > "$tmp/boxed/x.c"
TMPDIR="$tmp/scratch" session "$tmp/boxed" <<< "$(call 1 search_code '{"query":"x"}')
$(call 2 index_project '{}')"
has 2 '"added":1'
if grep -q 'Landlock off (the kernel has none)' "$tmp/err"; then skip "the kernel has no Landlock"; elif on_platform linux "the sandbox of workers"; then
  check "workers: $(cat "$tmp/err")" [ "$(grep -c 'Landlock on' "$tmp/err")" = "$(grep -c 'is ready' "$tmp/err")" ]
fi
out=$("$lode" index --pending "$tmp/memory" 2>&1)
check "no index: $?" [ $? = 6 ]
session "$tmp/memory" <<< "$(call 1 get_project_status '{}')
$(call 2 search_code '{"query":"tea"}')"
has 1 '"state":"not indexed"'
has 2 "call the tool index"
before=$(cksum < "$tmp/memory/.lode/lode.db")
session "$tmp/memory" --read-only <<< "$(call 1 count '{"collection":"notes"}')
$(call 2 add '{"collection":"notes","records":[{"id":"b"}]}')
$(call 3 index_project '{}')"
has 1 '"count":1'
has 2 READONLY
has 3 READONLY
check "--read-only writes nothing" [ "$(cksum < "$tmp/memory/.lode/lode.db")" = "$before" ]
mkdir -p "$tmp/untouched/.git" && echo 'int x;' > "$tmp/untouched/x.c"
session "$tmp/untouched" --read-only <<< "$(call 1 add '{"collection":"notes","records":[{"id":"b"}]}')
$(call 2 index_project '{}')"
has 1 READONLY
has 2 READONLY
check "--read-only makes no store" [ ! -e "$tmp/untouched/.lode" ]

# ---- A server that runs: requests one by one ----

start() {
  mkfifo "$tmp/in.$1" "$tmp/out.$1"
  "$lode" mcp < "$tmp/in.$1" > "$tmp/out.$1" 2> "$tmp/log.$1" &
  server=$!
}
ask() { printf '%s\n' "$1" >&"$in"; }
# answer ID: reads until it comes; others are kept in $seen
answer() {
  local text
  seen=
  while IFS= read -r -t 60 text <&"$from"; do
    case $text in
      *"\"id\":$1,"*) out=$text; return 0 ;;
      *) seen=$seen$text$'\n' ;;
    esac
  done
  bad "no answer $1 (log: $(tail -3 "$tmp"/log.* | cut -c1-300))"
  return 1
}
start one
exec {in}> "$tmp/in.one" {from}< "$tmp/out.one"
worker() { pgrep -P "$server" 2>/dev/null | head -1; }
ask '{"jsonrpc":"2.0","id":1,"method":"ping"}'
answer 1
check "no worker before a tool is called" [ -z "$(worker)" ]
ask "$(call 2 index_project '{}' '"_meta":{"progressToken":"p"}')"
answer 2 && has 2 '"files":3'
last=0
for n in $(printf '%s' "$seen" | sed -n 's/.*"progressToken":"p","progress":\([0-9]*\).*/\1/p'); do
  check "progress $n after $last" [ "$n" -gt "$last" ]
  last=$n
done
check "progress was reported" [ "$last" -gt 0 ]
ask "$(call 3 search_code '{"query":"growing pauses","limit":2}')"
answer 3 && { has 3 '"path":"net/retry.py"'; has 3 '"structuredContent":{"rows":['; has 3 '1. net/retry.py:1-3'; }
for filter in '"language":"c"' '"path":"net/*.c"' ; do
  ask "$(call 4 search_code "{\"query\":\"socket\",$filter}")"
  answer 4 && { has 4 net/socket.c; hasnt 4 retry.py; }
done
ask "$(call 5 search_similar '{"file":"net/socket.c","line":1}')"
answer 5 && has 5 '"rows":[{'
ask "$(call 6 search_context '{"file":"net/socket.c","line":2}')"
answer 6 && has 6 '"relation":"definition"'

# Memory; the index's own collections are not to be written
ask "$(call 7 add '{"collection":"notes","records":[{"id":"a","document":"the build needs cmake","metadata":{"n":1}},{"id":"b","document":"tea"}]}')"
answer 7 && has 7 '"written":2'
ask "$(call 8 query '{"collection":"notes","text":"cmake"}')"
answer 8 && has 8 '"id":"a"'
check "a score for reading: $(line 8)" grep -Eq '1\. a, score [0-9.]{1,6}\\n' <<<"$(line 8)"
for tool in add upsert delete; do
  ask "$(call 9 $tool '{"collection":"code","records":[],"where":{}}')"
  answer 9 && has 9 '"isError":true'
done
ask "$(call 10 delete '{"collection":"files","where":{}}')"
answer 10 && has 10 'belongs to the code index'
ask "$(call 11 count '{"collection":"notes"}')"
answer 11 && has 11 '"count":2'

# The tools made for models: text within a budget, what was left out, what a missing thing is
ask "$(call 40 search '{"query":"growing pauses"}')"
answer 40 && has 40 retry.py && has 40 score && hasnt 40 structuredContent
ask "$(call 41 search '{"query":"growing pauses","max_tokens":100}')"
answer 41 && has 41 retry.py && check "a reply of 100 tokens" [ "$(answer 41 | wc -c)" -lt 1400 ]
ask "$(call 42 search '{"query":"x","max_tokens":3}')"
answer 42 && has 42 'max_tokens' && has 42 '"isError":true'
mkdir -p long; for i in $(seq 60); do printf 'def function_%s(first_argument, second_argument):\n    """Does what the %s does."""\n' "$i" "$i"; done >long/many.py
ask "$(call 48 index '{}')"; answer 48
ask "$(call 49 outline '{"file":"long/many.py","max_tokens":1200}')" # documentation goes first, then signatures
answer 49 && has 49 '  119-120 def function_60(first_argument, second_argument)' && has 49 'without documentation' && hasnt 49 'did not fit'
ask "$(call 50 outline '{"file":"long/many.py","max_tokens":500}')"
answer 50 && has 50 '  119-120 function function_60' && has 50 'without signatures' && hasnt 50 'first_argument' && hasnt 50 'did not fit'
ask "$(call 51 outline '{"file":"long/many.py","max_tokens":200}')"
answer 51 && has 51 'function function_5' && has 51 'more did not fit'
rm -r long
ask "$(call 43 read '{"file":"no/such.c"}')"
answer 43 && has 43 'no such file'
ask "$(call 44 grep '{"pattern":"def \\w+","limit":2}')"
answer 44 && has 44 retry.py
ask "$(call 45 memory '{"action":"count","collection":"notes"}')"
answer 45 && has 45 2
ask "$(call 46 memory '{"action":"sing"}')"
answer 46 && has 46 '"code":-32602'
ask "$(call 47 memory '{"action":"reembed","collection":"notes","model":"code"}')"
answer 47 && has 47 'vectors by code@'
printf '{"id":"a","document":"tea","embedding":[1,0]}\n' | "$lode" db add own --create --quiet --store "$tmp/p/.lode"
ask "$(call 47 memory '{"action":"reembed","collection":"own","model":"code"}')" # vectors that no model can make again
answer 47 && has 47 '"isError":true' && has 47 'this removes the vectors of the collection'
ask "$(call 48 memory '{"action":"reembed","collection":"code","model":"code"}')"
answer 48 && has 48 'belongs to the code index'
ask "$(call 49 memory '{"action":"reembed","collection":"notes","model":"/etc/model"}')"
answer 49 && has 49 '"isError":true'
ask "$(call 47 symbol '{"name":"no_such_name_here"}')"
answer 47 && has 47 'nothing in the index defines'
ask "$(call 48 status '{}')"
answer 48 && has 48 'state: ready'
if [ -e "$(dirname "$lode")/../grammars/python.so" ]; then
  ask "$(call 49 outline '{"file":"net/retry.py"}')"
  answer 49 && has 49 'def retry(work'
  ask "$(call 50 symbol '{"name":"retry","what":"callers"}')"
  answer 50 && hasnt 50 '"isError":true'
  ask "$(call 51 read '{"name":"retry"}')"
  answer 51 && has 51 'def retry'
fi

# Bad arguments name their field
while read -r tool arguments field; do
  ask "$(call 12 "$tool" "$arguments")"
  answer 12 && { has 12 '"isError":true'; has 12 "$field"; }
done << 'EOF'
search_code {} query
search_code {"query":3} query
search_code {"query":"x","limit":0} limit
search_code {"query":"x","limit":51} limit
search_code {"query":"x","mode":"magic"} mode
search_code {"query":"x","language":"klingon"} language
search_code {"query":"x","colour":1} colour
search_code {"query":"x","project":"/etc"} project
search_similar {"file":"../../etc/passwd"} project
search_similar {"file":""} file
search_context {} name
get {"collection":"notes","include":["all"]} include
query {"collection":"notes","text":"x","where":"n"} where
add {"collection":"notes","records":[{"document":"x"}]} id
count [] object
EOF

# A tool may name the models that are installed and the collection's own: no path, whose FIFO would never answer, and no service
mkdir "$tmp/model"
mkfifo "$tmp/model/config.json"
for model in "$tmp/model" "$tmp/nowhere/model" openai:text-embedding-3-small bert:..; do
  for tool in add upsert; do
    ask "$(call 12 $tool "{\"collection\":\"notes\",\"embed\":true,\"model\":\"$model\",\"records\":[{\"id\":\"m\",\"document\":\"d\"}]}")"
    answer 12 && { has 12 '"isError":true'; has 12 'may name the models'; }
  done
done
ask "$(call 12 add '{"collection":"coded","embed":true,"model":"code","records":[{"id":"m","document":"open the file"}]}')"
answer 12 && has 12 '"written":1'
ask "$(call 12 query '{"collection":"coded","text":"open the file"}')"
answer 12 && { has 12 '"id":"m"'; hasnt 12 'words alone'; }
# Notes are embedded by themselves if the model is at hand; else it is said, for both the note and the query
ask "$(call 12 add '{"collection":"coded","records":[{"id":"n","document":"close the socket"}]}')"
answer 12 && { has 12 '"written":1'; hasnt 12 'words alone'; }
ask "$(call 12 get '{"collection":"coded","ids":["n"],"include":["embedding"]}')"
answer 12 && has 12 '"embedding":['
ask "$(call 12 add '{"collection":"coded","embed":false,"records":[{"id":"o","document":"as it is"}]}')"
answer 12 && has 12 '"written":1'
ask "$(call 12 get '{"collection":"coded","ids":["o"],"include":["embedding"]}')"
answer 12 && has 12 '"embedding":null'
ask "$(call 12 add '{"collection":"plain","records":[{"id":"n","document":"close the socket"}]}')"
answer 12 && has 12 'found by words alone'
ask "$(call 12 query '{"collection":"plain","text":"socket"}')"
answer 12 && { has 12 '"id":"n"'; has 12 'searching by words alone'; }

# Answers are bounded, and say so
long=$(head -c 6000 /dev/zero | tr '\0' x)
records=$(for i in $(seq 30); do printf ',{"id":"%s","document":"%s"}' "$i" "$long"; done)
ask "$(call 13 add "{\"collection\":\"big\",\"records\":[${records:1}]}")"
answer 13 && has 13 '"written":30'
ask "$(call 14 get '{"collection":"big","limit":30}')"
answer 14 && { has 14 '"cut":true'; has 14 '"omitted":'; check "${#out} bytes" [ ${#out} -lt 120000 ]; }

# The worker dies: an error that names the report, then life goes on
kill -9 "$(worker)" 2>/dev/null
ask "$(call 15 count '{"collection":"notes"}')"
answer 15 && case $out in *'"count":2'*) ok ;; *) has 15 'died' ;; esac
ask "$(call 16 count '{"collection":"notes"}')"
answer 16 && has 16 '"count":2'
check "a crash report" [ -n "$(ls .lode/crashes 2>/dev/null)" ]
# ... in the middle of work
ask "$(call 17 index_project '{"force":true}')"
for _ in 1 2 3 4 5 6 7 8; do ask "$(call 18 search_code '{"query":"socket"}')"; done
kill -9 "$(worker)" 2>/dev/null
all=
for _ in 1 2 3 4 5 6 7 8; do
  answer 18 && ok
  all=$all$seen
done
case $all in *'"id":17,'*) out=$all ;; *) answer 17 ;; esac
case $out in *'"isError":true'*) has 17 'crash report: ' ;; *) has 17 '"files":3' ;; esac
ask "$(call 19 search_code '{"query":"growing pauses"}')"
answer 19 && has 19 net/retry.py

# Cancelled at any moment: the next one is answered (test_mcp.c has the proof that no answer comes)
for i in $(seq 20); do
  ask "$(call "\"c$i\"" index_project '{"force":true}')"
  [ $((i % 3)) = 0 ] && sleep 0.01
  ask '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c'"$i"'","reason":"enough"}}'
done
ask '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nobody"}}'
ask '{"jsonrpc":"2.0","method":"notifications/cancelled"}'
ask "$(call 20 index_project '{}')"
answer 20 && has 20 '"files":3'

# Garbage between messages
for text in '' '   ' '{' 'null' '[]' '42' '"x"' '{}' '{"jsonrpc":"1.0","id":1,"method":"ping"}' '{"jsonrpc":"2.0","id":null,"method":"ping"}' \
  '{"jsonrpc":"2.0","id":{},"method":"ping"}' '{"jsonrpc":"2.0","id":7,"result":{}}' '{"jsonrpc":"2.0","id":21,"method":"tools/call"}' \
  '{"jsonrpc":"2.0","id":21,"method":"tools/call","params":[]}' '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"count"}}' \
  "$(printf '%0500d' 0 | tr 0 '[')" $'\xff\xfe\x01'; do ask "$text"; done
ask '[{"jsonrpc":"2.0","id":30,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":31,"method":"tools/call","params":{"name":"count","arguments":{"collection":"notes"}}}]'
answer 31
case $out in '['*'"id":30,'*']') ok ;; *) bad "a batch is answered as one: ${out:0:300}" ;; esac
check "errors for garbage: $(printf '%s' "$seen" | grep -c '"error"')" [ "$(printf '%s' "$seen" | grep -c '"error"')" = 13 ]

# A second server on the same project
first_in=$in first_from=$from first_server=$server
start two
exec {in}> "$tmp/in.two" {from}< "$tmp/out.two"
ask "$(call 1 search_code '{"query":"growing pauses"}')"
answer 1 && has 1 net/retry.py
ask "$(call 2 upsert '{"collection":"notes","records":[{"id":"second","document":"from the other server"}]}')"
answer 2 && has 2 '"written":1'
ask "$(call 3 index_project '{}')"
answer 3 && has 3 '"isError":false'
exec {in}>&-
wait "$server"
exec {from}<&-
in=$first_in from=$first_from server=$first_server
ask "$(call 32 get '{"collection":"notes","ids":["second"]}')"
answer 32 && has 32 'from the other server'

# The store is removed and made again without its knowing
rm -rf .lode
ask "$(call 33 get_project_status '{}')"
answer 33 && has 33 '"state":"not indexed"'
ask "$(call 34 index_project '{}')"
answer 34 && has 34 '"added":3'
ask "$(call 35 search_code '{"query":"growing pauses"}')"
answer 35 && has 35 net/retry.py

# It ends with its input, and its worker with it
last_worker=$(worker)
exec {in}>&-
for _ in $(seq $((200 * patience))); do kill -0 "$server" 2>/dev/null || break; sleep 0.05; done
check "it ends at the end of its input" eval '! kill -0 $server 2>/dev/null'
for _ in $(seq $((100 * patience))); do kill -0 "$last_worker" 2>/dev/null || break; sleep 0.05; done
check "the worker ends too" eval '! kill -0 $last_worker 2>/dev/null'
wait "$server"
check "and well: $?" [ $? = 0 ]
server=
exec {from}<&-

# --watch: what changes is found without a call of index_project
mkfifo "$tmp/in.three" "$tmp/out.three"
"$lode" mcp --watch < "$tmp/in.three" > "$tmp/out.three" 2> "$tmp/log.three" &
server=$!
exec {in}> "$tmp/in.three" {from}< "$tmp/out.three"
for _ in $(seq $((600 * patience))); do grep -q watching "$tmp/log.three" && break; sleep 0.05; done
printf 'int zebra_crossing(void) {\n  return 1;\n}\n' > net/zebra.c
for _ in $(seq $((300 * patience))); do
  ask "$(call 1 search_code '{"query":"zebra_crossing","mode":"text"}')"
  answer 1 || break
  case $out in *net/zebra.c*) break ;; esac
  sleep 0.1
done
has 1 net/zebra.c
exec {in}>&-
wait "$server"
check "it ends while it watches: $?" [ $? = 0 ]
server=
exec {from}<&-

# ---- Many, long ----

# Sanitizers reserve address space beyond all limits
limit_memory() { case $lode in */asan/* | */tsan/*) ;; *) ulimit -v 1500000 ;; esac; }

session < <(for i in $(seq 1000); do call "$i" search_code '{"query":"socket","limit":1,"mode":"text"}'; done)
check "1,000 requests at once: $(printf '%s\n' "$out" | grep -c '"isError":false') answers" [ "$(printf '%s\n' "$out" | grep -c '"isError":false')" = 1000 ]
check "each has its own" [ "$(printf '%s\n' "$out" | sed 's/.*"id":\([0-9]*\),.*/\1/' | sort -u | grep -c .)" = 1000 ]

# The input ends before the answers are there: they are waited for, however slow the machine is (here the worker sleeps)
mkfifo "$tmp/in.slow"
"$lode" mcp < "$tmp/in.slow" > "$tmp/out.slow" 2> /dev/null &
server=$!
exec {in}> "$tmp/in.slow"
call 1 search_code '{"query":"socket","limit":1,"mode":"text"}' >&"$in"
for _ in $(seq $((600 * patience))); do [ -s "$tmp/out.slow" ] && break; sleep 0.05; done
sleeper=$(pgrep -P "$server" | head -1)
kill -STOP "$sleeper"
for i in $(seq 2 30); do call "$i" search_code '{"query":"socket","limit":1,"mode":"text"}' >&"$in"; done
exec {in}>&-
sleep 7
kill -CONT "$sleeper"
wait "$server"
check "it ends well after slow answers: $?" [ $? = 0 ]
server=
check "all that was asked before the end is answered: $(grep -c '"isError":false' "$tmp/out.slow")" [ "$(grep -c '"isError":false' "$tmp/out.slow")" = 30 ]

out=$( { head -c 100000000 /dev/zero | tr '\0' '['; echo; printf '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"'; head -c 100000000 /dev/zero | tr '\0' y; echo '"}}'
  echo '{"jsonrpc":"2.0","id":2,"method":"ping"}'; } | (limit_memory; timeout $((120 * patience)) "$lode" mcp 2>/dev/null))
count 3
check "a line of 100 MB is refused" [ "$(printf '%s\n' "$out" | grep -c 'longer than')" = 2 ]
has 2 '"result":{}'

# A client that never reads, and goes: the server goes too
{ for i in $(seq 2000); do echo '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'; done; } | timeout $((60 * patience)) "$lode" mcp 2>/dev/null | head -c 10 > /dev/null
check "a reader that goes away ends it: ${PIPESTATUS[1]}" [ "${PIPESTATUS[1]}" != 124 ]

# ---- The tools of mcp-vector-search ----

session --compat << EOF
{"jsonrpc":"2.0","id":1,"method":"tools/list"}
$(call 2 index_project '{"force":false,"file_extensions":[".py"]}')
EOF
has 1 '"name":"search_hybrid"'
has 1 '"name":"memory"'
hasnt 1 hybrid_alpha
has 2 'has no effect'
session --compat << EOF
$(call 3 search_code '{"query":"retry with pauses","limit":3,"similarity_threshold":0.3,"file_extensions":[".py",".js"]}')
$(call 4 search_similar '{"file_path":"net/socket.c","function_name":"open_socket"}')
$(call 5 search_similar '{"file_path":"net/socket.c","function_name":"no_such"}')
$(call 6 kg_query '{"entity":"open_socket","relationship":"called_by"}')
$(call 7 trace_execution_flow '{"entry_point":"main"}')
$(call 8 analyze_file '{"file_path":"net/retry.py"}')
$(call 9 save_report '{"content":"x"}')
$(call 10 search_code '{"query":"retry","no_such":1}')
$(call 11 get_complexity_hotspots '{"limit":2}')
$(call 12 search '{"query":"retry"}')
EOF
has 3 'net/retry.py:1-3'
hasnt 3 'socket.c'
has 3 '\"similarity_threshold\" has no effect'
has 4 'main.c:1-3'
hasnt 4 'net/socket.c:1'
has 5 NOT_FOUND
has 6 'main calls open_socket'
has 7 'main calls open_socket'
has 8 'function retry'
has 9 'write files'
has 10 no_such
has 10 '"isError":true'
has 11 branches
has 12 'net/retry.py:1-3'

# ---- docs/MIGRATING.md: each row's call is answered, and each tool that it names is known with --compat ----

grep '^| `[a-z_]*` |' "$here/docs/MIGRATING.md" > "$tmp/rows"
check "the table has $(wc -l < "$tmp/rows") tools" [ "$(wc -l < "$tmp/rows")" = 28 ]
# theirs: a call of one that is here, or the words with which one is refused
{ n=100; cut -d'`' -f2 "$tmp/rows" | while read -r name; do n=$((n + 1)); call $n "$name" '{"x_no_such":1}'; done; } > "$tmp/theirs"
session --compat < "$tmp/theirs"
for i in $(seq $((100 + 1)) $((100 + $(wc -l < "$tmp/rows")))); do hasnt $i 'there is no tool'; done
# ours
prompt() { echo "{\"jsonrpc\":\"2.0\",\"id\":$1,\"method\":\"prompts/get\",\"params\":{\"name\":\"$2\",\"arguments\":$3}}"; }
cut -d'|' -f3 "$tmp/rows" | grep -oE '`[^`]*`' | tr -d '`' | sort -u > "$tmp/ours"
n=200
: > "$tmp/calls"
while read -r name arguments; do
  n=$((n + 1))
  case $name in
    lode://*) echo "{\"jsonrpc\":\"2.0\",\"id\":$n,\"method\":\"resources/read\",\"params\":{\"uri\":\"$name\"}}" ;;
    review_change) prompt $n "$name" '{"changed":"main.c"}' ;;
    explain_module) prompt $n "$name" '{"path":"net"}' ;;
    impact_of_change) prompt $n "$name" '{"name":"open_socket"}' ;;
    onboard) prompt $n "$name" '{}' ;;
    *) call $n "$name" "$arguments" ;;
  esac >> "$tmp/calls"
done < "$tmp/ours"
check "calls of the table: $n" [ $n -ge 218 ]
session < "$tmp/calls"
count $((n - 200))
for i in $(seq 201 $n); do has $i '"result":'; hasnt $i '"isError":true'; done

# ---- Settings of clients ----

run() { out=$("$lode" "$@" 2>"$tmp/err"); code=$?; }
for client in claude-code cursor vscode codex gemini windsurf opencode zed kiro roo kilo qwen; do
  run mcp install --client $client --json
  check "install $client: $(cat "$tmp/err")" [ $code = 0 ]
  file=$(printf '%s' "$out" | sed 's/.*"file":"\([^"]*\)".*/\1/')
  check "$file names lode" grep -q '"mcp"' "$file"
  # an entry in the user's own settings names the project, in words that lode takes
  [ $client != windsurf ] && [ $client != zed ] || check "what $client starts" "$lode" mcp "$(sed -n 's/.*"mcp", "\([^"]*\)"\].*/\1/p' "$file")" < /dev/null
  [ $client != kilo ] || check "kilo's own form: $file" grep -q '"type": "local"' .kilo/kilo.jsonc
  cp "$file" "$tmp/once"
  run mcp install --client $client --json
  case $out in *'"state":"same"'*) ok ;; *) bad "twice: $out" ;; esac
  check "twice changes nothing" cmp -s "$file" "$tmp/once"
  run mcp install --client $client --print --no-instructions
  check "--print prints what is there" [ "$(printf '%s\n' "$out" | sed 1d)" = "$(cat "$file")" ]
  run mcp remove --client $client --json
  case $out in *'"state":"removed"'*) ok ;; *) bad "remove: $out" ;; esac
  run mcp remove --client $client --json
  case $out in *'"state":"absent"'*) ok ;; *) bad "remove twice: $out" ;; esac
done
echo '{ "mcpServers": { broken' > .mcp.json
cp .mcp.json "$tmp/broken"
run mcp install --client claude-code
check "a file that cannot be parsed is refused: $code" [ $code != 0 ]
check "and left as it is" cmp -s .mcp.json "$tmp/broken"
# Commas in comments and strings separate nothing
printf '{\n  "mcpServers": {\n    "lode": {"command": "x, y"} // ours, keep\n  }\n}\n' > .mcp.json
run mcp remove --client claude-code
check "a comment after the entry: $(cat .mcp.json)" [ "$(cat .mcp.json)" = "$(printf '{\n  "mcpServers": { // ours, keep\n  }\n}')" ]
printf '{"mcpServers": {"lode": {} /* a, b */, "other": {}}}' > .mcp.json
run mcp remove --client claude-code
check "a comment before the comma: $(cat .mcp.json)" [ "$(cat .mcp.json)" = '{"mcpServers": { "other": {}}}' ]
printf '{\n  "mcpServers": {\n    "other": {} /* a, b */, // c, d\n  }\n}\n' > .mcp.json
run mcp install --client claude-code
check "commas of comments stay: $(cat .mcp.json)" grep -qF '} /* a, b */ // c, d' .mcp.json
rm .mcp.json
# Tables below ours go with it, wherever they are; installing again keeps them
others='[mcp_servers.lode-other]
command = "a"
[mcp_servers.lode-other.env]
B = "c"'
run mcp install --client codex --json
file=$(printf '%s' "$out" | sed 's/.*"file":"\([^"]*\)".*/\1/')
printf '[mcp_servers.lode]\ncommand = "old"\n[mcp_servers.lode.env]\nKEY = "v"\n%s\n[ mcp_servers . "lode" . tools ]\nx = 1\n' "$others" > "$file"
run mcp install --client codex
check "installing keeps the tables below: $(cat "$file")" [ "$(grep -c 'KEY\|x = 1\|"old"' "$file")" = 2 ]
run mcp remove --client codex
check "the tables below are removed: $(cat "$file")" [ "$(cat "$file")" = "$others" ]
printf '[mcp_servers.lode.env]\nKEY = "v"\n' > "$file"
run mcp remove --client codex
check "also without ours: $(cat "$file")" [ ! -s "$file" ]
run mcp install --client emacs
check "an unknown client is wrong usage" [ $code = 2 ]
run mcp "$tmp/nowhere"
check "a project that is not there" [ $code != 0 ]

finish
