#!/bin/sh
# run.sh - vector search beside other libraries and databases in one run; writes bench/VECTORS.md. `make bench-vectors`.
#
#   bench/vectors/run.sh              everything (about 20 minutes on two cores); keep the machine quiet meanwhile
#   bench/vectors/run.sh --quick      a few thousand rows, to try the scripts; writes build/bench-vectors/VECTORS.md
#   bench/vectors/run.sh --no-peers   Lode alone
#
# Data: bench/index/make-data.mjs (npm packages). Peers: hnswlib (Debian's libhnswlib-dev), and from PyPI, in a virtual
# environment below build/: faiss-cpu, usearch, chromadb, lancedb. What cannot be had is named and left out.
# Lines "name value" are collected in build/bench-vectors/figures.txt and shown as they come; report.awk makes the page.
set -u
cd "$(dirname "$0")/../.." || exit 1

quick=0 peers=1
for arg; do
  case $arg in
    --quick) quick=1 ;;
    --no-peers) peers=0 ;;
    *) sed -n '2,10s/^# \{0,1\}//p' bench/vectors/run.sh; exit 2 ;;
  esac
done

out=build/bench-vectors
data=$out/data
venv=$out/venv
work=$out/work
figures=$out/figures.txt
mkdir -p "$data" "$out"
: > "$figures"
if [ $quick = 1 ]; then
  results=$out/VECTORS.md
  sets="fashion words" rows_fashion=5000 rows_words=5000 rows_patches=0 queries=50 db_rows=5000
else
  results=bench/VECTORS.md
  sets="fashion words patches" rows_fashion=60000 rows_words=340479 rows_patches=1000000 queries=300 db_rows=20000
fi
began=$(date +%s)

say() { echo "bench-vectors [$(($(date +%s) - began)) s]: $*" >&2; }
figure() { echo "$*" | tee -a "$figures"; }
# measure PREFIX COMMAND...: each line of its output becomes "PREFIX.name value"
measure() {
  prefix=$1
  shift
  say "$prefix: $*"
  "$@" > "$out/last.txt" 2> "$out/last.err"
  status=$?
  while read -r name value; do figure "$prefix.$name $value"; done < "$out/last.txt"
  if [ $status -ne 0 ]; then
    figure "$prefix.failed $(tail -1 "$out/last.err" | cut -c1-160)"
  fi
  return $status
}

# ---- Programs, data, peers

${MAKE:-make} --no-print-directory all > "$out/make.log" 2>&1 || { tail "$out/make.log" >&2; exit 1; }
libs=$(sed -n 's/^Libs.private: *//p' tools/lode.pc.in)
libs="$(pkg-config --libs sqlite3 libpcre2-8 libutf8proc) $libs"
# shellcheck disable=SC2086
${CC:-cc} -std=c11 -D_GNU_SOURCE -Iinclude -g -O2 -ffp-contract=off -Wall -Wextra -o "$out/bench_vectors" \
  bench/vectors/bench_vectors.c build/release/inside/lib.a $libs -lpthread -lm || exit 1
hnsw=0
if [ $peers = 1 ] && [ -e /usr/include/hnswlib/hnswlib.h ]; then
  hnsw=1
else
  figure "skipped.hnswlib libhnswlib-dev is not installed, or --no-peers"
fi
if [ $hnsw = 1 ]; then
  ${MAKE:-make} --no-print-directory -C bench/index OUT="$PWD/$out" "$PWD/$out/bench_index" > "$out/make.log" 2>&1 || hnsw=0
fi
missing=""
for set in $sets; do [ -s "$data/$set.bin" ] || missing="$missing $set"; done
if [ -n "$missing" ]; then
  say "making the data:$missing"
  # shellcheck disable=SC2086
  if ! { mkdir -p "$out/npm" && cp bench/index/package.json bench/index/package-lock.json bench/index/make-data.mjs "$out/npm/" &&
         (cd "$out/npm" && npm ci --ignore-scripts --no-audit --no-fund > ../npm.log 2>&1 &&
          node --max-old-space-size=8000 make-data.mjs ../data $missing >> ../npm.log 2>&1); }; then
    say "the data sets cannot be made: $(tail -1 "$out/npm.log"); node and npm are needed"
    exit 1
  fi
fi
python=0
if [ $peers = 1 ]; then
  if [ ! -x "$venv/bin/python" ]; then
    say "installing faiss, usearch, Chroma and LanceDB"
    rm -rf "$venv"
    python3 -m venv "$venv" > "$out/venv.log" 2>&1 &&
      "$venv/bin/pip" install -q --only-binary :all: -r bench/vectors/requirements.txt >> "$out/venv.log" 2>&1 || {
      figure "skipped.python_peers $(tail -1 "$out/venv.log" | cut -c1-160)"
      rm -rf "$venv"
    }
  fi
  [ -x "$venv/bin/python" ] && python=1
fi

# ---- The index alone, against libraries

index_alone() {
  set=$1 rows=$2
  # shellcheck disable=SC2086
  if [ $hnsw = 1 ]; then
    say "$set: the index alone, beside hnswlib"
    "$out/bench_index" "$data/$set.bin" --rows "$rows" --queries "$queries" --rounds 20 --threads "$(nproc)" --filters 2>&1 |
      tee "$out/index-$set.txt" >&2
    sed -n 's/^recall 0\.\([0-9]*\): lode \([0-9]*\)\/s, hnswlib \([0-9]*\)\/s, ratio \(.*\)/lode_at_\1 \2\nhnswlib_at_\1 \3\nratio_at_\1 \4/p
            s/^build: lode \([0-9.]*\) s, hnswlib \([0-9.]*\) s, ratio \(.*\)/lode_build_s \1\nhnswlib_build_s \2\nratio_build \3/p
            s/^memory: lode \([0-9]*\) bytes a vector, hnswlib \([0-9]*\), \(.*\) %/lode_bytes \1\nhnswlib_bytes \2\npercent_bytes \3/p
            s/^filter *\([0-9]*\) % used once: recall \([0-9.]*\) \([0-9]*\)\/s.*/lode_once_\1_recall \2\nlode_once_\1 \3/p
            s/^filter *\([0-9]*\) %: recall \([0-9.]*\) \([0-9]*\)\/s.*/lode_filter_\1_recall \2\nlode_filter_\1 \3/p
            s/^no filter, default effort: recall \([0-9.]*\) \([0-9]*\)\/s, \([0-9]*\) distances/lode_default_recall \1\nlode_default \2\nlode_distances \3/p' \
      "$out/index-$set.txt" | while read -r name value; do figure "index.$set.$name $value"; done
  fi
  if [ $python = 1 ]; then
    for peer in faiss usearch; do
      if [ "$set" = patches ]; then # each would take five minutes
        figure "skipped.$peer.$set for its time"
        continue
      fi
      OMP_NUM_THREADS=1 measure "index.$set" "$venv/bin/python" bench/vectors/peers.py $peer "$data/$set.bin" \
        "$out/$set.$rows.truth" "$work/$peer" --rows "$rows" --queries "$queries" --threads "$(nproc)"
    done
  fi
}

for set in $sets; do
  rows=$(eval echo "\$rows_$set")
  rm -rf "$work"; mkdir -p "$work"
  "$out/bench_vectors" truth "$data/$set.bin" "$out/$set.$rows.truth" --rows "$rows" --queries "$queries" || continue
  index_alone "$set" "$rows"
done

# ---- Through the API, against databases

rm -rf "$work"; mkdir -p "$work"
set=fashion
"$out/bench_vectors" truth "$data/$set.bin" "$out/db.truth" --rows "$db_rows" --queries "$queries"
measure "db.$set" "$out/bench_vectors" load "$data/$set.bin" "$work/lode" --rows "$db_rows"
measure "db.$set" "$out/bench_vectors" query "$data/$set.bin" "$work/lode" "$out/db.truth" --queries "$queries"
if [ $python = 1 ]; then
  for peer in chroma lance; do
    measure "db.$set" "$venv/bin/python" bench/vectors/peers.py $peer "$data/$set.bin" "$out/db.truth" "$work/$peer" \
      --rows "$db_rows" --queries "$queries"
  done
  # once more after them: what the machine did meanwhile shows as a difference
  measure "db2.$set" "$out/bench_vectors" query "$data/$set.bin" "$work/lode" "$out/db.truth" --queries "$queries"
fi

# ---- The million through the API: cold start, two threads, filters

last=${sets##* }
rows=$(eval echo "\$rows_$last")
if measure "million.$last" "$out/bench_vectors" load "$data/$last.bin" "$work/million" --rows "$rows"; then
  for i in 1 2 3; do measure "million.$last.cold$i" "$out/bench_vectors" cold "$work/million" "$data/$last.bin"; done
  measure "million.$last" "$out/bench_vectors" query "$data/$last.bin" "$work/million" "$out/$last.$rows.truth" --queries "$queries"
  measure "million.$last" "$out/bench_vectors" threads "$data/$last.bin" "$work/million" --queries "$queries" --threads 2
fi
rm -rf "$work"

figure "text.quick $quick"
figure "text.queries $queries"
figure "text.db_rows $db_rows"
figure "text.million_set $last"
figure "text.million_rows $rows"
figure "text.machine Made by \`make bench-vectors\` on $(uname -m), $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), load at the end $(cut -d' ' -f1 /proc/loadavg), in $((($(date +%s) - began) / 60)) minutes."
awk -f bench/vectors/report.awk "$figures" > "$results"
say "written: $results"
