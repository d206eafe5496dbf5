#!/bin/sh
# budget.sh parts STAGE LIBRARY - what the parts in STAGE and the library LIBRARY take, packed: installed bytes, packed bytes, the most that is allowed
# budget.sh packages FILE... - the same of packages, which are packed already. Fails if one is above what budget.txt allows.
set -eu
list=$(dirname "$0")/budget.txt
over=0
# NAME BUDGET INSTALLED PACKED
row() {
  most=$(awk -v name="$2" '$1 == name { print $2 }' "$list")
  [ -n "$most" ] || { echo "budget: $list has no line for $2" >&2; exit 1; }
  printf '%s %d %d %d\n' "$1" "$3" "$4" "$most"
  [ "$4" -le "$most" ] || { echo "budget: $1 takes $4 bytes packed, at most $most are allowed" >&2; over=1; }
}
# NAME FILE...
part() {
  name=$1
  shift
  row "$name" "$name" "$(cat "$@" | wc -c)" "$(cat "$@" | gzip -9n | wc -c)"
}
what=$1
shift
case "$what" in
  parts)
    part lode "$1/bin/lode"
    part lode-parser "$1/lib/lode/lode-parser"
    part models "$1"/share/lode/models/*
    part liblode "$2"
    # shellcheck disable=SC2046
    part other $(find "$1" -type f ! -path "$1/bin/*" ! -path "$1/lib/*" ! -path "$1/share/lode/models/*" | LC_ALL=C sort)
    ;;
  packages) for file in "$@"; do row "$(basename "$file")" package "$(wc -c <"$file")" "$(wc -c <"$file")"; done ;;
  *) echo "usage: budget.sh parts STAGE LIBRARY | packages FILE..." >&2; exit 2 ;;
esac
[ "$over" = 0 ]
