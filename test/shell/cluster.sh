#!/bin/bash
# cluster.sh - lode.h on a real Qdrant cluster of three nodes on loopback. Usage: cluster.sh LODE TESTS, the folder of the test programs
#
# The model test and the API tests of the embedded store, push and pull (killed, too), and a load during which a node is killed, brought
# back, stopped, and all are restarted: no acknowledged write is lost, queries go on. A node whose disk is full says so and loses nothing. The server comes from npm (deps/qdrant) and is used only when its bytes
# are the expected ones.
set -u
patience=${LODE_TEST_PATIENCE:-1} # times as long as on a quiet machine
lode=$1
tests=$2
here=$(cd "$(dirname "$0")/../.." && pwd)
passed=0
failed=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL: $*"; }
check() { local text=$1; shift; if "$@"; then ok; else bad "$text"; fi; }
skip() { echo "skipped: $*"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }

# shellcheck source=test/support/qdrant.sh
. "$here/test/support/qdrant.sh"
tmp=$(mktemp -d)
cleanup() {
  for pid in "${pids[@]}" ${load:-} ${asker:-}; do [ "$pid" -gt 0 ] 2>/dev/null && kill -CONT "$pid" 2>/dev/null && kill -9 "$pid" 2>/dev/null; done
  wait 2>/dev/null
  mountpoint -q "$tmp/full" 2>/dev/null && umount -l "$tmp/full"
  rm -rf "$tmp"
}
trap cleanup EXIT

start_all
S="qdrant://$all/test?replicas=2&shards=3"

# ---- The same answers as on one machine

# Each test makes stores of its own, and a node allocates megabytes for every part of every collection: left until the end, they
# fill a /dev/shm of 10 GB. (With small logs and one segment at the start, see start, 4 GB are enough.)
drop_all() {
  curl -fs "http://127.0.0.1:$(http 0)/collections" | grep -o '"name":"[^"]*"' | cut -d'"' -f4 |
    xargs -r -P 4 -I{} curl -fs -o /dev/null -X DELETE "http://127.0.0.1:$(http 0)/collections/{}?timeout=60"
}
run=$(LODE_TEST_CLUSTER="qdrant://$all" LODE_TEST_CLUSTER_OPTIONS="?replicas=2&shards=2" "$tests/test_model" a_cluster 2>&1)
case $run in *"1 passed, 0 failed"*) ok ;; *) bad "the model test: $run" ;; esac
drop_all
# The API tests are those of the embedded store; what is refused with LODE_UNSUPPORTED is skipped there, by that status
for program in test_api test_api_read test_api_streams test_api_upkeep; do
  run=$(LODE_TEST_STORE="qdrant://$all" LODE_TEST_STORE_OPTIONS="?replicas=2" "$tests/$program" 2>&1)
  case $run in *" passed, 0 failed"*) ok ;; *) bad "$program on the cluster: $run" ;; esac
  echo "$program on the cluster: $(tail -1 <<<"$run")"
  drop_all
done

# ---- Push and pull

record() { # id: a line of JSON
  printf '{"id":"%s","document":"record number %s of the load","metadata":{"n":%s,"even":%s},"embedding":[%s,1,0.5,-%s]}\n' \
    "$1" "$1" "$1" "$([ $(($1 % 2)) = 0 ] && echo true || echo false)" "$1" "$1"
}
for i in $(seq 1 700); do record "$i"; done >"$tmp/lines"
"$lode" --store "$tmp/local" db add notes --create --metric cosine --quiet "$tmp/lines" || bad "the local store"
out=$("$lode" --store "$tmp/local" db push notes --to "$S" --json) || bad "push: $out"
case $out in *'"records":700,"written":700,"equal":0,"extra":0'*) ok ;; *) bad "push: $out" ;; esac
out2=$("$lode" --store "$tmp/local" db push notes --to "$S" --json)
case $out2 in *'"written":0,"equal":700'*) ok ;; *) bad "a second push writes again: $out2" ;; esac
out3=$("$lode" --store "$tmp/back" db pull notes --from "$S" --json)
case $out3 in *'"written":700'*) ok ;; *) bad "pull: $out3" ;; esac
check "checksums differ" [ "${out##*checksum}" = "${out3##*checksum}" ]
check "the copy that came back is another" [ "$("$lode" --store "$tmp/local" db export notes)" = "$("$lode" --store "$tmp/back" db export notes)" ]
for q in "--vector [3,1,0.5,-3] -k 5" "--vector [3,1,0.5,-3] -k 5 --where {\"even\":true}" "--vector [9,1,0,0] -k 3 --where-document {\"\$contains\":\"9\"}"; do
  # shellcheck disable=SC2086
  check "another answer on the cluster: $q" [ "$("$lode" --store "$tmp/local" db query notes $q --json)" = "$("$lode" --store "$S" db query notes $q --json)" ]
done
# A push that is killed goes on when it is started again
for wait in 0.02 0.05 0.1 0.2 0.4; do { timeout -s KILL "$wait" "$lode" --store "$tmp/local" db push notes --to "$S" --as killed --quiet; } 2>/dev/null; done
out4=$("$lode" --store "$tmp/local" db push notes --to "$S" --as killed --json) || bad "push after it was killed: $out4"
case $out4 in *'"records":700,'*'"extra":0'*) ok ;; *) bad "push after it was killed: $out4" ;; esac
check "what was pushed by several is another" [ "${out##*checksum}" = "${out4##*checksum}" ]
"$lode" --store "$S" db backup "$tmp/file" 2>"$tmp/err"
check "a backup is refused with exit code 5" [ $? = 5 ]
check "and says what to do" grep -q "snapshots" "$tmp/err"
"$lode" --store "$S" db optimize --rebuild-unreadable 2>"$tmp/err"
check "rebuilding what cannot be read is refused with exit code 5" [ $? = 5 ]
"$lode" --store "$S" db reembed notes --model code 2>"$tmp/err"
check "another model is refused with exit code 5" [ $? = 5 ]
check "and says what to do instead" grep -q "copy it into a new collection" "$tmp/err"
check "verify" "$lode" --store "$S" db verify --quiet >/dev/null

# A cluster holds only copies of a code index: they are updated and dropped like other collections
"$lode" --store "$tmp/local" db create files --metadata '{"revision":1}' --quiet >/dev/null
"$lode" --store "$tmp/local" db add files --quiet "$tmp/lines" >/dev/null
"$lode" --store "$tmp/local" db push files --to "$S" --quiet >/dev/null || bad "a push of an index"
record 701 | "$lode" --store "$tmp/local" db add files --quiet >/dev/null
out=$("$lode" --store "$tmp/local" db push files --to "$S" --json 2>&1) || bad "a second push of an index: $out"
case $out in *'"written":1,"equal":700'*) ok ;; *) bad "a second push of an index: $out" ;; esac
check "a copy of an index is dropped" "$lode" --store "$S" db drop files --yes --quiet >/dev/null
# Collections are dropped when that was asked for in so many words
"$lode" --store "$S" db create doomed --quiet >/dev/null
"$lode" --store "$S" db drop doomed 2>"$tmp/err"
check "a question is not asked without a terminal" [ $? = 5 ]
check "drop" "$lode" --store "$S" db drop doomed --yes --quiet >/dev/null

# ---- A load, while nodes die

"$lode" --store "$S" db create load --replicas 2 --shards 3 >/dev/null || bad "create"
writer() { # ids that were acknowledged go to $tmp/acknowledged
  local i=1
  while [ ! -e "$tmp/stop" ]; do
    if { record "$i"; record "$((i + 1))"; record "$((i + 2))"; } | "$lode" --store "$S" db upsert load --quiet 2>>"$tmp/writer.err"; then
      printf '%s\n%s\n%s\n' "$i" "$((i + 1))" "$((i + 2))" >>"$tmp/acknowledged"
    fi
    i=$((i + 3))
  done
}
asking() { # a line for each query that was not answered
  while [ ! -e "$tmp/stop" ]; do
    "$lode" --store "$S" db query load --vector '[5,1,0.5,-5]' -k 3 --quiet >/dev/null 2>>"$tmp/asker.err"
    if [ $? -le 1 ]; then # 1: nothing found, as before the first write
      date +%s%N >>"$tmp/answered"
    else
      date +%s%N >>"$tmp/unanswered"
    fi
  done
}
lost() { # acknowledged ids that are not there
  sort -u "$tmp/acknowledged" >"$tmp/want"
  "$lode" --store "$S" db get load --limit 0 --include none --json 2>"$tmp/lost.err" | sed 's/.*"id":"\([^"]*\)".*/\1/' | sort -u >"$tmp/have"
  comm -23 "$tmp/want" "$tmp/have" | wc -l
}
acknowledged() { [ -e "$tmp/acknowledged" ] && wc -l <"$tmp/acknowledged" || echo 0; }
more() { # writes go on: ten more are acknowledged within a minute
  local before; before=$(acknowledged)
  for _ in $(seq 1 $((300 * patience))); do [ "$(acknowledged)" -ge $((before + 10)) ] && return 0; sleep 0.2; done
  return 1
}
writer & load=$!
asking & asker=$!
check "the load begins" more
kill -9 "${pids[2]}"
begun=$(date +%s%N)
check "writes go on without a node that was killed" more
echo "writes went on $((($(date +%s%N) - begun) / 1000000)) ms after a node was killed"
check "no acknowledged write was lost with the node" [ "$(lost)" = 0 ]
begun=$(date +%s%N)
start 2
check "the node comes back" ready 2
echo "the node was back after $((($(date +%s%N) - begun) / 1000000)) ms"
check "writes go on with it" more
kill -STOP "${pids[1]}" # cut off: it accepts connections and answers nothing
check "writes go on beside a node that hangs" more
kill -CONT "${pids[1]}"
check "and when it is back" more
touch "$tmp/stop"
wait "$load" "$asker" 2>/dev/null
load='' asker=''
check "no acknowledged write was lost ($(acknowledged) were acknowledged)" [ "$(lost)" = 0 ]
check "queries were answered" [ -s "$tmp/answered" ]
check "every one of them" [ ! -e "$tmp/unanswered" ]
echo "$(wc -l <"$tmp/answered") queries were answered, $( [ -e "$tmp/unanswered" ] && wc -l <"$tmp/unanswered" || echo 0) were not: $(sort "$tmp/asker.err" | uniq -c | sort -rn | head -2 | cut -c1-300)"

# ---- All of them restarted

for n in 0 1 2; do kill -9 "${pids[$n]}"; done
wait "${pids[@]}" 2>/dev/null
out=$("$lode" --store "$S" --busy-ms 500 db count notes 2>&1)
check "without the cluster there is a clear error" grep -q "no answer from" <<<"$out"
for n in 0 1 2; do start $n; done
for n in 0 1 2; do check "node $n starts again" ready $n; done
again() { for _ in $(seq 1 $((100 * patience))); do [ "$("$lode" --store "$S" db count notes 2>/dev/null)" = 700 ] && return 0; sleep 0.2; done; return 1; }
check "everything is there again" again
check "the load too" [ "$(lost)" = 0 ]
# ---- A disk that is full

full="$tmp/full"
mkdir -p "$full"
if mount -t tmpfs -o size=100m none "$full" 2>/dev/null; then
  start_full() {
    (cd "$full" && exec env QDRANT__SERVICE__HOST=127.0.0.1 QDRANT__SERVICE__HTTP_PORT="$(http 0)" QDRANT__SERVICE__GRPC_PORT="${ports[1]}" \
      QDRANT__TELEMETRY_DISABLED=true QDRANT__LOG_LEVEL=WARN QDRANT__STORAGE__WAL__WAL_CAPACITY_MB=1 "$binary" >>"$tmp/full.log" 2>&1) &
    pids[0]=$!
    ready 0
  }
  for n in 0 1 2; do kill -9 "${pids[$n]}"; done
  wait "${pids[@]}" 2>/dev/null
  pids=(0 0 0)
  check "a node with a small disk starts" start_full
  F="qdrant://127.0.0.1:$(http 0)/full"
  S=$F
  : >"$tmp/acknowledged"
  long=$(head -c 40000 /dev/urandom | base64 -w0)
  "$lode" --store "$F" db create load >/dev/null || bad "create on the small disk"
  code=0
  for i in $(seq 1 400); do
    for k in 1 2 3 4 5 6 7 8; do printf '{"id":"%s-%s","document":"%s","embedding":[%s,1]}\n' "$i" "$k" "$long" "$k"; done >"$tmp/block"
    "$lode" --store "$F" --busy-ms 2000 db upsert load --quiet "$tmp/block" 2>"$tmp/full.err"
    code=$?
    [ $code = 0 ] || break
    for k in 1 2 3 4 5 6 7 8; do echo "$i-$k"; done >>"$tmp/acknowledged"
  done
  echo "the disk was full after $(acknowledged) records: $(head -c 200 "$tmp/full.err")"
  check "a full disk is refused with exit code 5: $code" [ $code = 5 ]
  check "and says so" grep -qi "full" "$tmp/full.err"
  check "nothing acknowledged is lost on the full disk" [ "$(lost)" = 0 ]
  kill -9 "${pids[0]}"
  wait "${pids[0]}" 2>/dev/null
  mount -o remount,size=300m "$full"
  check "with room it starts again" start_full
  check "nothing acknowledged is lost after that" [ "$(lost)" = 0 ]
  check "and takes writes" "$lode" --store "$F" db upsert load --quiet "$tmp/block"
  kill -9 "${pids[0]}"
  wait "${pids[0]}" 2>/dev/null
  pids=(0 0 0)
  umount "$full"
  skipped=
else
  echo "skipped: a node with a full disk, because a tmpfs cannot be mounted here"
  skipped=", 1 skipped"
fi
echo "$passed passed, $failed failed$skipped"
[ "$failed" = 0 ]
