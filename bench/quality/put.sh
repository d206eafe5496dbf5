#!/bin/sh
# put.sh NAME <TEXT - replaces what stands between <!-- NAME --> and <!-- end --> in bench/QUALITY.md.
set -eu
page=$(cd "$(dirname "$0")/.." && pwd)/QUALITY.md
text=$(mktemp)
trap 'rm -f "$text" "$page.new"' EXIT
cat >"$text"
awk -v name="<!-- $1 -->" -v text="$text" '
  $0 == "<!-- end -->" { inside = 0 }
  !inside { print }
  $0 == name { inside = 1; while ((getline line <text) > 0) print line }' "$page" >"$page.new"
mv "$page.new" "$page"
