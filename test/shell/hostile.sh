#!/bin/bash
# hostile.sh - folders that somebody else filled: links, FIFOs, sockets, devices and folders in place of the files of a store and of a model.
# Every command ends soon, with a status; nothing outside the store changes; nothing is removed that Lode did not make.
# Usage: hostile.sh PATH-OF-LODE. Prints one line per failure and ends with "N passed, N failed, N skipped".
set -u
lode=$(realpath "${1:?usage: hostile.sh PATH-OF-LODE}")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export HOME="$tmp/home" XDG_DATA_HOME="$tmp/data" XDG_STATE_HOME="$tmp/state" NO_COLOR=1 LODE_PAGER= GIT_CONFIG_GLOBAL=/dev/null
unset LODE_STORE
mkdir -p "$HOME"
. "$(dirname "$0")/../support/kit.sh"

# ends ARGS...: lode ends within seconds and is not killed; keeps $code, $out and $err
ends() {
  out=$(timeout -s KILL 20 "$lode" "$@" 2>"$tmp/err" </dev/null)
  code=$?
  err=$(cat "$tmp/err")
  if [ $code -lt 124 ]; then ok; else bad "$where: lode $*: ended with $code: ${err:0:200}"; fi
}
exits() {
  local want=$1
  shift
  ends "$@"
  check "$where: lode $*: exit $code, wanted $want: ${out:0:200} ${err:0:200}" [ $code -eq "$want" ]
}
# either: $1 is in what lode said, on whichever stream
either() { case $err$out in *"$1"*) ok ;; *) bad "$where: no '$1' in: ${out:0:300} ${err:0:300}" ;; esac; }
# What lies outside: names, kinds, sizes, times and content
outside() {
  rm -rf "$tmp/outside"
  mkdir -p "$tmp/outside/deep"
  echo precious >"$tmp/outside/file"
  echo precious >"$tmp/outside/0123456789abcdef.tmp"
  echo precious >"$tmp/outside/0123456789abcdef.seg"
  echo precious >"$tmp/outside/lode.db.new"
  echo precious >"$tmp/outside/deep/config.json"
  seen=$(look)
}
look() { (cd "$tmp/outside" && find . -printf '%p %y %s %m %T@ %l\n' | sort && find . -type f -exec cksum {} +); }
unchanged() { check "$where: files outside were changed: $1" [ "$(look)" = "$seen" ]; }
# A project with an index in $tmp/p, made once and copied from then on
fresh() {
  rm -rf "$tmp/p"
  cp -a "$tmp/made" "$tmp/p"
  cd "$tmp/p" || exit 1
}
mkdir -p "$tmp/made/.git"
cd "$tmp/made" || exit 1
for i in 1 2 3; do echo "int handle_$i(int a) { return a + $i; } /* retry the request */" >f$i.c; done
where=setup
exits 0 index -q

# ---- .lode is a link

where='.lode is a link'
outside
fresh && mv .lode "$tmp/outside/store" && seen=$(look) && ln -s "$tmp/outside/store" .lode
for c in status 'search retry' index 'watch --once' 'reset index --yes --no-backup' 'reset all --yes --no-backup' 'reset all --yes' \
  'config set search.limit 3' 'doctor --repair'; do
  exits 5 $c; either "symbolic link"
done
for c in 'db collections' 'db drop code --yes' 'db compact' 'db create other'; do ends $c; either "symbolic link"; done # passed over: the user's own store
unchanged reset
exits 0 search retry --store "$tmp/outside/store" # named by the user: allowed
exits 0 db collections --store .lode
exits 0 reset all --yes --no-backup --store .lode
check "$where: the link is there" [ -L .lode ]
outside
fresh && rm -rf .lode && ln -s "$tmp/outside/nowhere" .lode
for c in status index 'reset all --yes --no-backup'; do exits 5 $c; done
unchanged 'a link that leads nowhere'

# ---- Links inside

links=0
for name in lode.db lode.db-journal lode.lock lode.db.new lode.db.new-journal lode.db.restore segments config.json .gitignore index.lock watch.lock; do
  for target in file nowhere deep; do
    where="$name is a link to $target"
    outside
    fresh
    rm -rf ".lode/$name"
    ln -s "$tmp/outside/$target" ".lode/$name"
    case $target in
      file) commands='status;search retry;index --force;config set search.limit 3;db compact;reset all --yes --no-backup' ;;
      nowhere) commands='status;index;db optimize;doctor --repair' ;;
      deep) commands='status;index --force;reset index --yes --no-backup' ;;
    esac
    # a watcher that is not refused runs on
    case $name in index.lock | watch.lock | lode.db | lode.lock) commands="watch --once;$commands" ;; esac
    IFS=';' read -ra list <<<"$commands"
    for c in "${list[@]}"; do ends $c; done
    unchanged "$commands"
    links=$((links + 1))
  done
done
check "links" [ $links -eq 33 ]
where='segments is a link'
outside
fresh && rm -rf .lode/segments && ln -s "$tmp/outside" .lode/segments
exits 0 db create v
exits 0 reset index --yes --no-backup
exits 0 reset all --yes --no-backup; says segments
unchanged 'reset'
check "$where: the link went" [ -L .lode/segments ]

# ---- What Lode did not make stays

where='foreign files'
for how in '--no-backup' ''; do
  fresh
  mkdir -p "$tmp/dir/photos"
  rm -rf "$tmp/dir" && cp -a .lode "$tmp/dir" && mkdir -p "$tmp/dir/photos" "$tmp/dir/segments"
  echo mine >"$tmp/dir/thesis.txt"
  echo mine >"$tmp/dir/photos/a.jpg"
  echo mine >"$tmp/dir/segments/notes.md"
  echo mine >"$tmp/dir/lode.db.bak"
  exits 0 reset index --yes $how --store "$tmp/dir"; says thesis.txt
  exits 0 reset all --yes $how --store "$tmp/dir"; says thesis.txt; says photos; says segments/notes.md; says lode.db.bak
  check "$where: lost" [ "$(cat "$tmp/dir/thesis.txt" "$tmp/dir/photos/a.jpg" "$tmp/dir/segments/notes.md" "$tmp/dir/lode.db.bak")" = "$(printf 'mine\nmine\nmine\nmine')" ]
  check "$where: the store is there" [ ! -e "$tmp/dir/lode.db" ]
  rm -rf "$tmp/dir" "$tmp"/dir.backup-*
done

# ---- git sees no copy

where='git status after reset'
if command -v git >/dev/null; then
  for notes in '' with; do
    for what in 'index' 'all'; do
      fresh
      rm -rf .lode.backup-*
      git init -q . 2>/dev/null
      before=$(git status --porcelain --untracked-files=all)
      [ -z "$notes" ] || { echo '{"id":"n1"}' >"$tmp/note"; exits 0 db add notes "$tmp/note" --create; }
      exits 0 reset $what --yes
      check "$where: no copy" [ -f .lode.backup-*/lode.db ]
      check "$where $what: $(git status --porcelain --untracked-files=all)" [ "$(git status --porcelain --untracked-files=all)" = "$before" ]
      exits 0 status --store .lode.backup-*
      rm -rf .lode.backup-*
    done
  done
fi

# ---- reset index leaves what is not the index

where='notes beside the index'
echo '{"id":"n1","document":"buy milk"}' >"$tmp/note"
for how in '--no-backup' ''; do
  fresh
  exits 0 db add notes "$tmp/note" --create
  exits 0 reset index --yes $how
  exits 0 db get notes --ids n1; either 'buy milk'
  exits 0 db collections --json
  check "$where: code is there: $out" [ "${out#*\"code\"}" = "$out" ]
  exits 1 status
  if [ -z "$how" ]; then
    check "$where: no copy" [ -f .lode.backup-*/lode.db ]
    exits 0 search retry --store .lode.backup-*
  fi
  exits 0 index -q
  exits 0 search retry
  exits 0 db get notes --ids n1
  exits 0 reset all --yes --no-backup
  check "$where: .lode is there" [ ! -e .lode ]
done
where='a damaged store'
fresh
head -c 100000 /dev/urandom >.lode/lode.db
exits 5 reset index --yes --no-backup; either "without --no-backup"
exits 0 reset index --yes
exits 0 index -q

# ---- FIFOs, sockets, devices, folders

kinds='fifo socket folder'
if mknod "$tmp/zero" c 1 5 2>/dev/null && head -c 1 "$tmp/zero" >/dev/null 2>&1; then kinds="$kinds device"; else skip "devices: none can be made here"; fi
put() { # KIND PATH
  case $1 in
    fifo) mkfifo "$2" ;;
    socket) python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$2" ;;
    folder) mkdir "$2" ;;
    device) mknod "$2" c 1 5 ;;
  esac
}
for name in lode.db lode.db-journal lode.lock lode.db.new segments config.json .gitignore index.lock watch.lock; do
  for kind in $kinds; do
    [ "$kind$name" = foldersegments ] && continue
    where="$name is a $kind"
    fresh
    rm -rf ".lode/$name"
    put $kind ".lode/$name"
    case $name in index.lock | watch.lock | lode.db | lode.lock) ends watch --once ;; esac
    for c in status 'search retry' 'search wo wird und wie' 'index --force' 'db collections' 'doctor' 'db verify'; do ends $c; done
    ends reset all --yes --no-backup
    case $name in
      .gitignore) ;;
      lode.db-journal) check "$where: it went" [ -n "$(ls -d .lode/lode.db-journal*)" ] ;; # may be set aside
      *) check "$where: it went" [ -e ".lode/$name" ] ;;
    esac
  done
done
for name in .gitignore .lodeignore f1.c; do
  for kind in $kinds; do
    where="$name in the project is a $kind"
    fresh
    rm -f $name
    put $kind $name
    for c in 'index --force' status 'search retry --refresh'; do exits 0 $c; done
  done
done

# ---- Models

where='a model'
fresh
for kind in $kinds; do
  rm -rf "$tmp/models" && mkdir -p "$tmp/models"
  for name in minilm.pack code.model words.glossary code.pack any.model; do put $kind "$tmp/models/$name"; done
  for c in 'model list' 'model verify minilm' 'search retry' 'search wo wird und wie' 'index --force' status 'doctor'; do LODE_MODELS="$tmp/models" ends $c; done
  mkdir -p "$tmp/st-$kind"
  for name in config.json tokenizer.json vocab.txt model.safetensors modules.json tokenizer_config.json; do put $kind "$tmp/st-$kind/$name"; done
  put $kind "$tmp/st-$kind.model"
  for m in "$tmp/st-$kind" "$tmp/st-$kind.model" "$tmp/st-$kind/model.safetensors"; do
    ends db add things "$tmp/note" --create --embed --model "$m"
    ends config set model "$m"
  done
  ends model install minilm "$tmp/st-$kind"
done

finish
