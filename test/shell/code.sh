#!/bin/bash
# code.sh - code search from end to end, in temporary projects: every command, odd names, secrets, kill -9, two indexers at once, damage.
# Usage: code.sh PATH-OF-LODE. Prints one line per failure and ends with "N passed, N failed, N skipped". LODE_TEST_FULL=1 does all of it;
# LODE_TEST_SEED=n replays the random moments.
set -u
patience=${LODE_TEST_PATIENCE:-1} # times as long as on a quiet machine
lode=$(realpath "${1:?usage: code.sh PATH-OF-LODE}")
tmp=$(mktemp -d)
children=()
cleanup() {
  for pid in "${children[@]:-}"; do [ -n "$pid" ] && kill -9 "$pid" 2>/dev/null; done
  mountpoint -q "$tmp/disk" 2>/dev/null && umount "$tmp/disk"
  chmod -R u+w "$tmp" 2>/dev/null
  rm -rf "$tmp"
}
trap cleanup EXIT
export HOME="$tmp/home" XDG_DATA_HOME="$tmp/data" NO_COLOR=1 LODE_PAGER= GIT_CONFIG_GLOBAL=/dev/null
unset LODE_STORE
mkdir -p "$HOME"
full=${LODE_TEST_FULL:-}
RANDOM=${LODE_TEST_SEED:-$$}
seed=${LODE_TEST_SEED:-$$}
. "$(dirname "$0")/../support/kit.sh"

# All that the index holds, in one order, without what differs between runs (times, inodes)
content() {
  "$lode" db export code --include document,metadata 2>/dev/null | sort
  "$lode" db get files --limit 0 --include document,metadata --json 2>/dev/null | sed -e 's/"mtime":[0-9-]*,//; s/"ctime":[0-9-]*,//; s/"inode":[0-9-]*,//; s/,"at":[0-9]*//' | sort
}
project() { # a small project of several languages in a new folder
  rm -rf "$1"
  mkdir -p "$1/src/net" "$1/tests" "$1/docs"
  cd "$1" || exit 1
  cat >src/net/retry.py <<'PY'
"""Retrying what failed."""

class Backoff:
    """Waits longer after each failure."""

    def __init__(self, first=0.1):
        self.first = first

    def next_delay(self, attempt):
        """Exponential delay with a cap."""
        return min(self.first * 2 ** attempt, 30)


def retry_request(send, attempts=5):
    """Sends a request again until it succeeds or attempts run out."""
    backoff = Backoff()
    for attempt in range(attempts):
        try:
            return send()
        except ConnectionError:
            backoff.next_delay(attempt)
    raise TimeoutError("no answer")
PY
  cat >src/parser.c <<'C'
#include <stddef.h>
/* Reads one header line: a name, a colon, a value. */
int parse_header_line(const char *line, size_t len) {
  size_t i = 0;
  while (i < len && line[i] != ':') i++;
  return i < len ? (int)i : -1;
}

struct header_table {
  const char *names[16];
  size_t count;
};
C
  cat >src/session.js <<'JS'
// Closes a session and forgets its tokens.
export function closeSession(session) {
  session.tokens.clear();
  session.closed = true;
}
JS
  cat >tests/test_parser.c <<'C'
int parse_header_line(const char *line, unsigned long len);
int main(void) { return parse_header_line("a:b", 3) == 1 ? 0 : 1; }
C
  printf '# Guide\n\n## Sessions\n\nA session is closed with closeSession.\n' >docs/guide.md
  printf 'build/\n*.tmp\n' >.gitignore
  mkdir -p build && echo 'int ignoredthing(void) { return 1; }' >build/gen.c
}

# ---- Usage

cd "$tmp" || exit 1
run 2 serach x; says 'did you mean `lode search`'
run 2 search; says "what to look for"
run 0 search --help; has "--similar"; has "Exit codes"
for shell in bash zsh fish; do run 0 completion $shell; check "no script for $shell" [ ${#out} -gt 500 ]; done
run 2 completion tcsh

# ---- Index, search, status

project "$tmp/p"
run 6 status; has "not indexed"; says "lode index"
run 6 search anything --no-refresh; says "lode index"
run 0 index; has "5 new"
check ".lode does not ignore itself" grep -q '^\*$' .lode/.gitignore
run 0 index --json; is_field unchanged 5; is_field added 0; is_field changed 0; is_field chunks 0
run 0 search "retry a request after failure" -n 3 --json; has '"path":"src/net/retry.py"'
first=$(printf '%s\n' "$out" | head -1)
case $first in *'"rank":1'*'"path":"src/net/retry.py"'*'"start_line":'*'"end_line":'*'"kind":'*'"name":'*'"language":"python"'*'"score":'*'"cosine":'*'"snippet":'*) ok ;; *) bad "$first" ;; esac
run 0 search parse_header_line --json -n 1; has '"path":"src/parser.c"'
run 0 search "where are sessions closed" -n 3; has "src/session.js:"
run 0 search header --files-only; has "src/parser.c"
run 0 search header --lang c --json; hasnt '"language":"python"'
run 0 search session --path 'docs/*' --json; has "docs/guide.md"; hasnt "src/session.js"
run 0 search session --path '*.js' --json; has "src/session.js"; hasnt "docs/guide.md"
run 0 search --mode text close --json -n 2; has '"cosine":null'
run 2 search x --lang klingon; says "no language"
run 2 search x --type gizmo; says "types are"
run 1 search qwertyzuiopasdf --mode text; says "nothing was found"; check "something was found: $out" [ -z "$out" ]
run 0 search closeSession --similar docs/guide.md:5 --json
run 1 search --similar no/such/file.c; says "not in the index"
run 1 search ignoredthing --mode text
run 0 search closeSession --context 1 --json -n 1; has "Closes a session"
run 0 search closeSession --explain --json -n 1; has '"explain":{'
run 0 status --json; is_field files 5; has '"state":"ready"'; has '"languages":{'; has '"watcher":null'
run 0 status; has "python 1"; hasnt "{"
run 0 status --skip-stats --json; hasnt '"languages"'
run 0 status --force-refresh --json; has '"python":1'
run 0 index src/parser.c --json; is_field unchanged 5
mkdir -p "$tmp/loose" && echo 'int lonely(void);' >"$tmp/loose/x.c"
run 2 index "$tmp/loose/x.c"; says "belongs to no project"; check "it was indexed all the same" [ ! -e "$tmp/loose/.lode" ]
run 1 index "$tmp/loose/none.c" --json; says "there is no file or folder"
cd src && run 0 search Backoff -n 1 --json; has '"path":"src/net/retry.py"'; cd ..

# ---- Changes

printf '\nint new_function_here(void) { return 7; }\n' >>src/parser.c
run 0 search parse_header_line -n 1 --no-refresh; says "changed since"
run 0 status --check --json; is_field changed_files 1
run 0 index --json; is_field changed 1; is_field unchanged 4
run 0 search new_function_here --json -n 1; has "src/parser.c"
touch src/session.js
run 0 index --json; is_field changed 0; is_field chunks 0
# the same size, and its time set back: its time of change tells
touch -d 2001-01-01 src/session.js
run 0 index --json; is_field changed 0
run 0 status --check --json; is_field changed_files 0
cp -p src/session.js "$tmp/before.js"
sed -i 's/closeSession/reopnSession/' src/session.js && touch -r "$tmp/before.js" src/session.js
run 0 status --check --json; is_field changed_files 1
run 0 index --json; is_field changed 1
run 0 search reopnSession --json -n 1; has "src/session.js"
cp "$tmp/before.js" src/session.js
run 0 index --json; is_field changed 1
git mv src/session.js src/closing.js 2>/dev/null || mv src/session.js src/closing.js
run 0 index --json; is_field added 1; is_field removed 1
run 0 search closeSession --json -n 1; has "src/closing.js"
echo 'def fresh_thing(): pass' >src/fresh.py
run 0 search fresh_thing --refresh --json -n 1; has "src/fresh.py"
run 0 config set search.refresh auto
rm src/fresh.py
run 0 search parse --json; hasnt "src/fresh.py"
run 0 config unset search.refresh
run 0 index --remove src/net --json; is_field removed 1
run 1 search Backoff --mode text --no-refresh
run 1 index --remove src/net
run 2 index --remove /etc; says "not in the project"
run 2 index --force --pending; says "one of them"
run 2 index --force --remove src; says "one of them"
run 2 index --pending --remove src
run 0 index --json; is_field added 1
before=$(content)
run 0 index --force
check "--force gives another index" [ "$(content)" = "$before" ]
run 0 db collections --json; hasnt ".new"
# Another model: the old vectors serve until the new ones take their place
run 2 index --model bogus; says "there is no model"
run 2 index --model none --pending; says "whole index"
run 0 index --model none --json; is_field vectors 0
run 0 config get model; has none
run 0 index --model none --json; is_field added 0
run 0 index --model code
run 0 status --json; has '"model":"code@'; has '"pending":0'
check "--model gives another index" [ "$(content)" = "$before" ]
run 0 config unset model
if "$lode" model info minilm --json 2> /dev/null | grep -q '"installed":true'; then
  # A rebuild that was killed: what it embedded is used by the next one
  mkdir many && for i in $(seq 400); do printf 'int many_%s(int x) {\n  return x * %s; /* number %s */\n}\n' $i $i $i > many/f$i.c; done
  run 0 index
  "$lode" index -q --model minilm 2> /dev/null & pid=$!
  for _ in $(seq $((400 * patience))); do
    made=$("$lode" db collections --json 2> /dev/null | sed -n 's/.*"name":"code.new","records":\([0-9]*\),"pending":\([0-9]*\).*/\1 \2/p')
    [ -n "$made" ] && [ "${made% *}" -gt "${made#* }" ] && break
    kill -0 $pid 2> /dev/null || break
    sleep 0.02
  done
  kill -9 $pid 2> /dev/null; wait $pid 2> /dev/null
  run 0 search many_5 --json -n 1; has '"cosine":0.' # by the old vectors
  run 0 index --model minilm --json
  check "nothing of the killed run was used: $out" [ "$(printf '%s' "$out" | sed -n 's/.*"reused":\([0-9]*\).*/\1/p')" -gt 0 ]
  run 0 status --json; has '"model":"minilm'; has '"pending":0'
  run 0 db collections --json; hasnt kept
  rm -rf many
  run 0 index --model code && run 0 config unset model
fi
rm -rf tests docs
run 0 index --json; is_field removed 2

# ---- Fresh by default

printf 'int came_later(void) { return 1; }\n' >src/later.c
run 1 search came_later --mode text --no-refresh; silent "brought"
run 0 search parse_header_line --no-refresh --json; has '"index":"unchecked"'
run 2 search came_later --refresh --no-refresh; says "one of them"
run 0 config set search.refresh off
run 1 search came_later --mode text
run 0 config unset search.refresh
before=$(content)
run 1 search came_later --mode text --read-only; says "1 file changed since the last index run, and the store is opened to be read"
run 0 search parse_header_line --json --read-only; has '"index":"behind"'
check "a search that only reads has written" [ "$(content)" = "$before" ]
run 0 search came_later --mode text -n 1 --json; has '"path":"src/later.c"'; hasnt '"stale"'
sed -i 's/came_later/went_later/' src/later.c
run 0 search went_later --mode text -n 1 --json; has '"path":"src/later.c"'; hasnt '"stale"'
rm src/later.c
run 1 search went_later --mode text; silent "changed since"
mkdir many && for i in $(seq 1 120); do echo "int of_many_$i;" >many/$i.c; done
run 1 search of_many_7 --mode text; says "many files changed"
run 0 search parse_header_line --json; has '"index":"behind"'
rm -r many

# ---- Settings

run 0 config list; has "watch.debounce_ms"
run 0 config get search.limit; check "got $out" [ "$out" = 10 ]
run 0 config set search.limit 1
run 0 search parse --json; check "not one line" [ "$(printf '%s\n' "$out" | wc -l)" -eq 1 ]
run 2 config set search.limit many; says "number"
run 2 config set search.limit 0; says "1 to 1000"
run 2 config set model bogus; says "there is no model"
run 2 setup --model bogus; says "there is no model"
run 0 config get model; has code
run 2 config get search.limt; says "did you mean search.limit"
echo '{broken' >.lode/config.json
run 2 search parse; says "config.json"
run 0 status --json; has '"damage":'
run 3 doctor; has "settings"
run 2 config set search.limit 3
check "a broken file was replaced" [ "$(cat .lode/config.json)" = '{broken' ]
rm .lode/config.json

# ---- Definitions by their names

mkdir -p "$tmp/names/src/web" && cd "$tmp/names" && git init -q . 2>/dev/null
cat >src/errors.rb <<'R'
module Shop
  class EmptyCart < StandardError; end
  class ClosedShop < StandardError; end
  LARGEST_ORDER = 400
end
R
cat >src/cart.ex <<'X'
defmodule Shop.Cart do
  @moduledoc "What somebody wants to buy."
  @type total :: integer
  def empty?(cart), do: cart == []
end
X
cat >src/web/server.h <<'C'
#define MOST_GUESTS 12
#define least_guests 3
class Server;
int open_gate(int guests);
class Server {
 public:
  Server(int guests);
  int guests() const { return guests_; }
 private:
  int guests_;
};
C
{
  echo '#include "server.h"'
  echo 'Server::Server(int guests) : guests_(guests) { (void)guests; (void)guests_; (void)MOST_GUESTS; }'
  echo 'int open_gate(int guests) {'
  for i in $(seq 1 150); do echo "  if (guests == $i) return open_gate(guests - $i) + open_gate($i);"; done
  echo '  return 0;'
  echo '}'
} >src/web/server.cc
{
  echo '/* Lets the guests out.'
  for i in $(seq 1 40); do echo " * Rule $i of the house says who of the guests leaves first, and why that is so, at length."; done
  echo ' */'
  echo 'int close_gate(int guests) {'
  for i in $(seq 1 80); do echo "  if (guests == $i) return close_gate(guests - $i) + $i;"; done
  echo '  return 0;'
  echo '}'
} >src/web/gate.c
run 0 index -q
first() { printf '%s\n' "$out" | head -n 1; }
is_first() { case $(first) in *"$1"*) ok ;; *) bad "wanted $1 first: $(first | cut -c1-200)" ;; esac }
if with_syntax "definitions by their names"; then
  run 0 search ClosedShop --json; is_first '"name":"ClosedShop"'; is_first '"kind":"class"'
  run 0 search LARGEST_ORDER --json; is_first '"name":"LARGEST_ORDER"'; is_first '"line":4'
  run 0 search Shop.Cart --json; is_first '"path":"src/cart.ex"'; is_first '"kind":"namespace"'
  run 0 search 'empty?' --json; is_first '"name":"empty?"'
  run 0 search total --json; is_first '"path":"src/cart.ex"'
  run 0 search MOST_GUESTS --json; is_first '"path":"src/web/server.h"'; is_first '"kind":"macro"'
  run 0 search --name EmptyCart --json; is_first '"name":"EmptyCart"'
  run 1 search --name Emptycart
  run 0 search guests -t macro --json; is_first '"kind":"macro"'; hasnt '"kind":"function"'
  run 0 search open_gate --json; is_first '"path":"src/web/server.cc"'; is_first '"start_line":3,'
  run 0 search close_gate --json; is_first '"path":"src/web/gate.c"'; is_first '"start_line":43,' # not the comment before it
  run 0 search close_gate -n 1; has "int close_gate(int guests) {"
  run 0 search Server --json; is_first '"path":"src/web/server.h"'; is_first '"kind":"class"'
  run 0 search open_gate -n 1; has "int open_gate(int guests) {"
  run 0 context --name MOST_GUESTS --json; is_first '"relation":"definition"'; is_first '"kind":"macro"'
fi

# ---- Text as it stands

run 0 search 'return open_gate(guests - 77) + open_gate(77);' --json; is_first '"path":"src/web/server.cc"'
run 0 search --exact 'guests == 150) return' --json; is_first '"path":"src/web/server.cc"'
check "more than one place" [ "$(printf '%s\n' "$out" | wc -l)" -eq 1 ]
run 1 search --exact 'Guests == 150'
run 0 search --exact 'EST_ORD' --json; is_first '"path":"src/errors.rb"'
run 1 search --exact 'src/errors.rb'; silent "weak" # a path is not text of the file
run 0 search --regex 'class \w+Shop\b' --json; is_first '"path":"src/errors.rb"'
run 0 search --regex '^  LARGEST_\w+ = \d+$' --json; is_first '"path":"src/errors.rb"'
run 1 search --regex 'errors\.rb'
run 0 search --regex 'nothing\\|class \w+Shop' --json; is_first '"path":"src/errors.rb"' # an escaped backslash, then a choice
run 1 search '"=>?@#"'; says "nothing was found"
run 2 search --regex '('; says 'expression "(" is wrong'
run 2 search --regex --exact x; says "one of them"
run 2 search --exact x --mode vector; says "take a query"
run 2 search --regex 'a)|(b'; says 'expression "a)|(b" is wrong at byte 1'
# a definition is found behind any number of uses
part=()
with_syntax "a definition by a part of its name" && part=('--exact he_targe')
mkdir many
for i in $(seq 300); do echo "int use$i(void) { return the_target($i) + athe_targets; }" >"many/use$i.c"; done
run 0 index -q
echo 'int the_target(int n) { return n; }' >many/zzz.c
run 0 index -q
for how in '--exact the_target' "${part[@]}" '--regex the_(other|target)\(' '--regex the_target' '--regex ^int\sthe_target'; do
  # shellcheck disable=SC2086
  run 0 search $how --json; is_first '"path":"many/zzz.c"'
done
run 0 search --exact the_target --path 'many/*199.c' --json; is_first '"path":"many/use199.c"'
run 0 search "the_target" --files-only --json -n 50
check "--files-only repeats a file" [ -z "$(printf '%s\n' "$out" | grep -o '"path":"[^"]*"' | sort | uniq -d)" ]
rm -r many
run 0 index -q
run 0 search '"somebody wants" cart' --json; is_first '"path":"src/cart.ex"'
check "more than the quoted text" [ "$(printf '%s\n' "$out" | wc -l)" -eq 1 ]
run 0 search '"wants somebody" open gate' --mode text --json; says "without the quotes"

# ---- An answer does not depend on how many are asked for

run 0 search "guests of the shop" --json -n 1000; all=$out
for n in 1 2 5; do
  run 0 search "guests of the shop" --json -n $n
  check "-n $n differs" [ "$out" = "$(printf '%s\n' "$all" | head -n $n)" ]
done

# ---- A question is not answered by the head of a class alone

mkdir brief && printf 'class WaterPump:\n    """Moves water."""\n\n    def start_of_pumping(self, liters):\n        self.valve.open()\n        self.motor.turn(liters)\n' >brief/pump.py
for i in $(seq 60); do printf '\n    def other_%d(self, liters):\n        self.log("%d")\n        return self.motor.turn(liters) + %d * self.speed\n' $i $i $i; done >>brief/pump.py
run 0 index -q
run 0 search "the class that moves water" --json -n 1; has '"path":"brief/pump.py"'; has 'def start_of_pumping'
run 0 search WaterPump --json -n 1; is_first '"start_line":1,'
rm -r brief
run 0 index -q

# ---- What is not there

run 1 search "zuvokal brimtex of the florbim" --json; has '"weak":true'; says "nothing matches well"
run 1 search qwoxzy_plimt --json; says "nothing matches well"
run 1 search closed_gate_cart --json; says "nothing matches well" # its words are there, the name is not
check "a weak answer fills the screen" [ "$(printf '%s\n' "$out" | wc -l)" -le 3 ]
run 1 search closed_gate_cart --json -n 5; check "-n is not what was asked for" [ "$(printf '%s\n' "$out" | wc -l)" -gt 3 ]
run 0 search "open the gate for guests" --json; hasnt '"weak"'; silent "matches well"
cd "$tmp/p" || exit 1

# ---- A cluster that does not answer (test/shell/cluster_code.sh has one that does)

for words in 'search --exact x' 'search --regex x' 'search parse' 'context --name parse' 'index' 'watch --once' 'skipped'; do
  # shellcheck disable=SC2086
  run 5 $words --store qdrant://127.0.0.1:1; says "no answer from"; silent "was removed"; silent "not brought up to date"
done
run 1 status --store qdrant://127.0.0.1:1 --json; has '"state":"unreachable"'

# ---- Reset

run 5 reset index; says "--yes"
for writes in 'reset index --yes' 'reset all --yes --no-backup' 'config set search.refresh off' 'doctor --repair' 'index'; do
  run 5 $writes --read-only; says "read"
done
mkdir "$tmp/untouched" && echo 'int x;' >"$tmp/untouched/x.c"
run 5 index "$tmp/untouched" --read-only; says "read"
run 5 watch "$tmp/untouched" --once --read-only; says "read"
check "--read-only made a folder" [ ! -e "$tmp/untouched/.lode" ]
run 0 reset index --yes; has "backup"
run 0 index -q
run 0 reset index --yes; has "backup" # and once more within the second
run 0 reset index --yes; hasnt "backup" # nothing was there
run 6 status
run 0 index
run 0 reset all --yes --no-backup
check ".lode is there" [ ! -e .lode ]

# ---- Setup and clients

project "$tmp/s"
mkdir -p "$HOME/.claude" .cursor .vscode "$HOME/.codex"
printf '{\n  // mine\n  "servers": {"other": {"command": "x"},},\n}\n' >.vscode/mcp.json
printf '{"mcpServers": {"lode": broken' >.cursor/mcp.json
printf 'model = "o"\n\n[mcp_servers.other]\ncommand = "y"\n' >"$HOME/.codex/config.toml"
run 0 setup --dry-run --json; has '"would"'
check "a dry run made something" [ ! -e .lode -a ! -e .mcp.json ]
run 0 setup --json; has '"step":"claude-code","state":"done"'; has '"step":"cursor","state":"failed"'
check "a file that cannot be parsed was changed" [ "$(cat .cursor/mcp.json)" = '{"mcpServers": {"lode": broken' ]
check "comments are gone" grep -q '// mine' .vscode/mcp.json
check "the other server is gone" grep -q '"other": {"command": "x"}' .vscode/mcp.json
check "no entry" grep -q '"lode": {"type": "stdio"' .vscode/mcp.json
check "no backup" grep -q 'mine' .vscode/mcp.json.lode-backup
check "no table for Codex" grep -q '^\[mcp_servers.lode\]' "$HOME/.codex/config.toml"
check "Codex lost a table" grep -q '^command = "y"' "$HOME/.codex/config.toml"
sums=$(cat .mcp.json .vscode/mcp.json "$HOME/.codex/config.toml" | cksum)
run 0 setup --json; has '"step":"claude-code","state":"same"'; has '"step":"index","state":"same"'
check "twice is not harmless" [ "$(cat .mcp.json .vscode/mcp.json "$HOME/.codex/config.toml" | cksum)" = "$sums" ]
run 0 status --json; has '"mcp":["claude-code"'
run 0 setup --no-mcp --no-index --model none; has "none"
run 0 config get model; has none
# A project of mcp-vector-search: its choice of files is taken over once, its entries go when asked
project "$tmp/s4"
mkdir -p .mcp-vector-search docs
printf 'x = 1\n' > only.py && printf '# notes\n' > docs/notes.md
printf '{"file_extensions":[".py",".md"],"embedding_model":"microsoft/graphcodebert-base","skip_dotfiles":true,"respect_gitignore":false,"force_include_paths":["gen dir","kept/"]}' > .mcp-vector-search/config.json
printf '{"mcpServers":{"mcp-vector-search":{"command":"mcp-vector-search","args":["mcp"]},"other":{"command":"x"}}}' > .mcp.json
printf '[mcp_servers.mcp-vector-search]\ncommand = "m"\n[mcp_servers.mcp-vector-search.env]\nA = "1"\n[mcp_servers.other]\ncommand = "y"\n' > "$HOME/.codex/config.toml"
run 0 setup --json; has 'index.extensions = .py, .md; index.exclude = !kept/'; has 'Lode has no model microsoft/graphcodebert-base'; has 'setup --replace'
run 0 config get index.extensions; has '.py, .md'
run 0 status --json; has '"python":2'; has '"markdown"'; hasnt '"c":'
check "its entry went unasked" grep -q mcp-vector-search .mcp.json
run 2 setup --replace --no-mcp; says "one of them"
run 0 setup --replace --dry-run --json; has 'take the entry of mcp-vector-search out'
check "a dry run took it" grep -q mcp-vector-search .mcp.json
run 0 setup --replace --json; has '"step":"settings","state":"same"'; has 'took the entry of mcp-vector-search out'
check "its entry is there: $(cat .mcp.json "$HOME/.codex/config.toml")" [ "$(grep -c mcp-vector-search .mcp.json "$HOME/.codex/config.toml" | grep -c ':0$')" = 2 ]
check "others are gone" grep -q '"other":{"command":"x"}' .mcp.json
check "others are gone for Codex" grep -q '^command = "y"' "$HOME/.codex/config.toml"
check "ours is not there" grep -q '"lode"' .mcp.json
echo '{"file_extensions":' > .mcp-vector-search/config.json
run 0 setup --json --no-mcp; has '"step":"settings","state":"failed"'
rm .mcp-vector-search/config.json && ln -s /etc/passwd .mcp-vector-search/config.json
run 0 setup --json --no-mcp; has '"step":"settings","state":"failed"'; has 'symbolic link, which is not followed'
printf '{"file_extensions":[".c"]}' > "$tmp/outside.json" && ln -sf "$tmp/outside.json" .mcp-vector-search/config.json
run 0 setup --json --no-mcp; has 'symbolic link, which is not followed'
rm .mcp-vector-search/config.json && mkfifo .mcp-vector-search/config.json
run 0 setup --json --no-mcp; has '"step":"settings","state":"failed"'; has 'a pipe, a socket or a device'
rm .mcp-vector-search/config.json && mkdir .mcp-vector-search/config.json
run 0 setup --json --no-mcp; has '"step":"settings","state":"failed"'; has 'Is a directory'
rmdir .mcp-vector-search/config.json && truncate -s 3G .mcp-vector-search/config.json
run 0 setup --json --no-mcp; has '"step":"settings","state":"failed"'; has 'is longer than'
run 0 config get index.extensions; has '.py, .md'
run 0 search --similar only.py:x; run 1 search --similar only.py:none; says "with that name"
run 0 search notes --path '*.py,*.md'; has docs/notes.md
rm -rf "$HOME/.claude" "$HOME/.codex"
project "$tmp/s2"
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
  # On a terminal of 80 columns no line is longer, colours and links aside, but for words that are: paths
  for words in "config list" "model list" "doctor" "setup --dry-run --no-mcp" "help" "help search" "db collections --store $tmp/s/.lode"; do
    wide=$(script -qec "stty cols 80; '$lode' $words" /dev/null </dev/null | tr -d '\r' | sed 's/\x1b\[[0-9;]*[mK]//g' | grep -vE '/[^ ]{40}' | LC_ALL=C.UTF-8 wc -L)
    check "lode $words: $wide columns on a terminal of 80" [ "$wide" -gt 20 -a "$wide" -le 80 ]
  done
else
  skip "lines on a terminal: no script(1), or no pseudo-terminals here"
fi
run 0 setup --json; has '"step":"mcp","state":"skipped"'
mkdir -p "$tmp/alone" && cp "$lode" "$tmp/alone/lode"
out=$("$tmp/alone/lode" setup --dry-run --json); has '"step":"parser","state":"failed"'; has 'make grammars'
LODE_MODELS="$tmp/none" run 1 index --quality; says 'lode model install minilm'
run 0 config set quality true
touch src/parser.c
LODE_MODELS="$tmp/none" run 0 index; says 'no second vectors are made: '
case $err in *"words alone"*) bad "the first vectors were made: $err" ;; *) ok ;; esac
run 0 db collections --json; hasnt '"quality"'

# ---- Odd names, secrets

project "$tmp/o"
mkdir -p "a b" "$(printf 'new\nline')"
echo 'int spaced_out(void);' >"a b/c d.c"
echo 'int across_lines(void);' >"$(printf 'new\nline')/x.c"
echo 'int invalid_utf(void);' >"$(printf 'bad\377name.c')"
long=$(printf 'l%.0s' $(seq 1 240))
echo 'int very_long_name(void);' >"$long.c"
mkdir -p "$long/$long"
echo 'int nested_long(void);' >"$long/$long/$long.c"
printf 'API_KEY=abcdef\n' >.env
printf -- '-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq0\n-----END RSA PRIVATE KEY-----\n' >server.key
printf 'a\0b\0c' >blob.bin
head -c 2000000 /dev/zero | tr '\0' 'x' >oneline.js
ln -s . loop
ln -s /etc outside
for i in $(seq 1 3000); do printf '('; done >deep.c
printf '\303' >cut.py
run 0 index --json
check "no secret was counted: $out" [ "$(field secret)" -ge 1 ]
for name in spaced_out across_lines invalid_utf very_long_name nested_long; do run 0 search $name --mode text --json -n 1; done
run 0 search invalid_utf --json -n 1; has 'bad\\xffname.c'
run 0 search across_lines --json -n 1; has 'new\\x0aline/x.c'
run 1 search MIIEpAIBAAKCAQEA7bq0 across --mode text --json; hasnt server.key; has '"weak":true'
run 0 index --json; is_field added 0; is_field changed 0; is_field removed 0
rm "$(printf 'bad\377name.c')"
run 0 index --json; is_field removed 1

# ---- A parser that dies

project "$tmp/d"
printf '#!/bin/sh\nkill -SEGV $$\n' >"$tmp/parser" && chmod +x "$tmp/parser"
LODE_PARSER="$tmp/parser" run 0 index --json
is_field added 5
run 0 search parse_header_line --json -n 1; has "src/parser.c"

# ---- Many files, two indexers, search meanwhile

many() { # many FOLDER N: N small files
  rm -rf "$1"
  mkdir -p "$1/src"
  awk -v dir="$1/src" -v n="$2" 'BEGIN { for (i = 0; i < n; i++) { f = dir "/f" i ".c";
    printf "/* part %d of the %s machine */\nint handle_%d(int x) {\n  return x * %d;\n}\n", i, (i % 3 ? "copying" : "sorting"), i, i > f; close(f) } }'
}
count=2000
[ -n "$full" ] && count=100000
many "$tmp/m" $count
cd "$tmp/m" || exit 1
"$lode" index -q 2>"$tmp/e1" & a=$!
"$lode" index -q 2>"$tmp/e2" & b=$!
searches=0
while kill -0 $a 2>/dev/null || kill -0 $b 2>/dev/null; do
  "$lode" search "sorting machine" --json -n 3 >/dev/null 2>"$tmp/e3"
  code=$?
  if [ $code -gt 1 ] && [ $code -ne 6 ]; then bad "search while indexing: exit $code: $(cat "$tmp/e3")"; break; fi
  "$lode" status --json >/dev/null 2>&1
  code=$?
  if [ $code -gt 1 ] && [ $code -ne 6 ]; then bad "status while indexing: exit $code"; break; fi
  searches=$((searches + 1))
done
wait $a; ca=$?
wait $b; cb=$?
check "two indexers: exit $ca and $cb: $(cat "$tmp/e1" "$tmp/e2")" [ "$ca$cb" = 00 -o "$ca$cb" = 04 -o "$ca$cb" = 40 ]
check "no search could run" [ $searches -gt 0 ]
run 0 index --json; is_field files $count; is_field added 0
run 0 status --json; is_field files $count
run 0 search handle_17 --json -n 1; has '"path":"src/f17.c"'

# ---- kill -9 at random moments, then again: the same as an undisturbed run

many "$tmp/k" 300
cd "$tmp/k" || exit 1
run 0 index
want=$(content)
rounds=12
[ -n "$full" ] && rounds=100
for round in $(seq 1 $rounds); do
  "$lode" reset index --yes --no-backup >/dev/null
  for again in 1 2 3; do
    "$lode" index -q 2>/dev/null & pid=$!
    sleep "0.0$((RANDOM % 10))$((RANDOM % 10))"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
  done
  "$lode" index -q 2>"$tmp/err" || { bad "round $round: $(cat "$tmp/err")"; break; }
  if [ "$(content)" != "$want" ]; then bad "round $round: other content after kill -9"; break; fi
done
[ "$round" = $rounds ] && ok
run 0 doctor --json; has '"ok":true'
# The same while files change, and while everything is rebuilt
for round in 1 2 3; do
  for i in $(seq $round 7 300); do echo "/* again $round */" >>src/f$i.c 2>/dev/null; done
  "$lode" index -q --force 2>/dev/null & pid=$!
  sleep "0.0$((RANDOM % 10))$((RANDOM % 10))"
  kill -9 $pid 2>/dev/null
  wait $pid 2>/dev/null
  run 0 search handle_5 --json -n 1
done
run 0 index
got=$(content)
run 0 reset index --yes --no-backup
run 0 index
check "other content after kill -9 of --force" [ "$(content)" = "$got" ]

# ---- The watcher

project "$tmp/w"
"$lode" watch --json >"$tmp/watch.out" 2>"$tmp/watch.err" & watcher=$!
children+=($watcher)
until_found() { # until_found QUERY PATH: within ten seconds
  for _ in $(seq 1 $((100 * patience))); do
    case $("$lode" search "$1" --mode text --json -n 1 2>/dev/null) in *"$2"*) ok; return ;; esac
    sleep 0.1
  done
  bad "the watcher did not bring $1: $(cat "$tmp/watch.err")"
}
until_found parse_header_line src/parser.c
echo 'int watched_function(void);' >src/watched.c
until_found watched_function src/watched.c
mkdir -p new/deep && echo 'int in_new_folder(void);' >new/deep/x.c
until_found in_new_folder new/deep/x.c
echo 'int not_this_one(void);' >build/y.c
rm -r new
for _ in $(seq 1 $((100 * patience))); do "$lode" search in_new_folder --mode text --json 2>/dev/null | grep -q new/deep || break; sleep 0.1; done
run 0 search watched_function --json; hasnt "new/deep"; hasnt "build/y.c"
run 0 status --json; has '"watcher":"process'
run 4 watch; says "watches this project;"
kill -INT $watcher
wait $watcher
code=$?
check "the watcher ended with $code" [ $code -eq 0 ]
# a search does not wait for a watcher that has not looked yet
"$lode" watch --debounce 60000 >"$tmp/watch.out" 2>"$tmp/watch.err" & watcher=$!
children+=($watcher)
for _ in $(seq 1 $((200 * patience))); do grep -q "watching" "$tmp/watch.err" && break; sleep 0.05; done
echo 'int before_the_watcher(void);' >src/before.c
run 0 search before_the_watcher --json --mode text; has '"path":"src/before.c"'; hasnt '"index"'
kill -INT $watcher
wait $watcher
# It waits for another indexer, and says so
hold_lock .lode/index.lock 0
children+=($holder)
echo 'int while_waiting(void);' >src/waiting.c
"$lode" watch --json >"$tmp/watch.out" 2>"$tmp/watch.err" & watcher=$!
children+=($watcher)
for _ in $(seq 1 $((200 * patience))); do grep -q "waiting for another indexer" "$tmp/watch.err" && break; sleep 0.05; done
check "no word about the other indexer: $(cat "$tmp/watch.err")" grep -q "waiting for another indexer" "$tmp/watch.err"
kill -INT $watcher
wait $watcher
code=$?
check "the watcher was stopped while it waited: exit $code" [ $code -eq 0 ]
"$lode" watch --json >"$tmp/watch.out" 2>"$tmp/watch.err" & watcher=$!
children+=($watcher)
release_lock
for _ in $(seq 1 $((200 * patience))); do grep -q "watching" "$tmp/watch.err" && break; sleep 0.05; done
until_found while_waiting src/waiting.c
kill -INT $watcher
wait $watcher
code=$?
check "the watcher that waited ended with $code" [ $code -eq 0 ]

# ---- The root goes away

many "$tmp/g" 400
cd "$tmp/g" || exit 1
run 0 index
for i in $(seq 0 399); do echo "/* more */" >>src/f$i.c; done
"$lode" index -q 2>"$tmp/err" & pid=$!
sleep 0.05
mv "$tmp/g" "$tmp/gone"
wait $pid
code=$?
# 1: on a busy machine it may have gone before lode looked
check "the root went away: exit $code: $(cat "$tmp/err")" [ $code -eq 0 -o $code -eq 5 -o $code -eq 1 ]
cd "$tmp/gone" || exit 1
run 0 index --json; is_field files 400; is_field removed 0
run 0 search handle_9 --json -n 1; has "src/f9.c"

mkdir "$tmp/gone1" && cd "$tmp/gone1" && rmdir "$tmp/gone1"
run 5 context nope.c:3 --project "$tmp/gone"; says "the working directory"
run 5 index --remove zz/yy "$tmp/gone"; says "the working directory"

project "$tmp/gone2"
"$lode" watch >/dev/null 2>"$tmp/err" & watcher=$!
children+=($watcher)
for _ in $(seq 1 $((200 * patience))); do grep -q watching "$tmp/err" && break; sleep 0.05; done
cd "$tmp" && rm -rf "$tmp/gone2"
wait $watcher
code=$?
check "the root of a watcher was removed: exit $code: $(cat "$tmp/err")" [ $code -eq 5 ]
check "nothing reported: $(cat "$tmp/err")" grep -q "removed" "$tmp/err"

# ---- Ctrl-C in the first run, to the whole group: what was done stays, and the next run goes on from there

many "$tmp/stopped" 6000
cd "$tmp/stopped" || exit 1
setsid "$lode" index >/dev/null 2>"$tmp/err" & pid=$!
for _ in $(seq 1 $((600 * patience))); do
  out=$("$lode" status --skip-stats --json 2>/dev/null)
  [ "$(field files)" -gt 0 ] 2>/dev/null && break
  kill -0 $pid 2>/dev/null || break
  sleep 0.02
done
kill -INT -- -$pid 2>/dev/null
wait $pid
code=$?
if [ $code -eq 0 ]; then
  skip "the run was over before SIGINT came"
else
  check "exit $code, wanted 130: $(cat "$tmp/err")" [ $code -eq 130 ]
  check "a worker felt it: $(cat "$tmp/err")" [ "$(grep -c "cut by lines" "$tmp/err")" -eq 0 ]
  run 0 status; has "unfinished"; says "goes on from there"
  run 0 index --json; case $err in *rebuilt*) bad "it was rebuilt: $err" ;; *) ok ;; esac
  check "nothing was kept: ${out:0:300}" [ "$(field unchanged)" -gt 0 ]
fi
run 0 status --json; has '"state":"ready"'

# ---- The program itself dies: it says so, leaves a report, and ends by the same signal

many "$tmp/c" 3000
cd "$tmp/c" || exit 1
for pair in SEGV:139 BUS:135 ABRT:134; do
  rm -rf "$HOME/.local/state" .lode/index.lock
  "$lode" index -q --force 2>"$tmp/err" & pid=$!
  for _ in $(seq 1 $((1000 * patience))); do grep -qs . .lode/index.lock && break; sleep 0.01; done
  kill -"${pair%:*}" $pid 2>/dev/null
  wait $pid 2>/dev/null
  code=$?
  if [ $code -eq 0 ]; then skip "the run was over before SIG${pair%:*} came"; continue; fi
  check "SIG${pair%:*}: exit $code: $(cat "$tmp/err")" [ $code -eq "${pair#*:}" ]
  check "nothing reported: $(cat "$tmp/err")" grep -q "crashed (SIG${pair%:*}) while doing .lode index" "$tmp/err"
  check "it does not say where the report goes" grep -q "lode help bugs. says where to send it" "$tmp/err"
  check "no report" grep -q "^operation   index" "$HOME"/.local/state/lode/crashes/crash-*.txt
done
run 0 index
run 0 search handle_8 --json -n 1; has "src/f8.c"

# ---- No permission, a full disk

project "$tmp/r"
run 0 index
if [ "$(id -u)" != 0 ]; then
  chmod -R a-w .
  run 0 search parse_header_line --json -n 1; has "src/parser.c"
  run 0 status
  run 5 index; says "--store"
  chmod -R u+w .
  chmod 000 src/net
  run 0 index --json; is_field removed 0
  chmod 755 src/net
else
  skip "permissions: root may do everything"
fi
if [ "$(id -u)" = 0 ] && mkdir -p "$tmp/disk" && mount -t tmpfs -o size=20m none "$tmp/disk" 2>/dev/null; then
  project "$tmp/disk/p"
  run 0 index
  echo 'int later(void);' >later.c
  mount -o remount,ro "$tmp/disk"
  run 0 search parse_header_line --json -n 1; has "src/parser.c"
  run 0 status --json; has '"state":"ready"'
  run 0 status --check --json
  run 5 index; check "nothing reported: $err" [ -n "$err" ]
  run 0 search parse_header_line --json -n 1 --refresh; has "src/parser.c"
  run 5 config set search.limit 3
  run 5 reset index --yes
  run 0 index --store "$tmp/elsewhere" --json; is_field files 6
  run 0 search later --store "$tmp/elsewhere" --json -n 1; has "later.c"
  cd "$tmp" && umount "$tmp/disk"
else
  skip "a read-only folder: no file system can be mounted here"
fi
if [ "$(id -u)" = 0 ] && mkdir -p "$tmp/disk" && mount -t tmpfs -o size=600k none "$tmp/disk" 2>/dev/null; then
  many "$tmp/big" 500
  cd "$tmp/big" || exit 1
  "$lode" index -q --store "$tmp/disk/store" 2>"$tmp/err"
  code=$?
  check "a full disk: exit $code: $(cat "$tmp/err")" [ $code -eq 5 ]
  mount -o remount,size=40m "$tmp/disk"
  run 0 index --store "$tmp/disk/store" --json
  run 0 search handle_7 --store "$tmp/disk/store" --json -n 1; has "src/f7.c"
  run 0 doctor --store "$tmp/disk/store"
  cd "$tmp" && umount "$tmp/disk"
else
  skip "a full disk: no small file system can be mounted here"
fi

# ---- Damage: no command may die of it, and nothing is lost that can be read

many "$tmp/x" 60
cd "$tmp/x" || exit 1
run 0 index
cp -r .lode "$tmp/sound"
restore() { rm -rf .lode .lode.*; cp -r "$tmp/sound" .lode; }
commands() { # every command on a damaged store: never a signal, never a hang
  local what=$1 code
  for words in "status --json" "search handle_3 --json" "search --mode text sorting" "doctor" "index -q" "config list" "status --check" \
    "index -q --remove src/f1.c" "search --similar src/f2.c:2" "search copying --refresh"; do
    # shellcheck disable=SC2086
    timeout $((60 * patience)) "$lode" $words >"$tmp/out" 2>"$tmp/err" </dev/null
    code=$?
    if [ $code -ge 124 ]; then bad "$what: lode $words: exit $code: $(tail -c 300 "$tmp/err")"; else ok; fi
  done
}
size=$(stat -c %s .lode/lode.db)
damage_rounds=5
[ -n "$full" ] && damage_rounds=60
for round in $(seq 1 $damage_rounds); do
  restore
  for _ in 1 2 3 4; do
    printf '\377\001\252' | dd of=.lode/lode.db bs=1 seek=$(((RANDOM * 32768 + RANDOM) % size)) conv=notrunc 2>/dev/null
  done
  commands "bytes flipped, round $round"
done
restore; : >.lode/lode.db; commands "an empty database"
restore; truncate -s $((size / 2)) .lode/lode.db; commands "a database cut in half"
restore; head -c "$size" /dev/urandom >.lode/lode.db; commands "a database of noise"
for file in .lode/*; do
  case $file in *lode.db | *.lock) continue ;; esac
  [ -f "$file" ] || continue
  restore; head -c 100 /dev/urandom >"$file"; commands "noise in $file"
done
restore
dd if=/dev/urandom of=.lode/lode.db bs=16384 seek=$((size / 16384 / 2)) count=3 conv=notrunc 2>/dev/null
run 0 doctor --repair; has " repaired"
check "the damaged store was not kept" ls -d .lode.damaged-* >/dev/null
run 0 doctor; run 0 status
run 0 search handle_3 --json -n 1; has "src/f3.c"
run 0 index --json; is_field files 60
run 0 status --json; is_field files 60

finish
