#!/bin/sh
# same-code.sh REV - is the code of every object that of REV? For commits that only format, or rename what no symbol shows.
#
# Both trees are compiled without debug information and with __FILE__ and __LINE__ fixed. For each object the code and the
# constants are compared, with their relocations. Objects whose constants alone differ (texts that name a file or a function) are
# listed with the texts. Exit code 1: code differs.
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

# OBJECT KIND: the bytes and the relocations of its sections of that kind
content() {
  sections=$(objdump -h -w "$1" | awk -v p="$2" '$2 ~ p { printf "-j %s ", $2 }')
  # shellcheck disable=SC2086
  for what in -s -r; do objdump -w $what $sections "$1" 2>/dev/null | sed -e '/file format/d' -e '/^$/d'; done
}

same=0 texts=0 bad=0
for object in $(cd "$work/new/release" && find src -name '*.o' | sort); do
  old=$work/was/release/$object new=$work/new/release/$object source=${object%.o}.c
  [ -f "$old" ] || { echo "$source: no such file in $1"; bad=$((bad + 1)); continue; }
  content "$old" '^[.]text' >"$work/a"
  content "$new" '^[.]text' >"$work/b"
  cmp -s "$work/a" "$work/b" || { echo "$source: code differs"; bad=$((bad + 1)); continue; }
  content "$old" '^[.](rodata|data)' >"$work/a"
  content "$new" '^[.](rodata|data)' >"$work/b"
  cmp -s "$work/a" "$work/b" && { same=$((same + 1)); continue; }
  strings -a "$old" | sort -u >"$work/a"
  strings -a "$new" | sort -u >"$work/b"
  echo "$source: texts differ"
  diff "$work/a" "$work/b" | sed -n 's/^[<>]/  &/p' | head -20
  texts=$((texts + 1))
done
echo "$same objects have the same code and constants, $texts differ in texts, $bad in code"
[ "$bad" = 0 ]
