#!/bin/sh
# check-darwin.sh - does every source compile for macOS, on both of its architectures? Compiles, links nothing. Needs zig, which brings
# the headers of macOS (ZIG names the program, else `zig` or `python3 -m ziglang`), and the headers of the libraries that Lode uses.
set -eu
cd "$(dirname "$0")/.."
zig=${ZIG:-}
if [ -z "$zig" ] && command -v zig >/dev/null; then zig=zig; fi
if [ -z "$zig" ] && python3 -c 'import ziglang' 2>/dev/null; then zig="python3 -m ziglang"; fi
if [ -z "$zig" ]; then echo "skipped: no zig, so nothing was compiled for macOS"; echo "0 passed, 0 failed, 1 skipped"; exit 0; fi

work=$(mktemp -d "${TMPDIR:-/tmp}/lode-darwin-XXXXXX")
trap 'rm -rf "$work"' EXIT
: "${ZIG_GLOBAL_CACHE_DIR:=${XDG_CACHE_HOME:-${HOME:-$work}/.cache}/zig}"
export ZIG_GLOBAL_CACHE_DIR ZIG_LOCAL_CACHE_DIR="$work/zig"
# only these: the rest of the system's headers is not that of macOS
mkdir "$work/include"
for header in sqlite3.h pcre2.h utf8proc.h microhttpd.h curl; do
  for folder in /usr/include /usr/include/$(uname -m)-linux-gnu /usr/local/include; do
    if [ -e "$folder/$header" ]; then ln -s "$folder/$header" "$work/include/$header"; break; fi
  done
  [ -e "$work/include/$header" ] || { echo "skipped: no $header, so nothing was compiled for macOS"; echo "0 passed, 0 failed"; exit 0; }
done
sources=$(ls src/lib/*/*.c src/app/*/*.c)
ts=build/grammars/npm/node_modules/tree-sitter/vendor/tree-sitter/lib/include
if [ ! -d "$ts" ]; then
  echo "skipped: the parser, because make grammars has not fetched tree-sitter"
  sources=$(echo "$sources" | grep -v '^src/app/parser/')
fi
flags="-std=c11 -D_GNU_SOURCE -Iinclude -Isrc/lib -Isrc/app -isystem $work/include -isystem $ts -Wall -Wextra -Werror -DLODE_PREFIX=\"/usr/local\""
passed=0 failed=0
for target in aarch64-macos x86_64-macos; do
  echo "$sources" | ZIG_CC="$zig cc -target $target $flags" xargs -P "$(getconf _NPROCESSORS_ONLN)" -I@ \
    sh -c '$ZIG_CC -c -o "'"$work"'/$$.o" @ || echo @ >>"'"$work/$target"'"; rm -f "'"$work"'/$$.o"'
  n=$(echo "$sources" | wc -l)
  wrong=$([ ! -f "$work/$target" ] || wc -l <"$work/$target")
  echo "$target: $n sources, ${wrong:-0} do not compile"
  if [ -z "$wrong" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
