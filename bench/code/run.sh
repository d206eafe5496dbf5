#!/bin/bash
# run.sh - `make bench-code`: code search on real trees. About 15 minutes on two cores.
#   LODE=path of lode   LINUX=an unpacked Linux tree instead of Debian's   OUT=where trees and indexes lie (else under TMPDIR, removed at the end)
#   REPORT=file for the table (bench/CODE.md)   QUICK=1: only fs/ and kernel/ of the Linux tree; goals are then not checked
# Progress goes to standard error, the table to REPORT and standard output. Nothing of it is needed to build or to test.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
lode=$(realpath "${LODE:-$here/build/release/lode}")
report=$(realpath -m "${REPORT:-$here/bench/CODE.md}")
out=${OUT:-$(mktemp -d)}
keep=${OUT:+yes}
watcher=
cleanup() {
  [ -z "$watcher" ] || kill "$watcher" 2>/dev/null || true
  [ -n "$keep" ] || rm -rf "$out"
}
trap cleanup EXIT
mkdir -p "$out"
: >"$out/rows"

say() { echo "$(date +%T) $*" >&2; }
# In microseconds, by the shell itself: to start a program for it would count as a part of what is measured
now() { echo "${EPOCHREALTIME/[.,]/}"; }
ms_since() { echo $(((${EPOCHREALTIME/[.,]/} - $1) / 1000)); }
seconds() { awk -v ms="$1" 'BEGIN { printf "%.1f s", ms / 1000 }'; }
field() { sed -n "s/.*\"$1\":\([0-9.]*\).*/\1/p" "$out/json" | head -1; }
# row TREE FIGURE VALUE [GOAL NUMBER LIMIT]: met when NUMBER is below LIMIT
row() {
  local goal=${4:--} met=-
  if [ -n "${5:-}" ] && [ -z "${QUICK:-}" ]; then met=$(awk -v a="$5" -v b="$6" 'BEGIN { print a < b ? "yes" : "no" }'); fi
  printf '| %s | %s | %s | %s | %s |\n' "$1" "$2" "$3" "$goal" "$met" >>"$out/rows"
  say "$1: $2: $3"
}
# The median of 9 runs of a command as new processes, in tenths of milliseconds
median() {
  local start
  for _ in 1 2 3 4 5 6 7 8 9; do
    start=${EPOCHREALTIME/[.,]/}
    "$@" >/dev/null 2>&1 || true
    echo $(((${EPOCHREALTIME/[.,]/} - start) / 100))
  done | sort -n | sed -n 5p
}
timing() { # timing TREE FIGURE LIMIT_MS COMMAND...
  local tree=$1 figure=$2 limit=$3 tenths
  shift 3
  tenths=$(median "$@")
  row "$tree" "$figure" "$((tenths / 10)).$((tenths % 10)) ms" "under $limit ms" "$tenths" "$((limit * 10))"
}

full_index() { # full_index TREE: in the present folder; with goals for the large tree
  local tree=$1 start ms kib
  rm -rf .lode
  start=$(now)
  /usr/bin/env time -f %M -o "$out/memory" "$lode" index --json >"$out/json" 2>"$out/err" || { say "$tree: $(tail -1 "$out/err")"; return 1; }
  ms=$(ms_since "$start")
  kib=$(tail -1 "$out/memory")
  if [ "$tree" = linux ]; then
    row "$tree" "full index, all of it" "$(seconds "$ms")" "under 300 s" "$ms" 300000
    row "$tree" "largest resident memory" "$((kib / 1024)) MiB" "under 1,536 MiB" "$kib" 1572864
  else
    row "$tree" "full index, all of it" "$(seconds "$ms")"
  fi
  row "$tree" "files, chunks" "$(field files), $(field chunks)"
  row "$tree" "walk; read, parse, embed, write; text and vector index" "$(seconds "$(field walk_ms)"); $(seconds "$(field index_ms)"); $(seconds "$(field finish_ms)")"
  row "$tree" "files/s, chunks/s over all" "$(awk -v f="$(field files)" -v c="$(field chunks)" -v ms="$ms" 'BEGIN { printf "%d, %d", f * 1000 / ms, c * 1000 / ms }')"
  row "$tree" "size of the index" "$(($(du -sk .lode | cut -f1) / 1024)) MiB"
}

watch_latency() { # from saving a file to finding it, the median of 5
  local file=$1 i start ms
  "$lode" watch >/dev/null 2>"$out/watch" & watcher=$!
  for i in $(seq 1 600); do "$lode" status --skip-stats --json 2>/dev/null | grep -q '"watcher":"process' && break; sleep 0.1; done
  for i in $(seq 1 300); do grep -q watching "$out/watch" && break; sleep 0.1; done
  sleep 3
  for i in 1 2 3 4 5; do
    printf '\n/* zebrafinch%s */\n' "$i" >>"$file"
    start=$(now)
    until "$lode" search "zebrafinch$i" --mode text --json -n 1 2>/dev/null | grep -q "zebrafinch$i"; do
      [ "$(ms_since "$start")" -gt 20000 ] && break
    done
    ms_since "$start"
  done | sort -n | sed -n 3p >"$out/latency"
  kill -INT "$watcher" 2>/dev/null || true
  wait "$watcher" 2>/dev/null || true
  watcher=
  ms=$(cat "$out/latency")
  row linux "watch: from saving a file to finding it" "$ms ms" "under 1,000 ms" "$ms" 1000
}

many_changed() { # as many files as in the report of the failure that lode is to survive
  local start ms
  find . -name '*.[ch]' -not -path './.lode/*' | LC_ALL=C sort | head -31985 >"$out/changed"
  while IFS= read -r f; do echo '/* changed */' >>"$f"; done <"$out/changed"
  start=$(now)
  if /usr/bin/env time -f %M -o "$out/memory" "$lode" index --json >"$out/json" 2>"$out/err"; then
    ms=$(ms_since "$start")
    row linux "$(wc -l <"$out/changed") files changed at once" "$(seconds "$ms"), $(field changed) changed" "done"
    row linux "  largest resident memory" "$(($(tail -1 "$out/memory") / 1024)) MiB" "under 1,536 MiB" "$(tail -1 "$out/memory")" 1572864
  else
    row linux "many files changed at once" "failed: $(tail -1 "$out/err")" "done" 1 0
  fi
}

bench_linux() {
  local start ms file root=${LINUX:-$out/linux}
  if [ ! -d "$root" ]; then
    [ -e /usr/src/linux-source-6.1.tar.xz ] || "$here/tools/deps.sh" linux-source-6.1 >&2 || true
    if [ ! -e /usr/src/linux-source-6.1.tar.xz ]; then
      echo "skipped: linux: the package linux-source-6.1 cannot be installed" | tee -a "$out/skipped"
      return
    fi
    say "unpacking"
    mkdir -p "$root"
    tar -C "$root" --strip-components=1 -xf /usr/src/linux-source-6.1.tar.xz
    rm -f "$root/.gitignore" # Debian's ignores everything but its own folder
  fi
  if [ -n "${QUICK:-}" ]; then
    mkdir -p "$out/part" && cp -r "$root/fs" "$root/kernel" "$out/part/" && root=$out/part
  fi
  cd "$root"
  full_index linux || return
  start=$(now)
  "$lode" index -q
  ms=$(ms_since "$start")
  row linux "index again, nothing changed" "$(seconds "$ms")" "under 2 s" "$ms" 2000
  file=$(find . -name '*.c' -not -path './.lode/*' | LC_ALL=C sort | sed -n 100p)
  printf '\n/* bench_marker */\n' >>"$file"
  start=$(now)
  "$lode" index -q
  ms=$(ms_since "$start")
  row linux "index again, one file changed (it walks)" "$(seconds "$ms")"
  timing linux "search, new process: words and vectors, a question" 100 "$lode" search "how are pages of memory given back" --json
  timing linux "search, new process: words and vectors, a name" 100 "$lode" search schedule_timeout --json
  timing linux "search, new process: words alone" 100 "$lode" search "how are pages of memory given back" --mode text --json
  timing linux "search, new process: vectors alone" 100 "$lode" search "how are pages of memory given back" --mode vector --json
  timing linux "status" 10 "$lode" status --json
  watch_latency "$file"
  many_changed
}

bench_other() { # bench_other NAME FOLDER LIMIT_MS [minilm]: a copy of it
  local name=$1
  if [ ! -d "$2" ]; then
    echo "skipped: $name: there is no $2" | tee -a "$out/skipped"
    return
  fi
  rm -rf "$out/other" && mkdir -p "$out/other" && cp -r "$2/." "$out/other/"
  cd "$out/other"
  full_index "$name" || return
  timing "$name" "search, new process: words and vectors" "$3" "$lode" search "read the configuration file" --json
  if [ "${4:-}" = minilm ] && "$lode" config set quality true >/dev/null 2>&1 && "$lode" model list --json 2>/dev/null | grep -q '"name":"minilm".*"installed":true'; then
    "$lode" index -q --quality && timing "$name" "search, new process, with MiniLM" 150 "$lode" search "read the configuration file" --json
  fi
}

bench_linux
bench_other "lode (C)" "$here/src" 30 minilm
bench_other "Python's library" /usr/lib/python3.11 100
{
  echo "# Code search: figures"
  echo
  echo "Made by \`make bench-code\` with $("$lode" --version | head -1) on $(nproc) cores ($(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)), $(date -u +%F). Searches and"
  echo "status are medians of nine new processes; the tree linux is Debian's linux-source-6.1."
  echo
  echo "| tree | figure | value | goal | met |"
  echo "|---|---|---|---|---|"
  cat "$out/rows"
  [ ! -s "$out/skipped" ] || { echo; cat "$out/skipped"; }
} >"$out/report"
cp "$out/report" "$report"
cat "$report"
