#!/bin/sh
# frontier.sh - the vector index alone beside SymphonyQG and faiss, in turn; writes bench/FRONTIER.md: make bench-frontier. Data and peers below
# build/bench-vectors, as run.sh has them. SETS (fashion),
# PEERS (symqg,faiss), KS (10,100), ROUNDS (3); OLD: another bench_index, to be measured too.
set -eu
cd "$(dirname "$0")/../.."
out=$PWD/build/bench-vectors
data=$out/data
venv=$out/venv-frontier
sets=${SETS:-fashion}
mkdir -p "$data"
${MAKE:-make} --no-print-directory all > "$out/make.log" 2>&1
${MAKE:-make} --no-print-directory -C bench/index OUT="$out" "$out/bench_index" > "$out/make.log" 2>&1
missing=""
for set in $sets; do [ -s "$data/$set.bin" ] || missing="$missing $set"; done
if [ -n "$missing" ]; then
  mkdir -p "$out/npm"
  cp bench/index/package.json bench/index/package-lock.json bench/index/make-data.mjs "$out/npm/"
  # shellcheck disable=SC2086
  (cd "$out/npm" && npm ci --ignore-scripts --no-audit --no-fund && node --max-old-space-size=8000 make-data.mjs ../data $missing)
fi
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --only-binary :all: -r bench/vectors/frontier-requirements.txt
fi
machine=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)
{
  printf '# The index alone, beside the fastest libraries\n\n'
  printf 'Made by `make bench-frontier` on %s, load at the beginning %s. One thread, 1,000 queries that are not in\n' \
    "$machine" "$(cut -d' ' -f1 /proc/loadavg)"
  printf 'the data; runs in turn, by processor time. `bench/vectors/frontier.py` says how, and what bytes are.\n'
  # shellcheck disable=SC2086
  "$venv/bin/python" bench/vectors/frontier.py --bench "$out/bench_index" ${OLD:+--old "$OLD"} --data "$data" \
    --cache "$out/frontier" --peers "${PEERS:-symqg,faiss}" --k "${KS:-10,100}" --rounds "${ROUNDS:-3}" $sets
} > "$out/FRONTIER.md"
cp "$out/FRONTIER.md" bench/FRONTIER.md
cat bench/FRONTIER.md
