#!/bin/sh
# grammars.sh - fetches the grammars (npm) and compiles each into a shared object, once. Usage: grammars.sh FOLDER
#
# What is compiled stays until the list of versions changes. Sources are removed when everything is compiled, but for
# tree-sitter's own, which lode-parser is built from. Without npm or a network there are no grammars: the build goes
# on, and lode chunks by lines. Compiling all takes about 80 s of CPU time at -O1 (generated tables; -O2 gains nothing).
set -eu
cd "$(dirname "$0")/.."
out=$1
list=deps/grammars/grammars.txt
jobs=${GRAMMAR_JOBS:-2}
mkdir -p "$out"

give_up() {
  echo "grammars: skipped: $1; lode will chunk by lines"
  exit 0
}

versions=$(cat deps/grammars/package-lock.json "$list" | cksum)
if [ "$(cat "$out/versions" 2>/dev/null)" != "$versions" ]; then
  rm -f "$out"/*.so "$out/versions"
fi

wanted=
while read -r name folder; do
  case "$name" in ''|'#'*) continue ;; esac
  [ -f "$out/$name.so" ] || wanted="$wanted $name=$folder"
done <"$list"
[ -n "$wanted" ] || [ ! -d "$out/npm/node_modules/tree-sitter/vendor" ] || exit 0

if [ ! -f "$out/npm/complete" ]; then
  command -v npm >/dev/null 2>&1 || tools/deps.sh nodejs npm || give_up "npm is not installed"
  echo "grammars: fetching"
  rm -rf "$out/npm"
  mkdir -p "$out/npm"
  cp deps/grammars/package.json deps/grammars/package-lock.json "$out/npm/"
  (cd "$out/npm" && npm ci --ignore-scripts --legacy-peer-deps --omit=optional --no-audit --no-fund --loglevel=error) >"$out/npm.log" 2>&1 ||
    give_up "the packages cannot be had ($out/npm.log)"
  : >"$out/npm/complete"
fi

# one: NAME=FOLDER
cat >"$out/one.sh" <<'ONE'
set -eu
out=$1 name=${2%%=*} folder=$1/npm/node_modules/${2#*=}
scanner=
[ ! -f "$folder/scanner.c" ] || scanner=$folder/scanner.c
if ${CC:-cc} -O1 -w -g0 -fPIC -c -I"$folder" -o "$out/$name.parser.o" "$folder/parser.c" &&
   { [ -z "$scanner" ] || ${CC:-cc} -O1 -w -g0 -fPIC -c -I"$folder" -o "$out/$name.scanner.o" "$scanner"; } &&
   ${CC:-cc} -shared -s -o "$out/$name.so.tmp" "$out/$name.parser.o" ${scanner:+"$out/$name.scanner.o"}; then
  mv "$out/$name.so.tmp" "$out/$name.so"
  printf '  SO  %s\n' "$out/$name.so"
else
  echo "grammars: $name does not compile: left out"
fi
rm -f "$out/$name.parser.o" "$out/$name.scanner.o"
ONE
# shellcheck disable=SC2086
printf '%s\n' $wanted | xargs -P "$jobs" -n 1 sh "$out/one.sh" "$out"
rm -f "$out/one.sh"

for entry in $wanted; do
  [ -f "$out/${entry%%=*}.so" ] || exit 0
done
echo "$versions" >"$out/versions"
# the sources are large and no longer needed
keep=$out/tree-sitter.keep
rm -rf "$keep"
mv "$out/npm/node_modules/tree-sitter" "$keep"
rm -rf "$out/npm/node_modules"
mkdir -p "$out/npm/node_modules"
mv "$keep" "$out/npm/node_modules/tree-sitter"
rm -f "$out/npm/complete"
