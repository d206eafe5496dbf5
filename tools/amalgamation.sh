#!/bin/sh
# amalgamation.sh OUT - writes the library into the folder OUT as lode.h, lode.c and lode_gemm.c. The matrix products of encoders stand
# apart because they, and nothing else, may use fused multiply-add.
#
#   cc -O2 -c lode.c lode_gemm.c      needs the headers of SQLite, PCRE2, utf8proc and curl
#   cc program.c lode*.o -lsqlite3 -lpcre2-8 -lutf8proc -lpthread -lm -ldl
#
# Names that files of the library share become lode__NAME, by a list of #define at the top (names.h has the same list, for tests
# that reach inside). Macros of a source file end with it.
set -eu
[ $# = 1 ] || { echo "usage: tools/amalgamation.sh OUT" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
cp include/lode.h "$out/lode.h"

# Every function and variable that a header below src/lib declares and a source defines: what nm shows of the built library
lib=${LODE_LIB:-build/release/inside/lib.a}
[ -f "$lib" ] || { echo "amalgamation: $lib is not there: run make first" >&2; exit 1; }
nm -g --defined-only "$lib" | awk 'NF == 3 && $3 !~ /^lode_/ { print $3 }' | LC_ALL=C sort -u | sed 's/.*/#define & lode__&/' >"$out/names.h"

join() { # files...: to standard output, each header once
  awk -v names="$out/names.h" '
    function resolve(name, from,   path) {
      path = "src/lib/" name
      if ((getline line < path) >= 0) { close(path); return path }
      return ""
    }
    # Names of a room that a text uses: those that no guarded header has are the instance'"'"'s own
    function collect(path, into,   line, w) {
      while ((getline line < path) > 0) {
        if (line ~ /^#(define|ifdef|ifndef|undef) /) { split(line, w, /[ (]/); is_macro[w[2]] = 1 }
        while (match(line, /(kernel|lanes|quant|gemm|KERNEL|QUANT|GEMM)_[A-Za-z0-9_]+/)) {
          into[substr(line, RSTART, RLENGTH)] = 1
          line = substr(line, RSTART + RLENGTH)
        }
      }
      close(path)
    }
    # A source that includes a template gets a suffix on the names that it and the template define
    function instance(path,   line, name, header, used, is, suffix, id, n) {
      is = 0
      while ((getline line < path) > 0)
        if (match(line, /^#include "/)) {
          name = substr(line, RSTART + RLENGTH); sub(/".*/, "", name)
          header = resolve(name)
          if (header != "" && !guarded(header)) { is = 1; collect(header, used) }
        }
      close(path)
      if (!is) return 0
      collect(path, used)
      suffix = path; sub(/.*\//, "", suffix); sub(/[.].*/, "", suffix)
      n = 0
      for (id in used) if (!(id in shared) && !(id in is_macro)) { print "#define " id " " id "_" suffix; own[++n] = id }
      return n
    }
    function put(path,   line, name, header, i, renamed, own_macros) {
      own_macros = path ~ /[.]c$/ || !guarded(path)
      print "\n/* ---- " path " ---- */"
      renamed = path ~ /[.]c$/ ? instance(path) : 0
      while ((getline line < path) > 0) {
        if (match(line, /^#include "/)) {
          name = substr(line, RSTART + RLENGTH); sub(/".*/, "", name)
          if (name == "lode.h" || name == "base/banned.h") continue
          header = resolve(name)
          if (header == "") { print "amalgamation: " path ": no " name > "/dev/stderr"; exit 1 }
          if (header in seen) continue
          if (guarded(header)) seen[header] = 1
          put(header)
          continue
        }
        # those of a template end with the source that includes it
        if (own_macros && match(line, /^#define [A-Za-z_][A-Za-z0-9_]*/)) pending[++n_pending] = substr(line, 9, RLENGTH - 8)
        print line
      }
      close(path)
      if (path !~ /[.]c$/) return
      for (i = 1; i <= n_pending; i++) print "#undef " pending[i]
      n_pending = 0
      for (i = 1; i <= renamed; i++) print "#undef " own[i]
    }
    # A header without a guard is a template: its includer defines what it needs, and it may come again
    function guarded(path,   line, found) {
      found = 0
      while ((getline line < path) > 0) if (line ~ /^#ifndef [A-Z0-9_]+_H$/) { found = 1; break }
      close(path)
      return found
    }
    BEGIN {
      while ((getline line < names) > 0) { split(line, w, " "); shared[w[2]] = 1 }
      while (("ls src/lib/*/*.h" | getline header) > 0) if (guarded(header)) collect(header, shared)
      for (i = 1; i < ARGC; i++) put(ARGV[i])
    }' "$@"
}

head() { # what
  cat <<END
/* $1 - $2, version $(sed -n 's/^#define LODE_VERSION_TEXT "\(.*\)"/\1/p' include/lode.h): all of its sources in one file, made by tools/amalgamation.sh. See lode.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "lode.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
END
}

{
  head lode.c "the library Lode"
  # distances must be the same on every CPU: no fused multiply-add
  printf '#if defined(__clang__)\n#pragma STDC FP_CONTRACT OFF\n#elif defined(__GNUC__)\n#pragma GCC optimize("fp-contract=off")\n#endif\n'
  cat "$out/names.h"
  for room in platform base os sqlite kernel index query vfs store repair segments iface engine remote embed api; do
    ls src/lib/$room/*.c
  done >"$out/files"
  join $(cat "$out/files")
} >"$out/lode.c"
{
  head lode_gemm.c "matrix products for encoders"
  cat "$out/names.h"
  join src/lib/gemm/*.c
} >"$out/lode_gemm.c"
rm -f "$out/files"
wc -l "$out"/lode*.c | sed '$d'
