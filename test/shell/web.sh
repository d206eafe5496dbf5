#!/bin/bash
# web.sh PROGRAM - the web page in a real Chromium: search, filters, a collection, map, keys, themes, token, damage; and `lode ui`.
# playwright-core (as pinned) is fetched once, into build/webtest; where it, node or Chromium cannot be had the test is skipped and says
# so. Pictures go to build/webtest/*.png. Ends with "N passed, N failed[, N skipped]".
set -u
. "$(dirname "$0")/../support/kit.sh"
begin web "$@"
export HOME="$user_home"
unset XDG_DATA_HOME
cd "$(dirname "$0")/../.." || exit 1
from=test/web
to=build/webtest
work=$tmp

skip() { echo "skipped: $1"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
fail() { echo "FAILED $*"; echo "0 passed, 1 failed"; exit 1; }

chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)}
[ -n "$chromium" ] || skip "chromium is not installed"
have_npm "$from" "$to" page.mjs || skip "$why"

# A project of real files, and in its store a collection of notes
project=$work/project
mkdir -p "$project/.git"
cp -r src/lib/base src/lib/query docs "$project/"
printf 'int turning_text_function(void) { /* \342\200\256 */ return 1; }\n' > "$project/turning.c"
awk 'BEGIN { for (i = 1; i <= 26000; i++) printf "int long_%d;\n", i }' > "$project/long.c"
awk 'BEGIN { printf "# A wide page\n\n"; for (i = 0; i < 20000; i++) printf "wide %d ", i; print "" }' > "$project/wide.md"
"$lode" index "$project" > "$work/index.log" 2>&1 || fail "the project is not indexed: $(tail -3 "$work/index.log")"
printf 'int other_function(void);\n' > "$project/turning.c"
awk 'BEGIN {
  for (i = 0; i < 60; i++) {
    side = i % 3
    printf "{\"id\":\"note-%d\",\"document\":\"%s number %d <b>is not bold</b>\",\"metadata\":{\"topic\":\"%s\",\"year\":%d},\"embedding\":[%f,%f,%f,%f]}\n", \
      i, side == 0 ? "a harbour with ships" : side == 1 ? "a garden with roses" : "a kitchen with knives", i, \
      side == 0 ? "sea" : side == 1 ? "plants" : "food", 2000 + i % 20, side == 0, side == 1, side == 2, i / 60
  }
}' > "$work/notes.jsonl"
"$lode" db add notes "$work/notes.jsonl" --create --metric cosine --store "$project/.lode" > "$work/add.log" 2>&1 || fail "no notes: $(cat "$work/add.log")"

# A store with damaged pages
awk 'BEGIN { for (i = 0; i < 3000; i++) printf "{\"id\":\"r%d\",\"document\":\"record %d of a store whose medium will fail, with some words more\",\"embedding\":[%d,1]}\n", i, i, i }' |
  "$lode" db add records --create --store "$work/broken" > "$work/add.log" 2>&1 || fail "no records: $(cat "$work/add.log")"
pages=$(($(stat -c %s "$work/broken/lode.db") / 16384))
for page in $(seq 6 3 $((pages - 1))); do
  printf 'this is not what was written here' | dd of="$work/broken/lode.db" bs=1 seek=$((page * 16384 + 9000)) conv=notrunc 2> /dev/null
done
printf 'an index that did not check' > "$work/broken/lode.db-journal.quarantine-1"

# start NAME FOLDER ARGS...: a server; prints its address into $work/NAME.url
start() {
  local log="$work/$1.log" folder=$2
  shift 2
  (cd "$folder" && exec "$lode" "$@") 2> "$log" > /dev/null &
  server=$!
  wait_ready "$log" || fail "the server did not start: $(tail -3 "$log")"
  url=http://127.0.0.1:$port/
}
stop() { kill -TERM "$server"; wait "$server"; server=; }

# part NAME: one run of page.mjs; PARTS="NAME NAME" runs only these
part() {
  case " ${PARTS:-$1} " in *" $1 "*) ;; *) return ;; esac
  tally "$1" node "$to/page.mjs" "$1" "$url" "$chromium" "$work/profile-$1" "$to" "$work"
}

# `lode ui` shows its page with xdg-open, where there is a desktop
mkdir "$work/bin"
printf '#!/bin/sh\necho "$1" > %s\n' "$work/opened" > "$work/bin/xdg-open"
chmod +x "$work/bin/xdg-open"
DISPLAY=:99 PATH="$work/bin:$PATH" start ui "$project/base" ui
for _ in $(seq $((200 * patience))); do [ -s "$work/opened" ] && break; sleep 0.05; done
opened=$(cat "$work/opened" 2> /dev/null)
if [ "$opened" = "$url" ]; then ok; else bad "ui opened '$opened', wanted $url"; fi
part code
part notes
part map
part widths
stop

# A large collection: with LODE_TEST_FULL
if [ -n "${LODE_TEST_FULL:-}" ]; then
  awk 'BEGIN { srand(7); for (i = 0; i < 60000; i++) { printf "{\"id\":\"r%d\",\"document\":\"record word%d of t%d\",\"metadata\":{\"topic\":\"t%d\"},\"embedding\":[", i, i, i % 10, i % 10
    for (k = 0; k < 16; k++) printf "%s%.3f", k ? "," : "", rand() - 0.5 + 2 * (k == i % 10); print "]}" } }' |
    "$lode" db add large --create --metric cosine --store "$work/large" > "$work/add.log" 2>&1 || fail "no large collection: $(cat "$work/add.log")"
  start large "$work" serve --port 0 --store "$work/large"
  part large
  stop
fi

# A server that is killed, and comes back at the same port
start gone "$project" serve --port 0
LODE=$lode PROJECT=$project SERVER=$server part gone
kill -KILL "$server" 2> /dev/null
wait "$server" 2> /dev/null || true
server=

head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$work/token"
start token "$project" serve --port 0 --token-file "$work/token"
part token
stop

# Two projects that are not indexed; the page of one is not that of `lode ui`
for name in fresh elsewhere; do
  mkdir -p "$work/$name/.git"
  cp -r src/lib/query "$work/$name/"
  printf 'AWS_SECRET_ACCESS_KEY=%s\n' not-a-real-one > "$work/$name/.env"
done
start fresh "$work/fresh/query" ui --no-open
LODE=$lode PROJECT=$work/fresh part unindexed
stop
start elsewhere "$work" serve --port 0 --store "$work/elsewhere/.lode"
LODE=$lode PROJECT=$work/elsewhere part elsewhere
stop

start broken "$work" serve --port 0 --store "$work/broken"
part damage
stop

finish
