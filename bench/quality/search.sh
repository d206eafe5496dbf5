#!/bin/bash
# search.sh BUILD - how well `lode search` finds: NDCG@10 on labelled repositories, by category, for words alone, the static model, and both
# kinds of vectors where MiniLM is installed.
#   LODE_DATA    a folder with repos-dev/tasks.jsonl and repos-dev/repos.json
#   LODE_REPOS   a folder with the trees, as owner+name
set -eu
out=$(realpath "$1")
lode=$out/lode
data=${LODE_DATA:-}/repos-dev
if [ ! -f "$data/tasks.jsonl" ] || [ ! -d "${LODE_REPOS:-}" ]; then
  echo "skipped: lode search: LODE_DATA and LODE_REPOS do not name labelled queries and their repositories"
  exit 0
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# NAME OWNER+NAME ROOT, one repository a line
awk -F'"' '$2 == "name" { name = $4 } $2 == "github" { sub("/", "+", $4); git = $4 } $2 == "root" { print name, git, $4 }' "$data/repos.json" >"$tmp/repos"

index() { # an index of each tree, outside of it
  local flags=$1
  while read -r name git root; do
    [ -d "$LODE_REPOS/$git/$root" ] || { echo "skipped: $name: no tree at LODE_REPOS/$git" >&2; continue; }
    # shellcheck disable=SC2086
    "$lode" index -q $flags --store "$tmp/$name" "$LODE_REPOS/$git/$root" </dev/null 2>"$tmp/err" || { cat "$tmp/err" >&2; return 1; }
  done <"$tmp/repos"
}

ask() { # all queries, as lines for score
  local mode=$1
  while IFS= read -r line; do
    name=$(sed 's/.*"repo": "\([^"]*\)".*/\1/' <<<"$line")
    query=$(sed 's/.*"query": "\(\([^"\\]\|\\.\)*\)".*/\1/' <<<"$line")
    read -r _ git root <<<"$(grep "^$name " "$tmp/repos")"
    [ -d "$tmp/$name" ] || continue
    text=$(sed 's/\\\(.\)/\1/g' <<<"$query")
    hits=$("$lode" search --json -n 10 --mode "$mode" --store "$tmp/$name" -p "$LODE_REPOS/$git/$root" -- "$text" 2>/dev/null </dev/null |
      sed "s~^{\"rank\":[0-9]*,\"path\":\"\(\([^\"\\\\]\|\\\\.\)*\)\",\"start_line\":\([0-9]*\),\"end_line\":\([0-9]*\),.*~{\"path\":\"${root:+$root/}\1\",\"start_line\":\3,\"end_line\":\4}~" | paste -sd,)
    echo "{\"repo\":\"$name\",\"query\":\"$query\",\"results\":[$hits]}"
  done <"$data/tasks.jsonl"
}

index ""
for mode in text vector hybrid; do
  echo "== lode search --mode $mode"
  ask $mode | "$out/bench/quality/score" "$data/tasks.jsonl"
done
if index --quality && "$lode" status --json --store "$tmp/$(head -1 "$tmp/repos" | cut -d' ' -f1)" 2>/dev/null | grep -q '"quality_pending":0'; then
  echo "== lode search, static and MiniLM vectors"
  ask hybrid | "$out/bench/quality/score" "$data/tasks.jsonl"
else
  echo "skipped: MiniLM: the model is not installed (lode model install minilm)"
fi
