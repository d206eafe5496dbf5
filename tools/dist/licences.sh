#!/bin/sh
# licences.sh FOLDER - the licences of Lode and of everything that is linked into its self-contained programs
set -eu
cd "$(dirname "$0")/../.."
out=$1
src=build/dist/src
mkdir -p "$out"
take() { install -m 644 "$2" "$out/$1.txt"; }
take lode LICENSE
take pcre2 $src/pcre2/COPYING
take utf8proc $src/utf8proc/utf8proc/LICENSE.md
take curl $src/curl/curl/COPYING
take mbedtls $src/mbedtls/LICENSE
take libmicrohttpd $src/libmicrohttpd/COPYING
take mimalloc $src/mimalloc/c_src/mimalloc/v2/LICENSE
take zig-compiler-rt $src/zig/ziglang/LICENSE
take musl $src/zig/ziglang/lib/libc/musl/COPYRIGHT
take libunwind $src/zig/ziglang/lib/libunwind/LICENSE.TXT
echo "SQLite is in the public domain (https://sqlite.org/copyright.html)." >"$out/sqlite.txt"
for folder in "$src"/grammars/node_modules/tree-sitter* "$src"/grammars/node_modules/@*/tree-sitter-*; do
  name=${folder##*node_modules/}
  file=$(find "$folder" -maxdepth 1 -iname 'licen[sc]e*' -o -maxdepth 1 -iname copying | sort | head -n 1)
  if [ -n "$file" ]; then take "$(echo "$name" | tr -d @ | tr / -)" "$file"; else
    sed -n 's/.*"license": *"\(.*\)".*/\1, as its package.json says; the package has no text of it./p' "$folder/package.json" >"$out/$(echo "$name" | tr -d @ | tr / -).txt"
  fi
done
cat >"$out/README" <<'TEXT'
The self-contained programs of Lode contain the libraries whose licences are in this folder. libmicrohttpd is under the LGPL 2.1: the
sources of everything, and the commands that link them (`make dist`), are in Lode's repository, so that the program can be linked with
another version of it.
TEXT
