#!/bin/bash
# cost.sh OUT FOLDER... - what symbols cost `lode index`: instructions of all its processes, counted by callgrind, with the pass over symbols and
# with a parser that leaves it out (make bench-symbols-cost builds it). One line of a table for each folder, whose files are copied first.
#   make bench-symbols-cost FOLDERS='a b'
set -eu
out=$(realpath "$1")
shift
work=$(mktemp -d "${TMPDIR:-/tmp}/symbols-cost.XXXXXX")
trap 'rm -rf "$work"' EXIT
export HOME=$work/home XDG_CONFIG_HOME=$work/home XDG_DATA_HOME=$work/home
mkdir -p "$work/home" "$work/with" "$work/without"
ln -s "$out/../grammars" "$work/grammars"
cp "$out/lode" "$out/lode-parser" "$work/with"
cp "$out/lode" "$work/without"
cp "$out/bench/symbols/lode-parser-without" "$work/without/lode-parser"

# count SIDE: millions of instructions of one run, all processes, then those of the parser
count() {
  rm -rf "$work/tree/.lode" "$work"/callgrind.*
  (cd "$work/tree" && valgrind -q --tool=callgrind --trace-children=yes --callgrind-out-file="$work/callgrind.%p" \
    "$work/$1/lode" index --workers 1 --quiet) >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
  awk '/^desc: Cmd:|^cmd:/ {parser = /lode-parser/} /^(summary|totals):/ {if (!seen[FILENAME]++) {all += $2; if (parser) own += $2}}
    END {printf "%.0f %.0f", all / 1e6, own / 1e6}' "$work"/callgrind.*
}

echo '| folder | files | MB | index, million instructions | without symbols | more | parser alone |'
echo '|---|---|---|---|---|---|---|'
for folder; do
  rm -rf "$work/tree"
  mkdir "$work/tree"
  tar -C "$folder" --exclude=.git --exclude=.lode -cf - . | tar -C "$work/tree" -xf -
  read -r with with_parser <<<"$(count with)"
  files=$(cd "$work/tree" && "$work/with/lode" status --json | grep -o '"files":[0-9]*' | head -1 | grep -o '[0-9]*$')
  read -r without without_parser <<<"$(count without)"
  size=$(du -sb --exclude=.lode "$work/tree" | awk '{printf "%.1f", $1 / 1e6}')
  awk -v n="$(basename "$folder")" -v f="$files" -v s="$size" -v a="$with" -v b="$without" -v p="$with_parser" -v q="$without_parser" \
    'BEGIN {printf "| %s | %d | %s | %d | %d | %.1f %% | %.1f %% |\n", n, f, s, a, b, 100 * (a / b - 1), 100 * (p / q - 1)}'
done
