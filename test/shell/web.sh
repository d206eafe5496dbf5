#!/bin/bash
# web.sh PROGRAM - the web page in a real Chromium: search, filters, a collection, map, keys, themes, token, damage; and `lode ui`.
# playwright-core (as pinned) is fetched once, into build/webtest; where it, node or Chromium cannot be had the test is skipped and says
# so. Pictures go to build/webtest/*.png. Ends with "N passed, N failed[, N skipped]".
set -u
patience=${LODE_TEST_PATIENCE:-1} # times as long as on a quiet machine
lode=$(realpath "$1")
cd "$(dirname "$0")/../.." || exit 1
from=test/web
to=build/webtest
work=$(mktemp -d "${TMPDIR:-/tmp}/lode-web-XXXXXX")
server=
trap 'test -n "$server" && kill -9 "$server" 2> /dev/null; rm -rf "$work"' EXIT

skip() { echo "skipped: $1"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
fail() { echo "FAILED $*"; echo "0 passed, 1 failed"; exit 1; }

chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)}
[ -n "$chromium" ] || skip "chromium is not installed"
command -v node > /dev/null && command -v npm > /dev/null || skip "node and npm are not installed"
node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' || skip "playwright needs Node.js 20, and this is $(node --version)"
mkdir -p "$to"
cp "$from"/package.json "$from"/package-lock.json "$from"/*.mjs "$to/"
if ! cmp -s "$to/package-lock.json" "$to/installed.json" || [ ! -d "$to/node_modules" ]; then
  (cd "$to" && timeout 300 npm ci --ignore-scripts --no-audit --no-fund) > "$work/npm.log" 2>&1 || skip "npm cannot get the package playwright-core"
  cp "$to/package-lock.json" "$to/installed.json"
fi

# A project of real files, and in its store a collection of notes
project=$work/project
mkdir -p "$project/.git"
cp -r src/lib/base src/lib/query docs "$project/"
printf 'int turning_text_function(void) { /* \342\200\256 */ return 1; }\n' > "$project/turning.c"
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
  local log="$work/$1.log" folder=$2 port=
  shift 2
  (cd "$folder" && exec "$lode" "$@") 2> "$log" > /dev/null &
  server=$!
  for _ in $(seq $((1200 * patience))); do
    port=$(sed -n 's/.* at https\{0,1\}:[^ ]*:\([0-9]*\)[,;].*/\1/p' "$log" | head -1)
    [ -n "$port" ] && grep -q "is ready" "$log" && break
    kill -0 "$server" 2> /dev/null || fail "the server did not start: $(tail -3 "$log")"
    sleep 0.05
  done
  url=http://127.0.0.1:$port/
}
stop() { kill -TERM "$server"; wait "$server"; server=; }

passed=0 failed=0
# part NAME: one run of page.mjs
part() {
  local last
  timeout $((280 * patience)) node "$to/page.mjs" "$1" "$url" "$chromium" "$work/profile-$1" "$to" "$work" > "$work/$1.out" 2>&1
  last=$(tail -1 "$work/$1.out")
  if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
    [ "${BASH_REMATCH[2]}" = 0 ] || grep -v '^ok' "$work/$1.out"
  else
    failed=$((failed + 1))
    echo "FAILED $1: $(tail -15 "$work/$1.out")"
  fi
}

# `lode ui` shows its page with xdg-open, where there is a desktop
mkdir "$work/bin"
printf '#!/bin/sh\necho "$1" > %s\n' "$work/opened" > "$work/bin/xdg-open"
chmod +x "$work/bin/xdg-open"
DISPLAY=:99 PATH="$work/bin:$PATH" start ui "$project/base" ui
for _ in $(seq $((200 * patience))); do [ -s "$work/opened" ] && break; sleep 0.05; done
opened=$(cat "$work/opened" 2> /dev/null)
if [ "$opened" = "$url" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED ui opened '$opened', wanted $url"; fi
part code
part notes
part map
stop

head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$work/token"
start token "$project" serve --port 0 --token-file "$work/token"
part token
stop

start broken "$work" serve --port 0 --store "$work/broken"
part damage
stop

echo "$passed passed, $failed failed"
[ $failed = 0 ]
