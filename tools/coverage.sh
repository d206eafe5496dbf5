#!/bin/sh
# coverage.sh BUILD FILE - what the tests of a coverage build (make coverage) reached: prints a table of rooms and the files with the least,
# and writes it into FILE between the lines <!-- coverage --> and <!-- end of coverage -->.
#
# Counted are lines and branches of the .c files of the rooms below, as gcov sees them without optimisation. A branch is one outcome of a
# condition: `if (a && b)` has four. Not counted are the branches of INVARIANT, ENSURE and their like, whose other outcome aborts.
set -eu
build=$1 file=$2
rooms="base sqlite kernel index query vfs store repair segments iface engine"
work=$(mktemp -d "${TMPDIR:-/tmp}/lode-coverage-XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM

for room in $rooms; do
  for source in src/lib/"$room"/*.c; do
    object=$build/${source%.c}
    [ -f "$object.gcno" ] || continue
    gcov -t -b -c -o "$object.o" "$source" 2>/dev/null
  done
done | awk '
  # One block for each source and header: "-: 0:Source:NAME", then "COUNT:LINE:text" with the branches of a line after it
  /^ *-: *0:Source:/ { sub(/^ *-: *0:Source:/, ""); file = $0; own = file ~ /^src\/lib\/.*\.c$/; next }
  !own { next }
  /^branch/ {
    if (checked) next
    branches[file]++
    if ($0 ~ /taken [1-9]/) taken[file]++
    next
  }
  /^ *[^:]*: *[0-9]+:/ {
    count = $0; sub(/^ */, "", count); sub(/:.*/, "", count)
    text = $0; sub(/^ *[^:]*: *[0-9]+:/, "", text)
    checked = text ~ /(INVARIANT|ENSURE|UNREACHABLE|assert)[A-Z_]*\(/
    if (count == "-") next
    lines[file]++
    if (count !~ /^[#=]/) reached[file]++
  }
  END { for (f in lines) print f, lines[f], reached[f] + 0, branches[f] + 0, taken[f] + 0 }' | sort >"$work/files"

{
  echo '| room | lines | reached | branches | taken |'
  echo '|---|---:|---:|---:|---:|'
  for room in $rooms; do grep "^src/lib/$room/" "$work/files" || :; done | awk '
    function row(name, l, r, b, t) {
      printf "| %s | %d | %.1f %% | %d | %.1f %% |\n", name, l, l ? 100 * r / l : 100, b, b ? 100 * t / b : 100
    }
    { split($1, part, "/"); room = part[3]
      if (!(room in l)) order[++n] = room
      l[room] += $2; r[room] += $3; b[room] += $4; t[room] += $5; L += $2; R += $3; B += $4; T += $5 }
    END { for (i = 1; i <= n; i++) row("`lib/" order[i] "`", l[order[i]], r[order[i]], b[order[i]], t[order[i]]); row("all", L, R, B, T) }'
  echo
  echo 'The files with the most branches that were not taken:'
  echo
  echo '| file | lines reached | branches taken | not taken |'
  echo '|---|---:|---:|---:|'
  awk '{ printf "%d | `%s` | %.1f %% | %.1f %% | %d |\n", $4 - $5, $1, 100 * $3 / $2, $4 ? 100 * $5 / $4 : 100, $4 - $5 }' "$work/files" |
    sort -rn | head -12 | sed 's/^[0-9]* //'
} >"$work/table"
cat "$work/table"
awk '/^<!-- coverage -->$/ { print; while ((getline line < table) > 0) print line; skip = 1; next }
  /^<!-- end of coverage -->$/ { skip = 0 } !skip' table="$work/table" "$file" >"$work/text"
cat "$work/text" >"$file"
