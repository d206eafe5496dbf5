#!/bin/sh
# check-includes.sh - does every source include only what its room may? The plan is that of docs/ARCHITECTURE.md. A room of the
# programs uses the library through lode.h, and of its rooms only platform, base, os, sqlite and embed.
set -eu
cd "$(dirname "$0")/.."

may_include() {
  case "$1" in
    lib/platform | lib/base) ;;
    lib/os) echo "base" ;;
    lib/sqlite) echo "base os" ;;
    lib/kernel) echo "base" ;;
    lib/index) echo "base kernel" ;;
    lib/query) echo "base os" ;;
    lib/vfs) echo "base os sqlite" ;;
    lib/store) echo "base os sqlite vfs" ;;
    lib/repair) echo "base os sqlite vfs store" ;;
    lib/iface) echo "base" ;;
    lib/segments) echo "base os index store" ;;
    lib/engine) echo "base os iface kernel index query vfs store repair segments" ;;
    lib/remote) echo "base os iface kernel query" ;;
    lib/gemm) echo "base" ;;
    lib/embed) echo "base os gemm" ;;
    lib/api) echo "base iface query embed" ;;
    app/scan) echo "base os" ;;
    app/docs) echo "base" ;;
    app/chunk) echo "base os scan" ;;
    app/parser) echo "base os scan chunk" ;;
    app/project) echo "base os embed scan" ;;
    app/indexer) echo "base os embed scan chunk project" ;;
    app/symbols) echo "base os scan chunk project indexer" ;;
    app/search) echo "base os embed scan project indexer" ;;
    app/rescue) echo "base os sqlite" ;;
    app/ops) echo "base os scan indexer" ;;
    app/table) echo "base os ops" ;;
    app/models) echo "base os embed ops" ;;
    app/setup) echo "base os scan ops" ;;
    app/worker) echo "base os scan ops table" ;;
    app/chroma) echo "base os indexer rescue ops worker" ;;
    app/mcp) echo "base os scan project indexer search ops table models setup worker" ;;
    app/server) echo "base os scan project ops table models worker chroma docs" ;;
    app/commands) echo "base os embed scan chunk project indexer search symbols rescue ops table models setup" ;;
    app/cli) echo "base os scan project indexer search ops table commands worker chroma mcp server docs" ;;
    *) echo "unknown" ;;
  esac
}

bad=0
complain() { echo "$*"; bad=$((bad + 1)); }

for room in $(ls -d src/*/*/ | sed -e 's#^src/##' -e 's#/$##'); do
  # the platform is below everything
  ok=" $(may_include "$room") platform ${room#*/} "
  [ "$room" != lib/platform ] || ok=" platform "
  [ "$ok" != " unknown platform ${room#*/} " ] || complain "src/$room is not in the plan"
  for file in src/"$room"/*.[ch]; do
    for inc in $(sed -n 's/^#include "\([a-z]*\)\/.*".*/\1/p' "$file"); do
      case "$ok" in
        *" $inc "*) ;;
        *) complain "$file includes $inc/, and $room may include only:$ok" ;;
      esac
    done
    for inc in $(sed -n 's/^#include "\([^/"]*\)".*/\1/p' "$file"); do
      [ "$inc" = lode.h ] || complain "$file includes $inc without its room"
    done
    case "$room" in
      lib/store | lib/vfs | lib/repair) ;;
      *) ! grep -q '#include <sqlite3' "$file" || complain "$file includes sqlite3.h: only store, vfs and repair know SQLite" ;;
    esac
    # anonymous memory may be mapped, files may not
    if grep -nE '\bmmap(64)?[[:space:]]*\(' "$file" | grep -v MAP_ANON; then complain "$file maps a file"; fi
  done
done
# a file name means one file
for name in $(git ls-files 'src/*.[ch]' 'test/*/*.[ch]' | grep -v '^test/chunk/' | sed 's#.*/##' | sort | uniq -d); do
  complain "$name is the name of two files"
done
if [ "$bad" = 0 ]; then echo "1 passed, 0 failed"; else echo "0 passed, 1 failed"; exit 1; fi
