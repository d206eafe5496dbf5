#!/bin/bash
# run.sh - `make bench-code`: code search on real trees, and other tools beside it where they can be had.
#   LODE=path of lode   TREES="linux debian:openssl ..." or folders   OUT=where trees and indexes lie (under TMPDIR, removed at the end)
# Figures go to standard output as a table. Nothing of it is needed to build or to test.
set -eu
lode=$(realpath "${LODE:-build/release/lode}")
trees=${TREES:-linux}
out=${OUT:-$(mktemp -d)}
keep=${OUT:+yes}
trap '[ -n "$keep" ] || rm -rf "$out"' EXIT
mkdir -p "$out"

now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.2f", b - a }'; }
field() { sed -n "s/.*\"$1\":\([0-9.]*\).*/\1/p" | head -1; }
row() { printf '%-28s %-34s %s\n' "$tree" "$1" "$2"; }

# The median of some runs of a command, in milliseconds
median_ms() {
  local n=$1 i
  shift
  for i in $(seq 1 "$n"); do
    local start
    start=$(date +%s%N)
    "$@" >/dev/null 2>&1 || true
    echo $((($(date +%s%N) - start) / 10000))
  done | sort -n | awk '{ v[NR] = $1 } END { printf "%.1f", v[int((NR + 1) / 2)] / 100 }'
}

get_tree() { # a folder with the tree's files, in $root
  case $tree in
    linux)
      root=$out/linux
      if [ ! -d "$root" ]; then
        [ -e /usr/src/linux-source-6.1.tar.xz ] || tools/deps.sh linux-source-6.1 >&2 || true
        if [ ! -e /usr/src/linux-source-6.1.tar.xz ]; then
          echo "skipped: linux: the package linux-source-6.1 cannot be installed"
          return 1
        fi
        mkdir -p "$root" && tar -C "$root" --strip-components=1 -xf /usr/src/linux-source-6.1.tar.xz
        rm -f "$root/.gitignore" # Debian's ignores everything but its own folder
      fi ;;
    *)
      root=$tree
      [ -d "$root" ] || { echo "skipped: $tree: no such folder"; return 1; } ;;
  esac
}

bench_tree() {
  local json start
  get_tree || return 0
  cd "$root"
  rm -rf .lode
  start=$(now)
  json=$(/usr/bin/env time -f '%M' -o "$out/memory" "$lode" index --json 2>"$out/err") || { echo "$tree: $(cat "$out/err")"; return 0; }
  row "full index" "$(since "$start") s"
  row "  files, chunks" "$(printf %s "$json" | field files), $(printf %s "$json" | field chunks)"
  row "  looking at files" "$(printf %s "$json" | field walk_ms) ms"
  row "  read, parse, embed, write" "$(printf %s "$json" | field index_ms) ms"
  row "  text and vector index" "$(printf %s "$json" | field finish_ms) ms"
  row "  files/s, chunks/s" "$(printf %s "$json" | awk -F'[:,]' '{ for (i = 1; i < NF; i++) { if ($i ~ /"files"/) f = $(i + 1); if ($i ~ /"chunks"/) c = $(i + 1); if ($i ~ /"seconds"/) s = $(i + 1) + 0 } if (s > 0) printf "%d, %d", f / s, c / s }')"
  row "  largest resident set" "$(tail -1 "$out/memory") KiB"
  row "  size of the index" "$(du -sk .lode | cut -f1) KiB"
  start=$(now)
  "$lode" index -q
  row "index again, nothing changed" "$(since "$start") s"
  local file
  file=$("$lode" search main --files-only -n 1 | head -1)
  printf '\n/* bench_marker_zebra */\n' >>"$file"
  start=$(now)
  "$lode" index -q
  row "index again, one file changed" "$(since "$start") s"
  row "status, new process" "$(median_ms 9 "$lode" status) ms"
  row "search, new process (words)" "$(median_ms 9 "$lode" search "how are pages of memory given back" --json) ms"
  row "search, new process (name)" "$(median_ms 9 "$lode" search main --json) ms"
  row "search by words alone" "$(median_ms 9 "$lode" search "read the configuration file" --mode text --json) ms"
}

peers() { # semble and mcp-vector-search, where they can be installed without a network of their own choosing
  local venv=$out/venv peer
  command -v python3 >/dev/null || { echo "skipped: peers: no python3"; return; }
  python3 -m venv "$venv" 2>/dev/null || { echo "skipped: peers: python3 has no venv"; return; }
  for peer in semble mcp-vector-search; do
    if ! "$venv/bin/pip" install -q "$peer" >"$out/pip.log" 2>&1; then
      echo "skipped: $peer: it cannot be installed here"
      continue
    fi
    tree=$peer
    cd "$root"
    local start
    start=$(now)
    case $peer in
      semble) timeout 1200 "$venv/bin/semble" search "how are pages of memory given back" . >"$out/peer.log" 2>&1 || { echo "skipped: $peer: $(tail -1 "$out/peer.log")"; continue; } ;;
      *) timeout 1200 "$venv/bin/mcp-vector-search" init --force --no-mcp >"$out/peer.log" 2>&1 || { echo "skipped: $peer: $(tail -1 "$out/peer.log")"; continue; } ;;
    esac
    row "index and first search" "$(since "$start") s"
  done
}

printf '%-28s %-34s %s\n' tree what figure
for tree in $trees; do (bench_tree); done
[ -n "${PEERS:-}" ] && { tree=${trees%% *}; get_tree && peers; }
exit 0
