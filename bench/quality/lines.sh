#!/bin/bash
# lines.sh BUILD - does the first result hold the line that was meant? Asks the sets of bench/quality/sets; prints tables.
#   LODE_TREES   a folder with the trees of sets/repos.txt as owner+name, each at its commit (sets/fetch.sh fetches them)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(realpath "$1")
sets=$here/sets
if [ ! -d "${LODE_TREES:-}" ]; then
  echo "skipped: definitions, literals and absent topics: LODE_TREES does not name the trees of bench/quality/sets/repos.txt"
  exit 0
fi
(cd "$sets" && sha256sum -c --quiet SHA256SUMS)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export LODE_TRUST=1 LODE_MODELS="${LODE_MODELS:-$here/../../models/code}"
grep -v '^#' "$sets/repos.txt" | while read -r _ _ repo _; do
  tree=$LODE_TREES/${repo/\//+}
  [ -d "$tree" ] || { echo "no tree at $tree: bench/quality/sets/fetch.sh fetches it" >&2; exit 1; }
  "$out/lode" index -q --store "$tmp/${repo/\//+}" "$tree" </dev/null
done
for half in open held; do
  [ "${LODE_HALF:-$half}" = $half ] || continue
  echo
  echo "| $half half | asked | first result | first three | first ten |"
  echo "|---|---|---|---|---|"
  "$out/bench/quality/lines" "$sets" "$LODE_TREES" "$tmp" $half
done
