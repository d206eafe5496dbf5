#!/bin/bash
# search.sh BUILD - how well `lode search` finds: NDCG@10 on labelled repositories, by category, for the raw lists of its index, words alone, the
# static model, and both kinds of vectors where MiniLM is installed.
#   LODE_DATA    a folder with repos-dev/tasks.jsonl and repos-dev/repos.json
#   LODE_REPOS   a folder with the trees, as owner+name
#   LODE_UNSEEN  a folder for the trees of unseen/tasks.jsonl, which unseen/fetch.sh fetches
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(realpath "$1")
lode=$out/lode
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# $tmp/repos has NAME TREE ROOT, one repository a line; its index is $tmp/NAME, outside of the tree

index() {
  local flags=$1
  while read -r name tree root; do
    [ -d "$tree/$root" ] || { echo "skipped: $name: no tree at $tree" >&2; continue; }
    # shellcheck disable=SC2086
    "$lode" index -q $flags --store "$tmp/$name" "$tree/$root" </dev/null 2>"$tmp/err" || { cat "$tmp/err" >&2; return 1; }
  done <"$tmp/repos"
}

ask() { # all queries, as lines for score; MODE is of lode search, or raw-MODE: the best ten chunks as the index has them
  local mode=$1 tasks=$2
  while IFS= read -r line; do
    name=$(sed 's/.*"repo": "\([^"]*\)".*/\1/' <<<"$line")
    query=$(sed 's/.*"query": "\(\([^"\\]\|\\.\)*\)".*/\1/' <<<"$line")
    read -r _ tree root <<<"$(grep "^$name " "$tmp/repos")"
    [ -d "$tmp/$name" ] || continue
    text=$(sed 's/\\\(.\)/\1/g' <<<"$query")
    case $mode in
      raw-*) hits=$("$lode" db query code --json -k 10 --mode "${mode#raw-}" --include metadata --exact --store "$tmp/$name" --text "$text" 2>/dev/null </dev/null |
        sed "s~.*\"path\":\"\(\([^\"\\\\]\|\\\\.\)*\)\".*\"span\":\"\([0-9]*\)-\([0-9]*\)/.*~{\"path\":\"${root:+$root/}\1\",\"start_line\":\3,\"end_line\":\4}~" | paste -sd,) ;;
      *) hits=$("$lode" search --json -n 10 --mode "$mode" --store "$tmp/$name" -p "$tree/$root" -- "$text" 2>/dev/null </dev/null |
        sed "s~^{\"rank\":[0-9]*,\"path\":\"\(\([^\"\\\\]\|\\\\.\)*\)\",\"start_line\":\([0-9]*\),\"end_line\":\([0-9]*\),.*~{\"path\":\"${root:+$root/}\1\",\"start_line\":\3,\"end_line\":\4}~" | paste -sd,) ;;
    esac
    echo "{\"repo\":\"$name\",\"query\":\"$query\",\"results\":[$hits]}"
  done <"$tasks"
}

measure() { # TASKS TITLE
  index ""
  for mode in raw-text raw-vector; do
    echo "== the best ten chunks of the index as they come, no ranking: lode db query --mode ${mode#raw-}, $2"
    ask $mode "$1" | "$out/bench/quality/score" "$1"
  done
  for mode in text vector hybrid; do
    echo "== lode search --mode $mode, $2"
    ask $mode "$1" | "$out/bench/quality/score" "$1"
  done
  echo "== of the labelled places, within so many tokens of output (four bytes each), $2"
  LODE_MODELS="${LODE_MODELS:-$here/../../models/code}" "$out/bench/quality/budget" "$1" "$tmp" <"$tmp/repos"
  if "$lode" model list --json | grep -q '"name":"minilm","installed":true'; then
    index --quality
    echo "== lode search, static and MiniLM vectors, $2"
    ask hybrid "$1" | "$out/bench/quality/score" "$1"
  else
    echo "skipped: MiniLM: the model is not installed (lode model install minilm)"
  fi
}

data=${LODE_DATA:-}/repos-dev
if [ -f "$data/tasks.jsonl" ] && [ -d "${LODE_REPOS:-}" ]; then
  awk -F'"' -v at="$LODE_REPOS/" '$2 == "name" { name = $4 } $2 == "github" { sub("/", "+", $4); git = $4 } $2 == "root" { print name, at git, $4 }' "$data/repos.json" >"$tmp/repos"
  measure "$data/tasks.jsonl" "repos-dev"
else
  echo "skipped: lode search: LODE_DATA and LODE_REPOS do not name labelled queries and their repositories"
fi
if [ -n "${LODE_UNSEEN:-}" ]; then
  "$here/unseen/fetch.sh" "$LODE_UNSEEN"
  for name in redis luigi composer jekyll; do echo "$name $LODE_UNSEEN/$name"; done >"$tmp/repos"
  measure "$here/unseen/tasks.jsonl" "unseen"
else
  echo "skipped: lode search, unseen: LODE_UNSEEN names no folder for its trees"
fi
