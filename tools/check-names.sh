#!/bin/sh
# check-names.sh OUT - does every name that two files see tell its room? OUT is a folder that make has filled: build/release.
#
# Functions and variables come from the objects; types, macros and enum constants from the headers. Names of lode.h are public and
# belong to nobody else. In the library, no two files have a static function of the same name. SQLite's statements are run through
# store/statements.h. Every source names its licence.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/release}

prefixes() {
  case "$1" in
    lib/platform) echo "os build" ;;
    lib/base) echo "err mem strbuf str utf8 hash rand sort num vec crc32c sha256 json meta token try invariant ensure" ;;
    lib/os) echo "os beneath proc http storefile" ;;
    lib/sqlite) echo "sqf" ;;
    lib/kernel) echo "kernel quant" ;;
    lib/index) echo "index" ;;
    lib/query) echo "filter regex fuse" ;;
    lib/vfs) echo "vfs journal" ;;
    lib/store) echo "store" ;;
    lib/repair) echo "repair salvage verify backup" ;;
    lib/iface) echo "iface engine remote" ;; # the tables of both engines are declared there
    lib/segments) echo "segments" ;;
    lib/engine) echo "engine" ;;
    lib/remote) echo "remote" ;;
    lib/gemm) echo "gemm" ;;
    lib/embed) echo "embed" ;;
    lib/api) echo "api" ;;
    app/scan) echo "scan ignore mask lang watch git files" ;;
    app/docs) echo "docs" ;;
    app/chunk) echo "chunk parser_pool parser_wire" ;;
    app/parser) echo "parser" ;;
    app/project) echo "project config trust" ;;
    app/indexer) echo "indexer" ;;
    app/search) echo "search rank" ;;
    app/symbols) echo "symbols" ;;
    app/rescue) echo "rescue" ;;
    app/ops) echo "op" ;;
    app/table) echo "op" ;;
    app/commands) echo "op" ;;
    app/models) echo "model" ;;
    app/setup) echo "setup" ;;
    app/worker) echo "worker supervisor wire crash" ;;
    app/chroma) echo "chroma" ;;
    app/mcp) echo "mcp op" ;;
    app/server) echo "server op" ;;
    app/cli) echo "cli browse op worker_services" ;;
  esac
}

work=$(mktemp -d "${TMPDIR:-/tmp}/lode-names-XXXXXX")
trap 'rm -rf "$work"' EXIT

rooms=$(ls -d src/*/*/ | sed -e 's#^src/##' -e 's#/$##')
for room in $rooms; do echo "$room $(prefixes "$room")"; done >"$work/prefixes"

# objects that still have a source: make leaves those of sources that were moved or removed
for object in "$out"/src/lib/*/*.o "$out"/src/app/*/*.o; do
  source=${object#"$out"/}
  [ ! -f "${source%.o}.c" ] || echo "$object"
done >"$work/objects"

# NAME WHERE of everything that is shared
{
  xargs nm -gA --defined-only <"$work/objects" | awk 'NF == 3 { sub(/:.*/, "", $1); print $3, $1 }'
  # shellcheck disable=SC2046
  awk '
    FNR == 1 { in_enum = 0; guard = ""; template = 1 }
    /^#ifndef [A-Z0-9_]+_H$/ && guard == "" { guard = $2; template = 0; next }
    { line = $0; gsub(/\/\*.*\*\//, "", line); sub(/\/\*.*/, "", line); if (line ~ /^ \*/) next }
    line ~ /^#define / { split(line, w, /[ (]/); if (w[2] != guard && !template) print w[2], FILENAME; next }
    line ~ /^typedef (struct|union|enum) [a-z0-9_]+/ { split(line, w, " "); print w[3], FILENAME }
    line ~ /^} [a-z0-9_]+;/ { split(line, w, /[ ;]/); print w[2], FILENAME }
    line ~ /^(typedef )?enum [a-z0-9_ ]*[{]/ { in_enum = 1; sub(/^[^{]*[{]/, "", line) }
    in_enum {
      n = split(line, w, /,/)
      for (i = 1; i <= n; i++) { x = w[i]; gsub(/[ \t]/, "", x); sub(/[=}].*/, "", x); if (x ~ /^[A-Z][A-Z0-9_]*$/) print x, FILENAME }
      if (line ~ /}/) in_enum = 0
    }' $(ls src/*/*/*.h)
} | sort -u >"$work/names"

awk -v out="$out/" '
  NR == FNR { room = $1; $1 = ""; allowed[room] = $0; next }
  $1 ~ /^(lode_|LODE_|main$)/ { next }
  {
    where = $2; sub("^" out, "", where)
    split(where, part, "/"); room = part[2] "/" part[3]
    n = split(allowed[room], prefix, " "); name = tolower($1); ok = 0
    for (i = 1; i <= n; i++) if (name == prefix[i] || index(name, prefix[i] "_") == 1) ok = 1
    if (!ok) print where ": " $1 " does not tell its room, " room " (" substr(allowed[room], 2) ")"
  }' "$work/prefixes" "$work/names" >"$work/bad"
cat "$work/bad"
bad=$(wc -l <"$work/bad")

grep -F "$out/src/lib/" "$work/objects" | xargs nm -A --defined-only | awk '$2 == "t" { sub(/[.].*/, "", $3); sub(/:.*/, "", $1); print $3, $1 }' | sort -u |
  awk '{ print $1 }' | uniq -d >"$work/twice"
for name in $(cat "$work/twice"); do
  # instances of one template or of one inline function of a header
  grep -qE "^(static|[A-Z_]+) .*\b$name\(" include/lode.h src/lib/*/*.h && continue
  echo "two files of the library have a static function $name"; bad=$((bad + 1))
done
# a result of these that is not looked at would be a statement that ran with another parameter, or not at all
if grep -nE '\bsqlite3_(bind_[a-z0-9]+|step|prepare[_v0-9]*|reset)\(' src/lib/*/*.[ch] | grep -vE '^src/lib/store/statements\.[ch]:' |
  grep -vE 'rc = sqlite3_|sqlite3_bind_parameter_count|\b(sqlite3_step|sqlite3_bind_\*)\(\)'; then
  echo "only store/statements.c binds and steps, or the result is assigned to rc"; bad=$((bad + 1))
fi
for file in $(git ls-files 'src/*.[ch]' 'include/*.h' 'test/*.[ch]' 'fuzz/*.[ch]' 'bench/*.[ch]' 'tools/*.[ch]' | grep -v '^test/chunk/'); do
  IFS= read -r line <"$file"
  case "$line" in *SPDX-License-Identifier*) ;; *) echo "$file: no licence in its first line"; bad=$((bad + 1)) ;; esac
done
if [ "$bad" = 0 ]; then echo "1 passed, 0 failed"; else echo "0 passed, 1 failed"; exit 1; fi
