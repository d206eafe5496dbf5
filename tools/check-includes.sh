#!/bin/sh
# check-includes.sh - does every source include only what its folder may? The direction is that of docs/ARCHITECTURE.md.
set -eu
cd "$(dirname "$0")/.."

allowed() {
  case "$1" in
    base) echo "base" ;;
    index) echo "base index" ;;
    store) echo "base store" ;;
    query) echo "base query" ;;
    api) echo "base api" ;;
    core) echo "base index store query core api" ;;
    remote) echo "base index query remote api" ;;
    embed) echo "base embed" ;;
    code) echo "base code embed" ;;
    parser) echo "base code parser" ;;
    rescue) echo "base rescue" ;;
    face) echo "base face code embed rescue" ;;
    *) echo "" ;;
  esac
}

bad=0
for file in src/*/*.[ch]; do
  folder=$(basename "$(dirname "$file")")
  ok=$(allowed "$folder")
  # "x.h" is the same folder's, "folder/x.h" another's
  for inc in $(sed -n 's/^#include "\([a-z]*\)\/.*".*/\1/p' "$file"); do
    case " $ok " in
      *" $inc "*) ;;
      *) echo "$file includes $inc/, and $folder may include only: $ok"; bad=$((bad + 1)) ;;
    esac
  done
  if [ "$folder" != store ] && grep -q '#include <sqlite3' "$file"; then
    echo "$file includes sqlite3.h: only src/store knows SQLite"; bad=$((bad + 1))
  fi
  # anonymous memory may be mapped, files may not
  if grep -nE '\bmmap(64)?[[:space:]]*\(' "$file" | grep -v MAP_ANON; then
    echo "$file maps a file"; bad=$((bad + 1))
  fi
done
if [ "$bad" = 0 ]; then echo "1 passed, 0 failed"; else echo "0 passed, 1 failed"; exit 1; fi
