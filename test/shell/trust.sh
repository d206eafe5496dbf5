#!/bin/bash
# trust.sh - whose is a .lode that was found? Neighbours' folders, repositories in repositories, clones, copies, and settings that reach
# beyond the folder. Usage: trust.sh PATH-OF-LODE. Ends with "N passed, N failed, N skipped".
set -u
lode=$(realpath "${1:?usage: trust.sh PATH-OF-LODE}")
tmp=$(mktemp -d)
server=
cleanup() {
  [ -n "$server" ] && kill "$server" 2>/dev/null
  rm -rf "$tmp"
}
trap cleanup EXIT
chmod 755 "$tmp"
export HOME="$tmp/home" XDG_DATA_HOME="$tmp/data" NO_COLOR=1 LODE_PAGER= GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_ALLOW_PROTOCOL=file
unset LODE_STORE LODE_TRUST SUDO_UID
mkdir -p "$HOME"
list="$XDG_DATA_HOME/lode/trusted"
. "$(dirname "$0")/../support/kit.sh"

sources() { # FOLDER
  mkdir -p "$1/src"
  printf 'int count_sheep(int n) { return n + 1; }\n' >"$1/src/sheep.c"
  printf 'def shear_sheep(n):\n    """Takes the wool."""\n    return n - 1\n' >"$1/src/wool.py"
}
project() { # FOLDER: with an index
  sources "$1"
  (cd "$1" && "$lode" index -q) || bad "no index in $1"
}
ask_to_index() { # over MCP; long work ends with the input
  : >"$tmp/mcp"
  {
    printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"index_project","arguments":{}}}'
    for _ in $(seq $((400 * patience))); do [ -s "$tmp/mcp" ] && break; sleep 0.05; done
  } | "$lode" mcp >"$tmp/mcp" 2>/dev/null
}
# Nothing is said, but for what every index says where there are no grammars
no_note() {
  err=$(printf '%s\n' "$err" | grep -v 'files were cut by lines, not by syntax')
  silent note
}
forget_all() { rm -rf "$XDG_DATA_HOME/lode/trusted"*; }

# ---- A neighbour's .lode above

mkdir -p "$tmp/shared"
project "$tmp/shared"
sources "$tmp/shared/mine/deep"
cd "$tmp/shared/mine/deep" || exit 1
run 0 search sheep; has sheep.c; silent note
if [ "$(id -u)" = 0 ]; then
  chown -R 65534 "$tmp/shared/.lode"
  run 6 search sheep --no-refresh; says "belongs to another user"; says "not indexed yet"
  run 1 db collections --json; says "belongs to another user"; says "$XDG_DATA_HOME/lode"
  run 6 status --json; has "\"root\":\"$tmp/shared/mine/deep\""
  # ... nor where it lies right beside the sources
  (cd "$tmp/shared" && "$lode" search sheep 2>"$tmp/err"); check "a neighbour's store was searched" [ $? -eq 5 ]
  check "no reason" grep -q "belongs to another user" "$tmp/err"
  for writes in "index $tmp/shared" "watch --once $tmp/shared" "trust $tmp/shared" "reset all --yes --project $tmp/shared" \
    "config set search.limit 3 --project $tmp/shared"; do
    run 5 $writes; says "belongs to another user"
  done
  run 5 index "$tmp/shared"; says "LODE_TRUST=1"
  # ... and its settings are not read
  for settings in '{"model": "openai:x"}' '{"search.limit": "junk"}'; do
    echo "$settings" >"$tmp/shared/.lode/config.json" && chown 65534 "$tmp/shared/.lode/config.json"
    run 5 index "$tmp/shared"; says "belongs to another user"; silent "reaches beyond"
  done
  (cd "$tmp/shared" && "$lode" status 2>"$tmp/err" >"$tmp/out"); check "settings of a neighbour: $(cat "$tmp/err")" [ "$(grep -c "reaches beyond\|junk" "$tmp/err")" -eq 0 ]
  rm "$tmp/shared/.lode/config.json"
  # Who named it meant it; sudo is still oneself; junk is nobody
  run 0 search sheep --project "$tmp/shared" --store "$tmp/shared/.lode"; has sheep.c
  SUDO_UID=65534 run 0 search sheep; has sheep.c
  SUDO_UID=65533 run 6 search sheep --no-refresh
  SUDO_UID=65534x run 6 search sheep --no-refresh
  SUDO_UID= run 6 search sheep --no-refresh
  LODE_TRUST=1 run 0 search sheep; has sheep.c
  LODE_TRUST=0 run 6 search sheep --no-refresh
  # A user in a folder of root's
  chown -R 0 "$tmp/shared/.lode"
  chmod -R a+rX "$tmp/shared/.lode"
  mkdir "$tmp/nobody" && chown 65534 "$tmp/nobody"
  out=$(HOME=$tmp/nobody XDG_DATA_HOME=$tmp/nobody setpriv --reuid=65534 --regid=65534 --clear-groups "$lode" search sheep 2>&1)
  check "nobody uses root's store: $out" [ $? -eq 6 ]
  has "belongs to another user"
  chmod -R go-rwx "$tmp/shared/.lode"
else
  skip "stores of other users: not root"
fi
# Writable by others
if [ "$(id -u)" = 0 ]; then
  chgrp 65534 "$tmp/shared/.lode"
  chmod 770 "$tmp/shared/.lode"; run 6 search sheep --no-refresh; says "can be written by other users"; says "passed over"
  (cd "$tmp/shared" && "$lode" search sheep 2>"$tmp/err"); check "a shared store was searched" [ $? -eq 5 ]
  check "no advice: $(cat "$tmp/err")" grep -q "chmod -R go-w $tmp/shared/.lode" "$tmp/err"
  check "passed over and refused: $(cat "$tmp/err")" [ "$(grep -c "passed over" "$tmp/err")" -eq 0 ]
  chmod -R go-w "$tmp/shared/.lode"; run 0 search sheep; silent note
  chgrp 0 "$tmp/shared/.lode"
else
  skip "folders of other groups: not root"
fi
chmod 702 "$tmp/shared/.lode"; run 6 search sheep --no-refresh; says "can be written by other users"
chmod 711 "$tmp/shared/.lode"; run 0 search sheep
chmod 666 "$tmp/shared/.lode/lode.db"; run 6 search sheep --no-refresh; says "can be written by other users"
chmod 700 "$tmp/shared/.lode"; run 0 search sheep; has sheep.c # nobody else gets there
ln "$tmp/shared/.lode/lode.db" "$tmp/second-name"; run 6 search sheep --no-refresh; says "can be written by other users"
rm "$tmp/second-name"; chmod 600 "$tmp/shared/.lode/lode.db"; run 0 search sheep

# ---- Nothing is looked for above a .git

mkdir "$tmp/shared/mine/.git"
run 6 search sheep --no-refresh; says "not indexed yet"
run 6 status --json; has "\"root\":\"$tmp/shared/mine\""
run 0 search sheep --store "$tmp/shared/.lode"; has sheep.c
rmdir "$tmp/shared/mine/.git"
for git in "gitdir: ../.git/modules/mine" "gitdir: /nowhere" "" ; do # submodules, worktrees, and what was one
  printf '%s\n' "$git" >"$tmp/shared/mine/.git"
  run 6 search sheep --no-refresh; says "not indexed yet"
done
rm "$tmp/shared/mine/.git"; ln -s nowhere "$tmp/shared/mine/.git"
run 6 search sheep --no-refresh
rm "$tmp/shared/mine/.git"
run 0 search sheep; has sheep.c
# The .lode beside a .git is the nearest one
git init -q "$tmp/shared"; run 0 search sheep; has sheep.c
rm -rf "$tmp/shared/.git"

# ---- A neighbour's .git above: no root, and nothing of it is read

if [ "$(id -u)" = 0 ]; then
  common="$tmp/common"
  sources "$common/victim" && chmod 1777 "$common"
  git init -q "$common" && git -C "$common" config core.excludesFile "$common/rules" && mkdir -p "$common/.git/info"
  printf 'victim/*\n' | tee "$common/.gitignore" "$common/.git/info/exclude" >"$common/rules"
  printf 'int evil_sheep(void) { return 0; }\n' >"$common/evil.c"
  chown -R 12345 "$common/.git" "$common/.gitignore" "$common/rules" "$common/evil.c"
  cd "$common/victim" || exit 1
  run 0 index --json; has "\"root\":\"$common/victim\""; says "$common/.git belongs to another user"
  check "an index was made in the neighbour's folder" [ ! -e "$common/.lode" ]
  run 0 search sheep; has sheep.c; hasnt evil
  rm -rf .lode
  run 0 index -q --store "$tmp/apart" --json; has "\"root\":\"$common/victim\""
  run 0 search sheep --store "$tmp/apart"; has sheep.c; hasnt evil
  SUDO_UID=12345 run 6 status --json; has "\"root\":\"$common\""; silent "another user"
  LODE_TRUST=1 run 6 status --json; has "\"root\":\"$common\""
  cd src || exit 1
  run 6 status --json; has "\"root\":\"$common/victim/src\""
  rm -rf "$common/.git" && printf 'gitdir: %s\n' "$tmp/hub/.git" >"$common/.git" && chown 12345 "$common/.git"
  run 6 status --json; has "\"root\":\"$common/victim/src\""
  # One's own between is the project's
  mkdir "$common/victim/.git"; run 6 status --json; has "\"root\":\"$common/victim\""; silent "another user"
  rm -rf "$common" "$tmp/apart"
else
  skip "repositories of other users: not root"
fi

# ---- A clone that brings a store

mkdir "$tmp/hub"
project "$tmp/hub/origin"
cd "$tmp/hub/origin" || exit 1
git init -q . && git add -A && git commit -qm one
run 0 search sheep; silent note # not tracked: .lode says * in its .gitignore
git add -f .lode && git commit -qm two
# Made here, but git may have changed its files since: it takes the user's word, and is said each time
run 5 search sheep; says "lode trust $tmp/hub/origin"; says "git rm -r --cached .lode"
run 0 trust
run 0 search sheep; says "git tracks files of $tmp/hub/origin/.lode"
run 0 index; says "git tracks files of"; run 0 db count code; says "git tracks files of"
run 0 doctor; has "git rm -r --cached .lode"
git clone -q "$tmp/hub/origin" "$tmp/clone"
chmod -R go-w "$tmp/clone"
cd "$tmp/clone/src" || exit 1
echo '{"id":"a","document":"b"}' >"$tmp/records"
for refused in "search sheep" "context --name count_sheep" "index" "index --pending" "watch --once" "skipped" "setup --no-mcp" "serve --port 0" "ui --no-open" \
  "db collections" "db create x" "db drop code --yes" "db rename code x" "db add x $tmp/records" "db import x $tmp/records" "db upsert code $tmp/records" \
  "db update code $tmp/records" "db get code" "db query code --text sheep" "db embed code" "db reembed code --model code" "db delete code --ids a" "db count code" "db facets code kind" \
  "db map code" "db stats" "db verify" "db salvage $tmp/salvaged" "db backup $tmp/copied" "db restore $tmp/records" "db compact" "db optimize" "db export code" \
  "db push code --to $tmp/pushed" "db pull code --from $tmp/shared/.lode" "rescue chroma $tmp/home"; do
  run 5 $refused; says "lode trust $tmp/clone"; says "LODE_TRUST=1"
  check "lode $refused: printed $out" [ -z "$out" ]
done
check "something was made of an untrusted store" [ ! -e "$tmp/salvaged" -a ! -e "$tmp/copied" -a ! -e "$tmp/pushed" ]
run 0 status --json; has '"state":"untrusted"'; has '"trust":"untrusted"'; has "git tracks"
run 3 doctor; has "lode trust"
run 0 model list
check "something was written into an untrusted store" git -C "$tmp/clone" diff --quiet
check "an untrusted folder is in the list" [ "$(grep -c "$tmp/clone" "$list")" -eq 0 ]
printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_code","arguments":{"query":"sheep"}}}' \
  '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get","arguments":{"collection":"code"}}}' \
  '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"get_project_status","arguments":{}}}' |
  "$lode" mcp >"$tmp/mcp" 2>/dev/null
check "an agent searched an untrusted store" [ "$(grep -c '"isError":true' "$tmp/mcp")" -eq 2 ]
check "an agent is not told why" [ "$(grep -c 'lode trust' "$tmp/mcp")" -eq 3 ]
check "no status for an agent" grep -q '"state":"untrusted"' "$tmp/mcp"
LODE_TRUST=1 run 0 search sheep; has sheep.c
run 0 search sheep --store ../.lode; has sheep.c
run 5 search sheep
run 0 trust; has "$tmp/clone/.lode"
run 0 search sheep; has sheep.c; silent "from now on"; says "git tracks files of $tmp/clone/.lode"
printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_code","arguments":{"query":"sheep"}}}' | "$lode" mcp >"$tmp/mcp" 2>/dev/null
check "an agent is not told that git tracks the store: $(cat "$tmp/mcp")" grep -q '"notes":\[".*git tracks files of' "$tmp/mcp"
run 0 status --json; has '"trust":"ours"'
run 0 trust --list --json; has "\"folder\":\"$tmp/clone/.lode\",\"level\":\"trusted\""
run 0 trust --forget; run 5 search sheep
run 1 trust --forget
run 0 trust
# What a pull brings is not what was trusted
(cd "$tmp/hub/origin" && echo 'int lambs(void) { return 7; }' >>src/sheep.c && "$lode" index -q && git add -A -f . && git commit -qm three)
git -C "$tmp/clone" checkout -q . && git -C "$tmp/clone" pull -q 2>/dev/null
run 5 search sheep; says "lode trust"
# ... nor what it brings beside a store of the user's own: git overwrites what is ignored
mkdir "$tmp/hub/later" && sources "$tmp/hub/later" && (cd "$tmp/hub/later" && git init -q . && git add -A && git commit -qm one)
git clone -q "$tmp/hub/later" "$tmp/pulled" && cd "$tmp/pulled" || exit 1
run 0 index -q; run 0 search sheep; silent note
(cd "$tmp/hub/later" && mkdir -p .lode/segments && echo junk >.lode/segments/0123456789abcdef.seg && git add -Af && git commit -qm two)
git pull -q 2>/dev/null; check "nothing was pulled" [ -e .lode/segments/0123456789abcdef.seg ]
for refused in "search sheep" index "db count code" "watch --once"; do run 5 $refused; says "git rm -r --cached .lode"; done
# ... also if it was trusted before
run 0 trust; run 0 search sheep; says "git tracks files of"
git rm -rq --cached .lode && run 0 search sheep && silent note
git reset -q --hard; rm -rf .lode/segments/0123456789abcdef.seg; git rm -rq --cached .lode; run 0 trust --forget; run 0 search sheep; run 0 trust
git reset -q; run 5 search sheep; says "git rm -r --cached .lode"
# The user's word about a tracked store ends when git no longer tracks it
git clone -q "$tmp/hub/origin" "$tmp/ended" && chmod -R go-w "$tmp/ended" && cd "$tmp/ended" || exit 1
run 0 trust; run 0 search sheep; says "git tracks files of"
git rm -rq --cached .lode && git commit -qm out; run 0 search sheep; silent note
git clone -q . "$tmp/hub/ended" && (cd "$tmp/hub/ended" && mkdir -p .lode/segments && echo junk >.lode/segments/0123456789abcdef.seg && git add -Af && git commit -qm back)
git pull -q "$tmp/hub/ended" 2>/dev/null; check "nothing was pulled" [ -e .lode/segments/0123456789abcdef.seg ]
run 5 search sheep; says "git rm -r --cached .lode"
# A clone that brings everything but lode.db, or one file that is none of Lode's
git clone -q "$tmp/hub/later" "$tmp/nostore" && chmod -R go-w "$tmp/nostore" && cd "$tmp/nostore" || exit 1
for round in there removed; do
  for refused in index "search sheep" "watch --once" "setup --no-mcp" "skipped"; do run 5 $refused; says "git rm -r .lode"; done
  run 0 status --json; has '"state":"untrusted"'
  run 3 doctor; has "git rm -r .lode"
  ask_to_index
  check "an agent is not told: $(cat "$tmp/mcp")" grep -q 'git rm -r .lode' "$tmp/mcp"
  check "a store was made" [ ! -e .lode/lode.db ]
  check "a store is expected" [ "$(grep -c "$tmp/nostore" "$list")" -eq 0 ]
  run 1 trust; says "no store"
  [ $round = there ] && run 5 db create x && says "git rm -r .lode" && rm -rf .lode
done
git rm -rq .lode; run 0 index; no_note; run 0 search sheep; silent note
mkdir "$tmp/hub/odd" && sources "$tmp/hub/odd" && mkdir -p "$tmp/hub/odd/.lode/config" && echo '{}' >"$tmp/hub/odd/.lode/config/settings"
(cd "$tmp/hub/odd" && git init -q . && git add -Af && git commit -qm one && git clone -q . "$tmp/odd") && chmod -R go-w "$tmp/odd" && cd "$tmp/odd" && run 5 index && says "git rm -r .lode"
LODE_TRUST=1 run 0 index -q
# Trust is of a store, not of a place where one may appear later
mkdir -p "$tmp/place/.lode" && cd "$tmp/place" && run 1 trust && says "no store"
cp -a "$tmp/clone/.lode/." .lode/ && chmod -R go-w .lode && run 0 search sheep && says "is used from now on"
# An untrusted store can be removed, unread: its lode.db cannot be a database
git clone -q "$tmp/hub/origin" "$tmp/removed" && cd "$tmp/removed" && chmod -R go-w . && echo mine >.lode/mine || exit 1
cp .lode/lode.db "$tmp/untouched" && rm .lode/lode.db && mkfifo .lode/lode.db
run 5 reset index --yes --no-backup; says "lode reset all"
rm .lode/lode.db && cp "$tmp/untouched" .lode/lode.db && chmod 600 .lode/lode.db
run 5 reset index --yes --no-backup; says "not known what else is in it"
run 0 reset index --yes; check "the store is there" [ ! -e .lode/lode.db ]
check "the copy is not as it was" cmp -s .lode.backup-*/lode.db "$tmp/untouched"
git checkout -q . && chmod -R go-w . && run 0 reset all --yes --no-backup
check "a file of others went, or one of Lode's stayed: $(ls -A .lode)" [ "$(ls -A .lode)" = mine ]
# A worktree, a submodule, a .lode that is a submodule itself
git -C "$tmp/hub/origin" worktree add -q "$tmp/worktree" 2>/dev/null
chmod -R go-w "$tmp/worktree"
cd "$tmp/worktree" && run 5 search sheep && says "lode trust"
git init -q "$tmp/super" && git -C "$tmp/super" -c protocol.file.allow=always submodule add -q "$tmp/hub/origin" part 2>/dev/null
chmod -R go-w "$tmp/super"
cd "$tmp/super/part/src" && run 5 search sheep && says "lode trust"
mkdir "$tmp/hub/bare" && cp -a "$tmp/hub/origin/.lode" "$tmp/hub/bare/s" && rm "$tmp/hub/bare/s/.gitignore"
git -C "$tmp/hub/bare/s" init -q . && git -C "$tmp/hub/bare/s" add -A && git -C "$tmp/hub/bare/s" commit -qm s
git init -q "$tmp/super2" && git -C "$tmp/super2" -c protocol.file.allow=always submodule add -q "$tmp/hub/bare/s" .lode 2>/dev/null
chmod -R go-w "$tmp/super2"
cd "$tmp/super2" && run 5 search sheep && says "lode trust"
# Tracked by the repository around, though a nearer one is empty
git clone -q "$tmp/hub/origin" "$tmp/around" && chmod -R go-w "$tmp/around" && mkdir "$tmp/around/inner"
git -C "$tmp/around" mv .lode inner/.lode 2>/dev/null && git init -q "$tmp/around/inner"
cd "$tmp/around/inner" && run 5 search sheep && says "lode trust"
# A sparse index does not list the files of a folder that is not checked out: the user's own store there is used
git init -q "$tmp/sparse" && sources "$tmp/sparse/a" && sources "$tmp/sparse/b" && cd "$tmp/sparse" && git add -A && git commit -qm one || exit 1
git sparse-checkout set --cone --sparse-index a
check "git lists the files of the folder" [ "$(git ls-files --sparse | grep -c '^b/$')" -eq 1 ]
sources "$tmp/sparse/b/own" && mkdir "$tmp/sparse/b/own/.lode" && cd "$tmp/sparse/b/own" || exit 1
run 0 index -q; silent note; check "no store in the folder" [ -e .lode/lode.db ]; run 0 search sheep; has sheep.c; silent note
cp -a "$tmp/sparse/b/own" "$tmp/sparse/b/other" && cd "$tmp/sparse/b/other" && run 5 search sheep && says "is sparse there" && says "lode trust"
# Git's index is damaged: it is not known, so it is asked
cp -a "$tmp/hub/origin" "$tmp/damaged" && chmod -R go-w "$tmp/damaged" && printf 'DIRC junk' >"$tmp/damaged/.git/index"
cd "$tmp/damaged" && run 5 search sheep && says "index cannot be read"

# ---- Settings that came with a clone under umask 002: the group is the user's own

if [ "$(id -gn)" = "$(id -un)" ]; then
  mkdir "$tmp/hub/grouped" && sources "$tmp/hub/grouped" && mkdir "$tmp/hub/grouped/.lode" && echo '{"search.limit": 3}' >"$tmp/hub/grouped/.lode/config.json"
  (cd "$tmp/hub/grouped" && git init -q . && git add -Af && git commit -qm one)
  (umask 002 && git clone -q "$tmp/hub/grouped" "$tmp/group")
  cd "$tmp/group" || exit 1
  check "the clone is not open to the group" [ "$(stat -c %a .lode .lode/config.json | tr '\n' ' ')" = "775 664 " ]
  umask 002
  run 0 index -q; run 0 search sheep; has sheep.c; silent note; run 0 status --json; has '"trust":"ours"'
  umask 022
  chmod o+w .lode/config.json; run 5 search sheep; says "chmod -R go-w $tmp/group/.lode"; chmod o-w .lode/config.json
  if [ "$(id -u)" = 0 ]; then chgrp 65534 .lode/config.json; run 5 index; says "can be written by other users"; silent "passed over"; fi
else
  skip "a private group: $(id -un) is in $(id -gn)"
fi

# ---- The user's own, unknown so far: adopted once

cp -a "$tmp/shared" "$tmp/copy"
cd "$tmp/copy" || exit 1
run 0 search sheep; has sheep.c; says "is used from now on"; says "lode trust"
run 0 search sheep; silent note
run 0 status --json; has '"trust":"adopted"'
run 0 doctor; has "trust"
mv "$tmp/copy" "$tmp/moved" && cd "$tmp/moved" || exit 1
run 0 search sheep; silent note # the same file elsewhere
cp -a .lode "$tmp/backup" && rm -rf .lode && cp -a "$tmp/backup" .lode
run 0 search sheep; silent note # the same store at the same place
rm -rf .lode && cp -a "$tmp/hub/origin/.lode" .lode && chmod -R go-w .lode
run 0 search sheep; says "is used from now on" # another store in its place
forget_all
cd "$tmp/shared" || exit 1
run 0 search sheep --read-only; says "is used from now on"
check "--read-only wrote the list" [ ! -e "$list" ]
run 0 search sheep; says "is used from now on" # as after an update from a lode that had no list
run 0 search sheep; silent note
run 0 reset index --yes --no-backup; run 0 index; no_note
run 0 search sheep; silent note
run 0 status --json; has '"trust":"ours"'
# A store that was repaired is still the user's
dd if=/dev/urandom of=.lode/lode.db bs=16384 seek=$(($(stat -c %s .lode/lode.db) / 16384 / 2)) count=3 conv=notrunc 2>/dev/null
run 0 doctor --repair; has repaired
run 0 search sheep; silent "from now on"
run 0 status --json; has '"trust":"ours"'
mkdir -p "$tmp/notes/.lode" && cd "$tmp/notes" || exit 1
run 0 db create memory; says "made a store"; silent "from now on"
run 0 db collections; silent note
mkdir "$tmp/agent" && sources "$tmp/agent" && cd "$tmp/agent" || exit 1
ask_to_index
run 0 search sheep; silent note # made by an agent of this user
cp -a "$tmp/agent" "$tmp/agent2" && cd "$tmp/agent2" || exit 1
ask='{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_code","arguments":{"query":"sheep"}}}'
printf '%s\n' "$ask" | "$lode" mcp >"$tmp/mcp" 2>/dev/null
check "an agent is not told of an adoption: $(cat "$tmp/mcp")" grep -q '"notes":\[".*is used from now on' "$tmp/mcp"
printf '%s\n' "$ask" | "$lode" mcp >"$tmp/mcp" 2>/dev/null
check "an agent is told twice" [ "$(grep -c 'is used from now on' "$tmp/mcp")" -eq 0 ]

# What an adopted store's settings say beyond showing and choosing files has no effect
cp -a "$tmp/shared" "$tmp/auto" && cd "$tmp/auto" && echo '{"search.refresh":"auto","search.limit":1}' >.lode/config.json
echo 'int brought_later(void) { return 1; }' >src/later.c
run 1 search brought_later --mode text; says "is used from now on"; says "search.refresh = auto"
run 0 status --json; has '"held":{"search.refresh":"auto"}'
run 1 search brought_later --mode text; says "search.refresh = auto"; silent "is used from now on"
run 0 trust; run 0 search brought_later --mode text; silent note

# ---- Settings that reach beyond the folder

cat >"$tmp/server.py" <<'PY'
import http.server, json, sys
class Server(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
        open(sys.argv[1], "a").write("%d texts for %s\n" % (len(texts), asked["model"]))
        body = json.dumps({"embeddings": [[1.0, float(len(t) % 7), 0.5, 0.25] for t in texts]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
s = http.server.HTTPServer(("127.0.0.1", 0), Server)
open(sys.argv[2], "w").write(str(s.server_port))
s.serve_forever()
PY
: >"$tmp/sent"
python3 "$tmp/server.py" "$tmp/sent" "$tmp/port" & server=$!
for _ in $(seq $((100 * patience))); do [ -s "$tmp/port" ] && break; sleep 0.05; done
export OLLAMA_HOST="http://127.0.0.1:$(cat "$tmp/port")"
sent() { wc -l <"$tmp/sent"; }

git init -q "$tmp/hub/settings" && sources "$tmp/hub/settings" && mkdir "$tmp/hub/settings/.lode"
echo '{"model":"ollama:spy","search.refresh":"auto","index.secrets":true,"search.limit":1,"index.max_file":5000}' >"$tmp/hub/settings/.lode/config.json"
git -C "$tmp/hub/settings" add -A -f && git -C "$tmp/hub/settings" commit -qm one
git clone -q "$tmp/hub/settings" "$tmp/team" && chmod -R go-w "$tmp/team" && cd "$tmp/team" || exit 1
run 0 index; says "model = ollama:spy"; says "search.refresh = auto"; says "index.secrets = index"; says "lode trust"
run 0 search sheep --json; check "safe settings count" [ "$(printf '%s\n' "$out" | wc -l)" -eq 1 ]; silent "is used from now on"
echo 'int freshly_added(void) { return 1; }' >src/fresh.c
run 1 search freshly_added --mode text --no-refresh
run 0 config get model; check "the model is $out" [ "$out" = code ]
run 0 config list --json; has '"held":"ollama:spy"'
run 0 setup --no-mcp; run 0 status --json; has '"held":{"model":"ollama:spy"'; has '"model_wanted":"code"'
run 0 doctor; has "lode trust"
printf '%s\n' "$ask" | "$lode" mcp >"$tmp/mcp" 2>/dev/null
check "an agent is not told of settings without effect" grep -q '"notes":\[".*ollama:spy' "$tmp/mcp"
check "a clone's settings sent $(cat "$tmp/sent")" [ "$(sent)" -eq 0 ]
run 0 config set search.limit 2; silent "cannot"
check "a setting was lost: $(cat .lode/config.json)" grep -q 'ollama:spy' .lode/config.json
run 0 trust; has "ollama:spy"
run 0 index --force; check "trusted, and nothing was sent" [ "$(sent)" -gt 0 ]
run 0 search freshly_added; has fresh.c
# Settings are trusted before there is a store, and a store that appears later is not
git clone -q "$tmp/hub/settings" "$tmp/team2" && chmod -R go-w "$tmp/team2" && cd "$tmp/team2" || exit 1
before=$(sent)
run 0 trust; has "ollama:spy"; has "no store yet"; check "trust sent something" [ "$(sent)" -eq "$before" ]
run 0 index; silent "lode trust"; check "trusted settings have no effect" [ "$(sent)" -gt "$before" ]
run 0 search sheep; silent note; run 0 status --json; has '"trust":"ours"'
git clone -q "$tmp/hub/settings" "$tmp/team3" && chmod -R go-w "$tmp/team3" && cd "$tmp/team3" || exit 1
run 0 trust; cp -a "$tmp/team2/.lode/." .lode/; before=$(sent)
run 0 search sheep; says "is used from now on"; says "model = ollama:spy"; check "a store that appeared is trusted" [ "$(sent)" -eq "$before" ]
cd "$tmp/team" || exit 1
# Another value than the trusted one is not trusted
sed -i 's/ollama:spy/ollama:other/' .lode/config.json; before=$(sent)
run 0 index; says "ollama:other"; says "no vectors are made"
check "another model was asked" [ "$(grep -c other "$tmp/sent")" -eq 0 ]
run 0 config set model ollama:mine
run 0 index --force; silent "ollama:mine reaches"; check "a model that the user set was not asked" grep -q mine "$tmp/sent"
# What the user sets in a folder of his own needs no word
sources "$tmp/own" && cd "$tmp/own" || exit 1
run 0 config set model ollama:own; run 0 config set search.refresh auto
run 0 index; silent "lode trust"; check "the user's own model was not asked" grep -q own "$tmp/sent"
run 0 search sheep; silent "lode trust"
run 0 db create notes --embedder ollama:own
# A copy of that store is adopted: its model is not asked before the user says so
cp -a "$tmp/own" "$tmp/stolen" && cd "$tmp/stolen" || exit 1
before=$(sent)
run 0 search sheep; says "lode trust"; has sheep.c
run 0 db query code --text sheep --json -k 1; says "words alone"
run 0 search sheep; says "words"
run 0 index; says "model = ollama:own"
check "a copy's model was asked" [ "$(sent)" -eq "$before" ]
"$lode" serve --port 0 >/dev/null 2>"$tmp/log" & pid=$!
for _ in $(seq $((200 * patience))); do grep -q "^.* serving " "$tmp/log" && break; sleep 0.05; done
url=$(sed -n 's|.* serving .* at \(http://[0-9.:]*\).*|\1|p' "$tmp/log")
python3 - "$url" >"$tmp/answer" <<'PY'
import sys, urllib.error, urllib.request
for op, body in (("db/query", b'{"collection":"code","text":"sheep","k":1}'), ("search", b'{"query":"sheep"}'),
                 ("db/add", b'{"collection":"notes","records":[{"id":"a","document":"sheep"}],"embed":true,"model":"ollama:own"}')):
    try:
        print(urllib.request.urlopen(sys.argv[1] + "/api/lode/v1/" + op, body).read().decode())
    except urllib.error.HTTPError as e:
        print("refused", e.code)
PY
kill "$pid"; wait "$pid"
check "a served copy does not answer: $(cat "$tmp/answer" "$tmp/log")" [ "$(grep -c sheep.c "$tmp/answer")" -eq 2 ]
check "a request may name a copy's model: $(cat "$tmp/answer")" grep -q 'refused 422' "$tmp/answer"
check "a served copy's model was asked" [ "$(sent)" -eq "$before" ]
run 0 trust; run 0 search sheep; silent "lode trust"; check "nothing was asked after trust" [ "$(sent)" -gt "$before" ]

# ---- The list

cd "$tmp/own" || exit 1
cp "$list" "$tmp/list"
printf 'x' >>"$list"; run 0 search sheep; says "is damaged"; says "is used from now on"
check "the damaged list is gone" [ -e "$list.damaged" ]
run 0 search sheep; silent "is damaged"
cp "$tmp/list" "$list"; chmod 666 "$list"; run 0 search sheep --read-only; says "can be written by other users"
rm -f "$list"; mkfifo "$list"; run 0 search sheep --read-only; says "is not a file"
rm -f "$list"
# A link, as those who keep such files elsewhere make: followed and written through
cd "$tmp/moved" || exit 1
run 0 index -q; run 0 search sheep; cp "$list" "$tmp/list"; rm "$list"
mkdir "$tmp/dotfiles" && cp "$tmp/list" "$tmp/dotfiles/trusted" && ln -s "$tmp/dotfiles/trusted" "$list"
run 0 search sheep --read-only; silent note
run 0 search sheep --project "$tmp/stolen"; run 0 trust --forget "$tmp/stolen"; run 0 trust "$tmp/stolen"
check "the link was replaced" [ -L "$list" ]; check "the target was not written" grep -q "$tmp/stolen" "$tmp/dotfiles/trusted"
check "something was left beside the target: $(ls "$tmp/dotfiles")" [ "$(ls "$tmp/dotfiles")" = trusted ]
if [ "$(id -u)" = 0 ]; then
  chown 65534 "$tmp/dotfiles/trusted"; run 0 search sheep --read-only; says "belongs to another user"; chown 0 "$tmp/dotfiles/trusted"
  chown -h 65534 "$list"; run 0 search sheep --read-only; says "belongs to another user"; chown -h 0 "$list"
fi
printf x >>"$tmp/dotfiles/trusted"; run 0 search sheep; says "is damaged"
check "the damaged target is gone" [ -e "$tmp/dotfiles/trusted.damaged" -a -L "$list" ]
rm -f "$tmp/dotfiles/trusted"; run 0 search sheep; says "is used from now on"; run 0 search sheep; silent note
check "a link to nothing was replaced" [ -L "$list" -a -s "$tmp/dotfiles/trusted" ]
rm -f "$list"; ln -s /dev/null "$list"; run 0 search sheep; says "is not a file"
check "a device was set aside" [ -c /dev/null -a -f "$list" -a ! -L "$list" ]
rm -f "$list"* ; ln -s trusted "$list"; run 0 search sheep; says "trusted"; run 0 search sheep; silent note
rm -f "$list"*
cd "$tmp/own" || exit 1
out=$(env -u HOME -u XDG_DATA_HOME "$lode" search sheep 2>&1); has sheep.c; has "cannot be remembered"
out=$(XDG_DATA_HOME=/dev/null/x "$lode" search sheep 2>&1); has sheep.c; has "cannot be remembered"
forget_all
for i in $(seq 12); do cp -a "$tmp/shared" "$tmp/many$i"; done
pids=()
for i in $(seq 12); do "$lode" search sheep --project "$tmp/many$i" >/dev/null 2>&1 & pids+=($!); done
wait "${pids[@]}"
check "of 12 at once $(grep -c "$tmp/many" "$list") are known" [ "$(grep -c "$tmp/many" "$list")" -eq 12 ]
run 0 trust --list --json; check "not 12 in the list" [ "$(printf '%s\n' "$out" | grep -c adopted)" -eq 12 ]
# Many at once adopt one store, and it is one entry
forget_all; pids=()
for i in $(seq 8); do "$lode" search sheep --project "$tmp/many1" >/dev/null 2>"$tmp/err$i" & pids+=($!); done
wait "${pids[@]}"
run 0 trust --list --json; check "not one entry: $out" [ "$(printf '%s\n' "$out" | grep -c many1)" -eq 1 ]; silent note
# Killed at any moment
run 0 trust "$tmp/many2"
for i in $(seq 30); do
  "$lode" trust "$tmp/many$((i % 12 + 1))" >/dev/null 2>&1 & pid=$!
  sleep "0.00$((i % 10))"; kill -9 $pid 2>/dev/null; wait $pid 2>/dev/null
  out=$("$lode" trust --list --json 2>&1); case $out in *damaged* | *note*) bad "after kill $i: $out" ;; *many2*) ok ;; *) bad "lost: $out" ;; esac
done
run 0 trust "$tmp/many3"; has trusted
run 2 trust --list "$tmp"; run 2 trust --store "$tmp/own/.lode"
run 0 trust --help; has "LODE_TRUST"
run 1 trust "$tmp/home"

finish
