#!/bin/sh
# map.sh LODE [FOLDER] - how good the map of a folder's code is, by neighbours (`lode db map`) and by two principal components: of the 10
# nearest of a point on the map, the share that is among its 10 and its 50 nearest in space; and the seconds of CPU, of a first run and of one
# that uses the places that were kept. The folder (the sources of this project when none is given) is copied and indexed.
set -eu
lode=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
here=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/tree" "$dir/tree/.git"
if [ $# -gt 1 ]; then
  cp -r "$2" "$dir/tree/"
else
  (cd "$here" && git ls-files | tar -T - -cf -) | tar -xf - -C "$dir/tree"
fi
"$lode" index -q "$dir/tree"
# run NAME ARGS...: the map, its note into NAME.note, its time into NAME.time
run() {
  name=$1
  shift
  { time -p "$lode" db map code --store "$dir/tree/.lode" "$@" >/dev/null 2>"$dir/$name.note"; } 2>"$dir/$name.time"
}
cpu() { awk '$1 == "user" || $1 == "sys" { sum += $2 } END { printf "%.2f", sum }' "$dir/$1.time"; }
printf '%-11s %8s %9s %9s %8s %8s\n' by points '10 in 10' '10 in 50' first again
for points in 500 2000 5000 10000; do
  for by in neighbours pca; do
    run first --sample $points --by $by
    run again --sample $points --by $by
    sed -n 's/.*note: \([0-9]*\) of .* there, \([0-9.]*\) % .* and \([0-9.]*\) % .*/\1 \2 \3/p' "$dir/first.note" | {
      read -r n ten fifty
      printf '%-11s %8s %8s%% %8s%% %7ss %7ss\n' $by "$n" "$ten" "$fifty" "$(cpu first)" "$(cpu again)"
    }
  done
done
