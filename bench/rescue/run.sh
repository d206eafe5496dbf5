#!/bin/bash
# run.sh PROGRAM - how long a rescue takes: a Chroma directory of 135,464 x 384 into a Lode store; writes bench/RESCUE.md.
# CHROMA=DIR measures a directory of yours instead. PREPARE=1 only makes the directory.
set -eu
cd "$(dirname "$0")/../.."
lode=$(realpath "${1:-build/release/lode}")
work=build/bench/rescue
mkdir -p "$work"
from=${CHROMA:-$work/chroma}
[ -e "$from/chroma.sqlite3" ] || { rm -rf "$work/making"; python3 bench/rescue/make.py test/fixtures/chroma/chroma-1.5.9.tar.xz "$work/making" 135464; mv "$work/making" "$from"; }
[ -z "${PREPARE:-}" ] || exit 0

timed() { # name command...: seconds of wall clock and of CPU, MiB at most
  local name=$1
  shift
  /usr/bin/env python3 - "$@" <<'P' >"$work/$name.figures" 2>"$work/$name.err"
import resource, subprocess, sys, time
start = time.time()
code = subprocess.call(sys.argv[1:], stdout=open("/dev/null", "w"))
used = resource.getrusage(resource.RUSAGE_CHILDREN)
if code:
    sys.exit("ended with %d" % code)
print("%.1f %.1f %.0f" % (time.time() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))
P
  read -r wall cpu mib <"$work/$name.figures"
}
row() { echo "| $1 | $wall s | $cpu s | $mib MiB |"; }
size() { du -sm "$1" | cut -f1; }

rm -rf "$work/store"
timed check "$lode" chroma check "$from"
check=$(row "\`lode chroma check\`")
timed dry "$lode" rescue chroma "$from" --dry-run
dry=$(row "\`lode rescue chroma --dry-run\`: everything is read")
timed rescue "$lode" rescue chroma "$from" --to "$work/store"
rescue=$(row "\`lode rescue chroma --to STORE\`: written, text and vector index built")
timed again "$lode" rescue chroma "$from" --to "$work/store"
again=$(row "the same again: everything compared, nothing written")
records=$("$lode" db collections --store "$work/store" --json | grep -oE '"records":[0-9]+' | cut -d: -f2 | awk '{ n += $1 } END { print n }')
{
  echo "# How long a rescue takes"
  echo
  echo "\`make bench-rescue\`: $records records x 384, cosine, 60-word documents, six values of metadata each; Chroma directory of $(size "$from") MB, of which"
  echo "$(du -sm "$from/chroma.sqlite3" | cut -f1) MB database; the store afterwards has $(size "$work/store") MB. Made by \`bench/rescue/make.py\` after the format of chromadb 1.5.9. $(nproc) cores, the"
  echo "files in the system's cache."
  echo
  echo "| | wall clock | CPU | memory |"
  echo "|---|---|---|---|"
  printf '%s\n' "$check" "$dry" "$rescue" "$again"
} >bench/RESCUE.md
cat bench/RESCUE.md
