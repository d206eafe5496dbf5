#!/bin/bash
# answers.sh BUILD - does `lode search` show the lines that answer a question? Asks sets/answers.tsv; writes its part of bench/QUALITY.md.
#   LODE_MIRRORS  git directories of the "held" repositories of tools/train/histories.txt, as owner+name or owner+name/repo
#   LODE_MINED    a folder for their trees and indexes; what is there is used again
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(realpath "$1")
if [ ! -d "${LODE_MIRRORS:-}" ] || [ -z "${LODE_MINED:-}" ]; then
  echo "skipped: question to lines: LODE_MIRRORS and LODE_MINED do not name histories and a folder for their trees"
  exit 0
fi
(cd "$here/sets" && sha256sum -c --quiet SHA256SUMS)
at=$(realpath "$LODE_MINED")/answers
mkdir -p "$at/stores"
export LODE_TRUST=1 LODE_MODELS="${LODE_MODELS:-$here/../../models/code}"
train=$here/../../tools/train
python3 "$train/lines.py" make "$here/sets/answers.tsv" "$train/histories.txt" "$LODE_MIRRORS" "$at"
sha256sum <"$at/tasks.jsonl" | sed 's/ .*//' | cmp - "$here/sets/answers.sum"
for tree in "$at"/trees/*; do
  "$out/lode" index -q --store "$at/stores/${tree##*/}" "$tree" </dev/null
  echo "${tree##*/} $tree"
done >"$at/repos"
"$out/bench/quality/budget" "$at/tasks.jsonl" "$at/stores" <"$at/repos" | tee "$at/score"
figure() { sed -n "s/^$1: //p" "$at/score"; }
"$here/put.sh" answers <<END
| 29 held-out repositories | questions | NDCG@10 | of comments | of commits | within 500 tokens | 1,000 | 2,000 |
|---|---|---|---|---|---|---|---|
| question to lines | $(wc -l <"$at/tasks.jsonl") | $(figure NDCG@10) | $(figure 'NDCG@10 of comment') | $(figure 'NDCG@10 of commit') | $(figure 'within 500 tokens') | $(figure 'within 1000 tokens') | $(figure 'within 2000 tokens') |
END
