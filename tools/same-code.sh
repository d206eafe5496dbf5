#!/bin/sh
# same-code.sh REV - is the code of every object that of REV? For commits that only rename, move or format.
#
# Both trees are compiled without debug information and with __FILE__ and __LINE__ fixed. For each object the code and the
# constants are compared, with their relocations, after the tables of tools/rename have been applied to REV's symbols.
# Objects whose constants alone differ (texts that name a file or a function) are listed with the texts. Exit code 1: code differs.
set -eu
[ $# = 1 ] || { echo "usage: tools/same-code.sh REV" >&2; exit 2; }
cd "$(dirname "$0")/.."
top=$PWD
work=$(mktemp -d "${TMPDIR:-/tmp}/lode-same-XXXXXX")
trap 'git worktree remove --force "$work/old" 2>/dev/null; rm -rf "$work"' EXIT INT TERM
git worktree add -q --detach "$work/old" "$1"

flags='-g0 -Wno-builtin-macro-redefined -D__FILE__=\"\" -D__LINE__=0'
for tree in "$work/old" "$top"; do
  case "$tree" in "$top") out=$work/new ;; *) out=$work/was ;; esac
  [ ! -d "$top/build/grammars" ] || { mkdir -p "$out"; ln -sfn "$top/build/grammars" "$out/grammars"; }
  make -s -C "$tree" -j2 BUILD="$out" WERROR= CFLAGS="$flags" all >"$work/log" 2>&1 || { tail "$work/log"; exit 1; }
done

cc -O2 -o "$work/rename" tools/rename/rename.c
# the tables are for trees from before the renaming
: >"$work/names"
: >"$work/moves"
if [ ! -d "$work/old/src/lib" ]; then
  cat tools/rename/names/*.txt >"$work/names"
  cat tools/rename/moves.txt >"$work/moves"
fi

# OBJECT SECTIONS...: the bytes; the relocations
bytes() { objdump -w -s "$@" 2>/dev/null | sed -e '/file format/d' -e '/^$/d'; }
relocations() { objdump -w -r "$@" 2>/dev/null | sed -e '/file format/d' -e '/^$/d'; }
sections() { objdump -h -w "$1" | awk -v p="$2" '$2 ~ p { printf "-j %s ", $2 }'; }

same=0 texts=0 bad=0
for new in $(cd "$work/new/release" && find src -name '*.o' | sort); do
  source=${new%.o}.c
  old=$(awk -v s="$source" '$2 == s { print $1 }' "$work/moves")
  old=${old:-$source}
  old=$work/was/release/${old%.c}.o
  [ -f "$old" ] || { echo "$source: no such file in $1"; bad=$((bad + 1)); continue; }
  # names of one file or folder are names of its symbols
  awk -v f="${old#$work/was/release/}" 'BEGIN { sub(/o$/, "c", f) } { sub(/#.*/, "") } NF != 2 { next }
    (i = index($1, ":")) { p = substr($1, 1, i - 1); if (p == f || (p ~ /\/$/ && index(f, p) == 1)) own[substr($1, i + 1)] = $2; next }
    { all[$1] = $2 }
    END { for (n in own) print n, own[n]; for (n in all) if (!(n in own)) print n, all[n] }' "$work/names" >"$work/table"
  for kind in '^[.]text' '^[.](rodata|data)'; do
    a="$old $(sections "$old" "$kind")" b="$work/new/release/$new $(sections "$work/new/release/$new" "$kind")"
    # shellcheck disable=SC2086
    { bytes $a >"$work/a"; relocations $a >"$work/symbols"; bytes $b >"$work/b"; relocations $b >>"$work/b"; }
    "$work/rename" -k "$work/table" "$work/symbols"
    cat "$work/symbols" >>"$work/a"
    cmp -s "$work/a" "$work/b" && continue
    case "$kind" in
      *text*) echo "$source: code differs"; bad=$((bad + 1)); continue 2 ;;
    esac
    strings -a "$old" | sort -u >"$work/a"
    strings -a "$work/new/release/$new" | sort -u >"$work/b"
    echo "$source: texts differ"; diff "$work/a" "$work/b" | sed -n 's/^[<>]/  &/p' | head -20
    texts=$((texts + 1))
    continue 2
  done
  same=$((same + 1))
done
echo "$same objects have the same code and constants, $texts differ in texts, $bad in code"
[ "$bad" = 0 ]
