#!/bin/bash
# people.sh BUILD - questions as people ask them, about 27 whole repositories that no weight was tuned on: NDCG@10 of sets/people.tsv. Writes its
# part of bench/QUALITY.md.
#   LODE_MIRRORS  git directories of these repositories (tools/train/histories.txt), as owner+name or owner+name/repo
#   LODE_MINED    a folder for their trees and indexes; what is there is used again
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(realpath "$1")
if [ ! -d "${LODE_MIRRORS:-}" ] || [ -z "${LODE_MINED:-}" ]; then
  echo "skipped: questions of people: LODE_MIRRORS and LODE_MINED do not name histories and a folder for their trees"
  exit 0
fi
(cd "$here/sets" && sha256sum -c --quiet SHA256SUMS)
mkdir -p "$LODE_MINED/people/stores"
at=$(realpath "$LODE_MINED")/people
export LODE_TRUST=1 LODE_MODELS="${LODE_MODELS:-$here/../../models/code}"
train=$here/../../tools/train
python3 "$train/history.py" people "$here/sets/people.tsv" "$train/histories.txt" "$LODE_MIRRORS" "$at"
for tree in "$at"/trees/*; do
  "$out/lode" index -q --store "$at/stores/${tree##*/}" "$tree" </dev/null
done
cells=
for mode in text vector hybrid; do
  "$out/bench/quality/ask" "$at/tasks.jsonl" "$at/trees" "$at/stores" $mode |
    "$out/bench/quality/score" "$at/tasks.jsonl" >"$at/$mode.score"
  cells="$cells $(sed -n 's/^NDCG@10 \([0-9.]*\).*/\1/p' "$at/$mode.score") |"
done
cat "$at/hybrid.score"
"$here/put.sh" people <<END
| NDCG@10 | questions | words alone | vectors alone | both |
|---|---|---|---|---|
| questions of people, 27 repositories | $(wc -l <"$at/tasks.jsonl") |$cells
END
