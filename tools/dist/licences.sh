#!/bin/sh
# licences.sh TARGET FOLDER - the licences of Lode and of everything that is linked into its self-contained programs for TARGET
set -eu
cd "$(dirname "$0")/../.."
target=$1 out=$2
src=build/dist/src
zig=$src/zig/ziglang
mkdir -p "$out"

# Where the text of a part is
text_of() {
  case "$1" in
    compiler-rt) echo $zig/LICENSE ;;
    musl) echo $zig/lib/libc/musl/COPYRIGHT ;;
    libunwind) echo $zig/lib/libunwind/LICENSE.TXT ;;
    utf8proc) echo $src/utf8proc/utf8proc/LICENSE.md ;;
    curl) echo $src/curl/curl/COPYING ;;
    mbedtls) echo $src/mbedtls/LICENSE ;;
    pcre2) echo $src/pcre2/LICENCE.md ;;
    mimalloc) echo $src/mimalloc/c_src/mimalloc/v2/LICENSE ;;
    *) echo "$src/$1/COPYING" ;;
  esac
}
# The comments at the head of a source, up to the one with the licence's conditions
head_of() { awk '{ print } /Redistribution and use/ { seen = 1 } seen && /\*\// { exit }' "$@"; }
install -m 644 LICENSE "$out/lode.txt"
tools/dist/parts.sh "$target" | while read -r name rest; do
  case "$name" in
    sqlite) echo "SQLite is in the public domain (https://sqlite.org/copyright.html)." >"$out/sqlite.txt" ;;
    sljit) head_of $src/pcre2/deps/sljit/sljit_src/sljitLir.c >"$out/sljit.txt" ;;
    *) install -m 644 "$(text_of "$name")" "$out/$name.txt" ;;
  esac
done
tools/dist/grammar_licences.sh "$src/grammars/node_modules" "$out"
cat >"$out/README" <<'TEXT'
The self-contained programs of Lode contain the libraries and grammars whose licences are in this folder.

libmicrohttpd is under the GNU Lesser General Public License, version 2.1 or later. Its complete source, as it is linked in, and the files
that it is built with are in lode-VERSION-libmicrohttpd.tar.gz, which is published beside this package, at the same place. Lode's own source and
the commands that link both (`make dist`) are in its repository, so that the program can be linked with a changed libmicrohttpd: change
it in build/dist/src/libmicrohttpd and run `make dist`. Whoever has this package may change it for their own use and take it apart to find
errors in such changes.
TEXT
