#!/bin/sh
# twice.sh DIST - builds the programs of this machine a second time, in a folder of another name, and compares them with those in DIST
set -eu
cd "$(dirname "$0")/../.."
dist=$1
target=$(uname -m)-linux-musl
work=$(mktemp -d "${TMPDIR:-/tmp}/lode-twice-XXXXXX")
trap 'rm -rf "$work"' EXIT
second=$work/a-folder-with-a-longer-name/lode
mkdir -p "$second/build/dist"
git ls-files -z | xargs -0 cp --parents -t "$second"
cp -r "$dist/src" "$second/build/dist/src"
make --no-print-directory -C "$second" BUILD=build "dist-lode-$target" >"$work/log" 2>&1 || { tail -n 20 "$work/log"; exit 1; }
failed=0
for program in lode lode-parser; do
  cmp "$dist/$target/release/$program" "$second/build/dist/$target/release/$program" || failed=$((failed + 1))
done
echo "$((2 - failed)) passed, $failed failed"
[ "$failed" = 0 ]
