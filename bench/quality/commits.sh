#!/bin/bash
# commits.sh BUILD - does `lode search` find the files that a commit changed, asked by its subject? NDCG@10 on the held-out repositories of
# sets/commits.tsv, from which nothing was learnt. Writes its part of bench/QUALITY.md.
#   LODE_MIRRORS  git directories of the "held" repositories of tools/train/histories.txt, as owner+name or owner+name/repo
#   LODE_MINED    a folder for their trees and indexes; what is there is used again
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(realpath "$1")
if [ ! -d "${LODE_MIRRORS:-}" ] || [ -z "${LODE_MINED:-}" ]; then
  echo "skipped: commit to file: LODE_MIRRORS and LODE_MINED do not name histories and a folder for their trees"
  exit 0
fi
(cd "$here/sets" && sha256sum -c --quiet SHA256SUMS)
mkdir -p "$LODE_MINED/stores"
export LODE_TRUST=1 LODE_MODELS="${LODE_MODELS:-$here/../../models/code}"
train=$here/../../tools/train
tasks=$LODE_MINED/tasks.jsonl
python3 "$train/history.py" frozen "$here/sets/commits.tsv" "$train/histories.txt" "$LODE_MIRRORS" "$LODE_MINED"
sha256sum <"$tasks" | sed 's/ .*//' | cmp - "$here/sets/commits.sum"
for tree in "$LODE_MINED"/trees/*; do
  "$out/lode" index -q --store "$LODE_MINED/stores/${tree##*/}" "$tree" </dev/null
done
cells=
for mode in text vector hybrid; do
  "$out/bench/quality/ask" "$tasks" "$LODE_MINED/trees" "$LODE_MINED/stores" $mode |
    "$out/bench/quality/score" "$tasks" >"$LODE_MINED/$mode.score"
  cells="$cells $(sed -n 's/^NDCG@10 \([0-9.]*\).*/\1/p' "$LODE_MINED/$mode.score") |"
done
cat "$LODE_MINED/hybrid.score"
"$here/put.sh" commits <<END
| NDCG@10 | questions | words alone | vectors alone | both |
|---|---|---|---|---|
| commit to file, 29 held-out repositories | $(wc -l <"$tasks") |$cells
END
