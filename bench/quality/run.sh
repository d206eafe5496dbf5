#!/bin/sh
# run.sh BUILD - how well code is found. The data is not part of lode; the environment says where it is:
#   LODE_DATA    a folder with cosqa/ and repos-dev/ (bench/quality/README.md)
#   LODE_REPOS   a folder with the trees of the repositories, as owner+name or owner/name
#   LODE_PAIRS   pairs of held-out packages (tools/train writes held-out.tsv)
#   LODE_TREES   the trees of bench/quality/sets/repos.txt
#   LODE_MIRRORS, LODE_MINED  histories of the repositories of tools/train/histories.txt, and a folder for their trees (commits.sh, people.sh, answers.sh)
#   LODE_STATICS more folders with a code.model, as NAME=FOLDER, to compare
set -eu
out=$1
"$(dirname "$0")/lines.sh" "$out"
"$out/bench/quality/quality" code=models/code ${LODE_STATICS:-}
"$(dirname "$0")/search.sh" "$out"
"$(dirname "$0")/commits.sh" "$out"
"$(dirname "$0")/people.sh" "$out"
"$(dirname "$0")/answers.sh" "$out"
"$(dirname "$0")/languages.sh" "$out"
