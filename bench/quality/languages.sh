#!/bin/bash
# languages.sh BUILD - questions in German, Spanish, French, Japanese and Chinese to English code: asks sets/languages.tsv, and the same
# questions in English; writes its part of bench/QUALITY.md.
#   LODE_DATA    a folder with repos-dev/tasks.jsonl and repos-dev/repos.json
#   LODE_REPOS   a folder with the trees, as owner+name
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(realpath "$1")
data=${LODE_DATA:-}/repos-dev
if [ ! -f "$data/tasks.jsonl" ] || [ ! -d "${LODE_REPOS:-}" ]; then
  echo "skipped: questions in other languages: LODE_DATA and LODE_REPOS do not name labelled queries and their repositories"
  exit 0
fi
(cd "$here/sets" && sha256sum -c --quiet SHA256SUMS)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export LODE_TRUST=1 LODE_MODELS="${LODE_MODELS:-$here/../../models/code}"
python3 - "$data" "$here/sets/languages.tsv" "$LODE_REPOS" "$tmp" <<'END'
import json, os, sys
data, questions, trees, tmp = sys.argv[1:]
tasks = [json.loads(line) for line in open(data + "/tasks.jsonl", encoding="utf-8")]
own, english = open(tmp + "/own", "w", encoding="utf-8"), open(tmp + "/english", "w", encoding="utf-8")
for line in open(questions, encoding="utf-8"):
    number, language, text = line.rstrip("\n").split("\t")
    task = dict(tasks[int(number)], category=language)
    print(json.dumps(task), file=english)
    print(json.dumps(dict(task, query=text)), file=own)
with open(tmp + "/repos", "w") as repos:
    for r in json.load(open(data + "/repos.json")):
        print(r["name"], trees + "/" + r["github"].replace("/", "+"), r["root"], file=repos)
END
while read -r name tree root; do
  "$out/lode" index -q --store "$tmp/$name" "$tree/$root" </dev/null
done <"$tmp/repos"
for set in own english; do "$out/bench/quality/budget" "$tmp/$set" "$tmp" <"$tmp/repos" >"$tmp/$set.score"; done
figure() { sed -n "s/^NDCG@10$2: //p" "$tmp/$1.score"; }
"$here/put.sh" languages <<END
| NDCG@10 | questions | all | German | Spanish | French | Japanese | Chinese |
|---|---|---|---|---|---|---|---|
| asked in these languages | $(wc -l <"$tmp/own") | $(figure own "") | $(figure own " of de") | $(figure own " of es") | $(figure own " of fr") | $(figure own " of ja") | $(figure own " of zh") |
| the same questions in English | $(wc -l <"$tmp/english") | $(figure english "") | $(figure english " of de") | $(figure english " of es") | $(figure english " of fr") | $(figure english " of ja") | $(figure english " of zh") |
END
