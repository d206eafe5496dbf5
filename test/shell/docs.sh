#!/bin/bash
# docs.sh LODE [WORD] - every code block of README.md and docs/ is run, in the order of its file, with the program as `make install` installs it.
# WORD picks files by name. Blocks are found by test/support/docs_blocks.awk, whose comments in the Markdown say how:
#
#   SCENE       a function scene_SCENE below, which puts something into the folder, or says why it cannot ($why); once for each file
#   exit=N      the exit code of the last command (0)
#   file=NAME   the block is a file of that name, which a later block uses
#   elsewhere   the block is run by that file: each of its commands stands there
#   WORD=TEXT   replaces WORD in the block, where the document has a placeholder
#
# sh is run, console is run and its output compared (... stands for anything), python is run, json is parsed, c is compiled, text and diff are
# only read. Servers are started on a port of their own and stopped at the end of the block. Also: every `lode COMMAND --flag` in backquotes and
# in the examples of `lode help` names a command and flags that exist.
set -u
. "$(dirname "$0")/../support/kit.sh"
begin docs "$1"
here=$(cd "$(dirname "$0")/../.." && pwd)
only=${2:-}
cd "$here" || exit 1

export HOME=$tmp/home/you
models=${LODE_MODELS:-$user_home/.local/share/lode/models}
mkdir -p "$HOME"
make --no-print-directory install-files PREFIX="$HOME/lode" >"$tmp/install.log" 2>&1 || { bad "make install-files"; cat "$tmp/install.log"; }
export PATH=$HOME/lode/bin:$PATH
lode_given=$(realpath "$lode")
lode=$HOME/lode/bin/lode

# Python finds the package, the installed library, and chromadb: the real one if it is there, else lode.chroma under its name
mkdir -p "$tmp/python"
cp -r bindings/python/lode "$tmp/python/lode"
if command -v python3 >/dev/null; then
  python3 bindings/python/abi.py include/lode.h >"$tmp/python/lode/_abi.py" || bad "abi.py"
  python3 -c 'import chromadb' 2>/dev/null || printf 'import sys\nimport lode.chroma\nsys.modules["chromadb"] = lode.chroma\n' >"$tmp/python/chromadb.py"
  number=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
fi
export PYTHONPATH=$tmp/python LODE_LIBRARY=$HOME/lode/lib/liblode.so LODE_TEST_PORT=${number:-18000}
[ -e "$LODE_LIBRARY" ] || LODE_LIBRARY=$(ls "$HOME"/lode/lib/liblode.*dylib 2>/dev/null | head -1)

# ---- Scenes

scene_project() { # Lode's own library as a project with a git repository
  mkdir -p project/src && cp -r "$here/src/lib" project/src/ && cp -r "$here/include" project/ && git init -q project
}
scene_inside() { cd project || return 1; } # the block is run in it
scene_indexed() { [ -e .lode ] || lode index -q; }
scene_edited() { git -c user.name=you -c user.email=you@localhost commit -q --allow-empty -m "as it was" -- . 2>/dev/null; git add -A . && git -c user.name=you -c user.email=you@localhost commit -q -m first && echo '/* changed */' >>src/lib/vfs/vfs.c; }
scene_minilm() {
  [ -f "$models/minilm.pack" ] || { why="minilm is not installed (make test-model)"; return 1; }
  export LODE_MODELS=$models
}
scene_chroma() { tar xf "$here/test/fixtures/chroma/chroma-1.5.9.tar.xz" chroma; }
scene_palace() { mkdir -p "$HOME/.mempalace" && scene_chroma && mv chroma "$HOME/.mempalace/palace"; }
scene_notes() { # a collection of a few notes, found by words, in ./data
  printf '%s\n' '{"id":"a","document":"The ferry leaves at seven.","metadata":{"year":2026},"embedding":[1,0]}' \
    '{"id":"b","document":"The parser reads tokens.","metadata":{"year":2025},"embedding":[0,1]}' | lode db add notes --create --store ./data -q
}
scene_manual() {
  printf '%s\n' 'The siren sounds when a door is opened at night.' '' 'Hold the red button for five seconds to silence the siren and clear its memory.' '' \
    'Batteries last two years; replace both at once.' >manual.txt
}
scene_clone() { # in the clone itself
  cd "$here" && [ "$lode_given" = "$here/build/release/lode" ] || { why="the program is not that of build/release"; return 1; }
  unset DESTDIR
}
scene_wheels() { (cd "$here" && make --no-print-directory wheel) || { why="pip cannot make a wheel here: $(tail -1 "$tmp/out")"; return 1; }; }
scene_prefix() { export PKG_CONFIG_PATH=$HOME/lode/lib/pkgconfig; }
scene_python() { command -v python3 >/dev/null || { why="there is no python3"; return 1; }; }
scene_langchain() { python3 -c 'import langchain_chroma' 2>/dev/null || { why="langchain-chroma is not installed"; return 1; }; }
scene_app() { echo 'import chromadb; print(chromadb.EphemeralClient().create_collection("notes").count())' >app.py; }
scene_web() { mkdir -p "$HOME/src/app/.git" && echo 'int main(void) { return 0; }' >"$HOME/src/app/main.c" && lode index -q "$HOME/src/app"; }
scene_serving() { serving='lode serve --store ./data'; } # a server for this block
scene_curl() { command -v curl >/dev/null || { why="there is no curl"; return 1; }; }

# ---- Running

cat >"$tmp/prelude" <<'P'
set -eu -o pipefail
server=
lode() {
  case "$1 ${2:-}" in
    serve\ * | ui\ *) start "$@" ;;
    watch\ *) start "$@" ;;
    *) command lode "$@" ;;
  esac
}
# One at a time, on our port, with no browser
start() {
  local words=("$1") command=$1
  shift
  while [ $# -gt 0 ]; do
    case $1 in --no-open) ;; --port) shift ;; *) words+=("$1") ;; esac
    shift
  done
  case $command in serve | ui) words+=(--port "$LODE_TEST_PORT") ;; esac
  case $command in ui) words+=(--no-open) ;; esac
  finish
  command lode "${words[@]}" >server.log 2>&1 &
  server=$!
  for _ in $(seq 600); do
    ! grep -qE 'is ready|watching' server.log || return 0
    kill -0 $server 2>/dev/null || break
    sleep 0.05
  done
  cat server.log
  return 1
}
finish() {
  [ -n "$server" ] || return 0
  kill -TERM $server && wait $server || { echo "the server ended with $?"; cat server.log; return 1; }
  server=
}
stop() {
  code=$?
  [ $code = 0 ] || echo "at: $last"
  finish || code=1
  exit $code
}
last=
trap '[ "${FUNCNAME:-}" ] || last=$BASH_COMMAND' DEBUG
trap stop EXIT
P

run_sh() { # block exit
  { cat "$tmp/prelude"; echo "$serving"; cat "$1"; } >"$tmp/script"
  timeout $((60 * patience)) bash "$tmp/script" >"$tmp/out" 2>&1 </dev/null
  local got=$?
  if [ $got = "$2" ]; then ok; else bad "$where: exit $got, wanted $2"; sed 's/^/      /' "$tmp/out" | tail -30; fi
}
# Commands after "$ ", each with the output that follows it
run_console() {
  rm -f "$tmp"/step.*
  awk -v to="$tmp/step." '/^\$ / { n++; print substr($0, 3) >(to n ".do"); printf "" >(to n ".want"); next } n { print >(to n ".want") }' "$1"
  { cat "$tmp/prelude"; echo "$serving"; echo 'set +e'
    for ((i = 1; ; i++)); do
      [ -f "$tmp/step.$i.do" ] || break
      printf '{ eval "$(cat %q)"; } >%q 2>&1; echo $? >%q\n' "$tmp/step.$i.do" "$tmp/step.$i.got" "$tmp/step.$i.code"
    done; echo "exit 0"; } >"$tmp/script"
  timeout $((60 * patience)) bash "$tmp/script" >"$tmp/out" 2>&1 </dev/null
  local last=$((i - 1)) want got code
  for ((i = 1; i <= last; i++)); do
    code=0
    [ $i -lt $last ] || code=$2
    [ "$(cat "$tmp/step.$i.code" 2>/dev/null)" = "$code" ] || { bad "$where: \`$(cat "$tmp/step.$i.do")\`: exit $(cat "$tmp/step.$i.code"), wanted $code: $(head -c 600 "$tmp/step.$i.got")"; continue; }
    want=$(sed -e 's/[][*?\\]/\\&/g' -e 's/\.\.\./*/g' "$tmp/step.$i.want")
    got=$(cat "$tmp/step.$i.got")
    # shellcheck disable=SC2053
    if [[ $got == $want ]]; then ok; else bad "$where: \`$(cat "$tmp/step.$i.do")\` says"; printf '%s\n' "$got" | diff - "$tmp/step.$i.want" | sed 's/^/      /' | head -40; fi
  done
}
run_python() {
  timeout $((60 * patience)) python3 "$1" >"$tmp/out" 2>&1 </dev/null
  local got=$?
  if [ $got = "$2" ]; then ok; else bad "$where: exit $got, wanted $2"; sed 's/^/      /' "$tmp/out" | tail -30; fi
}
run_json() { if python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$1" 2>"$tmp/out"; then ok; else bad "$where: $(tail -1 "$tmp/out")"; fi; }
run_c() { # alone; with file=, a later block compiles it
  if ${CC:-cc} -std=c11 -Wall -Wextra -Werror -I"$here/include" -fsyntax-only -x c "$1" >"$tmp/out" 2>&1; then ok; else bad "$where: $(head -20 "$tmp/out")"; fi
}
run_elsewhere() { # block file: the commands, without comments and what follows their second word
  local command
  while read -r command; do
    [ -z "$command" ] || check "$where: $2 does not run \`$command\`" grep -qF -- "$command" "$here/$2"
  done < <(sed -E 's/[[:space:]]*#.*//; s/^([^ ]+ +[^ ]+).*/\1/' "$1")
}

block() { # number where language options...
  local number=$1 language=$3 exit=0 file= body=$tmp/block word made=
  serving=
  where=$2
  shift 3
  case $language in
    skip) skip "$where: $*"; return ;;
    elsewhere) run_elsewhere "$blocks/$number" "$1"; return ;;
    text | diff) return ;;
    none) bad "$where: the block does not name its language; text if it is none"; return ;;
  esac
  sed "s/\b8000\b/$LODE_TEST_PORT/g; s/\b8080\b/$LODE_TEST_PORT/g" "$blocks/$number" >"$body"
  cd "$folder" || return
  unset LODE_MODELS
  for word in "$@"; do
    case $word in
      exit=*) exit=${word#*=} ;;
      file=*) file=${word#*=} ;;
      *=*) sed -E -i "s,\b${word%%=*}\b([^.]|\$),${word#*=}\1,g" "$body" ;;
      inside) cd project || return ;;
      *)
        made=$folder/.made-$word why=
        case $word in minilm | serving | prefix | clone | wheels) rm -f "$made" ;; esac
        if ! [ -e "$made" ]; then
          "scene_$word" >"$tmp/out" 2>&1 || { [ -n "$why" ] || why="scene $word: $(tail -3 "$tmp/out")"; skip "$where: $why"; cd "$here" || exit 1; return; }
          : >"$made"
        fi ;;
    esac
  done
  if [ -n "$file" ]; then cp "$body" "$file"; fi
  case $language in
    sh | console | python | json | c) "run_$language" "$body" "$exit" ;;
    *) bad "$where: nobody knows how to run $language" ;;
  esac
  cd "$here" || exit 1
}

blocks=$tmp/blocks
mkdir "$blocks"
for document in README.md CONTRIBUTING.md examples/README.md docs/*.md; do
  case $document in *"$only"*) ;; *) continue ;; esac
  folder=$tmp/in-$(basename "$document" .md)
  mkdir -p "$folder"
  rm -f "$blocks"/*
  awk -v to="$blocks" -f test/support/docs_blocks.awk "$document" >"$tmp/list"
  # shellcheck disable=SC2086
  while read -r -u 9 number at language options; do block "$number" "$at" "$language" $options; done 9<"$tmp/list"
  rm -rf "$folder" "$HOME/.mempalace" "$HOME/.local"
done

# ---- Commands in the text

declare -A helps
help_of() { # words: $help
  local key="$*"
  [ -n "${helps[$key]+x}" ] || helps[$key]=$("$lode" help "$@" 2>/dev/null)
  help=${helps[$key]}
}
# `lode WORDS...`: the longest beginning that is a command, and its flags
command_exists() { # where, words...
  local at=$1 words=() help= flag
  shift
  [ "${1:-}" != help ] || { shift; "$lode" help "$@" >/dev/null 2>&1 && ok || bad "$at: there is no \`lode help $*\`"; return; }
  while [ $# -gt 0 ] && [[ $1 == --* ]]; do # flags before the command
    case $1 in --store | --busy-ms | --memory) shift ;; esac
    shift
  done
  [ $# -gt 0 ] && [[ $1 =~ ^[a-z] ]] || { ok; return; }
  if [ $# -gt 1 ] && [[ $2 =~ ^[a-z][a-z-]*$ ]] && help_of "$1" "$2" && [ -n "$help" ]; then :; else help_of "$1"; fi
  [ -n "$help" ] || { bad "$at: there is no command \`lode $1 ${2:-}\`"; return; }
  for flag in "$@"; do
    [[ $flag =~ ^(--[a-z-]+) ]] || continue
    flag=${BASH_REMATCH[1]}
    case $help in *" $flag"[\ ,$'\n']*) ;; *) bad "$at: \`lode $*\`: there is no $flag"; return ;; esac
  done
  ok
}
if [ -z "$only" ] || [ "$only" = inline ]; then
  grep -noE '`lode [^`\\]*`' README.md CONTRIBUTING.md examples/README.md docs/*.md | grep -v COMMAND >"$tmp/inline"
  while IFS= read -r line; do
    at=${line%%:\`*} text=${line#*\`lode }
    text=${text%%\`*}
    # shellcheck disable=SC2086
    set -f; command_exists "$at" ${text%% | *}; set +f
  done <"$tmp/inline"
  "$lode" help --list | while read -r name; do
    # shellcheck disable=SC2086
    "$lode" help $name | sed -n '/^Examples$/,/^$/{/^Examples$/d;p}' | sed -nE 's/(.*[ |(])?(lode [^|>]*).*/\2/p' | sed "s|^|$name\t|"
  done >"$tmp/examples"
  while IFS=$'\t' read -r name text; do
    # shellcheck disable=SC2086
    set -f; command_exists "lode help $name" ${text#lode }; set +f
  done <"$tmp/examples"
fi

finish
