#!/bin/bash
# run.sh DIST OUT - the static program of `make dist` beside the dynamic one in OUT: start-up, a search, verify, and the time from installing
# to a first result. Written into docs/PLATFORMS.md between <!-- bench-dist --> and <!-- end of bench-dist -->.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
dist=$(cd "$1" && pwd) dynamic=$(cd "$2" && pwd)/lode
machine=$(uname -m)
static=$dist/stage/$machine-linux-musl/bin/lode
version=$(sed -n 's/^#define LODE_VERSION_TEXT "\(.*\)"/\1/p' "$here/include/lode.h")
rounds=${ROUNDS:-200}
# Beside other work only CPU time means anything
quiet=$(awk -v cores="$(nproc)" '{ print ($1 <= cores / 2) }' /proc/loadavg)
work=$(mktemp -d "${TMPDIR:-/tmp}/lode-bench-dist-XXXXXX")
trap 'rm -rf "$work"' EXIT
export HOME=$work/home NO_COLOR=1 LODE_PAGER=
mkdir -p "$HOME" "$work/project"
cc -O2 -o "$work/alternate" "$here/bench/dist/alternate.c"
cp -r "$here/src/lib" "$work/project/"
cd "$work/project"
"$dynamic" index -q

# NAME ARGS...: a row of medians of both, and of /bin/true, which does nothing
both() {
  local name=$1
  shift
  "$work/alternate" "$rounds" "$dynamic" "$@" -- "$static" "$@" -- "$(type -P true)" >"$work/figures"
  awk -v name="$name" '{ wall[NR] = $1; cpu[NR] = $2 }
    END { printf "| %s |", name; for (i = 1; i <= 3; i++) printf quiet ? " %.2f (%.2f) |" : " (%.2f) |", quiet ? wall[i] / 1000 : cpu[i] / 1000, cpu[i] / 1000
      print "" }' quiet="$quiet" "$work/figures"
}
# NAME COMMAND: from its start to the first result of a search in an index that it makes, in seconds
first() {
  local start end
  [ "$quiet" = 1 ] || { echo "| $1 | not measured: the machine is busy |"; return 0; }
  rm -rf "$work/project/.lode" "$work/prefix"
  start=$(date +%s%N)
  sh -c "$2" >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
  end=$(date +%s%N)
  awk -v name="$1" -v ns=$((end - start)) 'BEGIN { printf "| %s | %.1f |\n", name, ns / 1e9 }'
}
use="index -q && \$lode search 'checksum of a block'"
{
  echo
  echo "Medians of $rounds runs in turn, milliseconds (in brackets: CPU time; on a busy machine that alone). Load of the machine before: $(cut -d' ' -f1 /proc/loadavg) on $(nproc) cores."
  echo
  echo "| | dynamic, glibc | static, musl | \`true\` |"
  echo "|---|---:|---:|---:|"
  both "\`lode --version\`" --version
  both "\`lode search\`" search --no-refresh 'checksum of a block'
  both "\`lode db verify\`" db verify --store .lode
  echo
  echo "| from installing to the first result, $(find lib -type f | wc -l) files | seconds |"
  echo "|---|---:|"
  first tarball "tar -xzf '$dist/out/lode-$version-linux-$machine.tar.gz' -C '$work' && '$work'/lode-$version-*/install.sh '$work/prefix' && lode='$work/prefix/bin/lode' && \$lode $use"
  if command -v npm >/dev/null; then
    first npm "cd '$work' && npm install --offline --no-audit --no-fund '$dist'/out/lodekit-linux-*-$version.tgz '$dist/out/lodekit-$version.tgz' && cd project && lode='$work/node_modules/.bin/lode' && \$lode $use"
  fi
  wheel=$(ls "$dist/out/lodekit-$version"-*manylinux*"$machine".whl 2>/dev/null || :)
  if [ -n "$wheel" ]; then
    first "pip, in a new environment" "python3 -m venv '$work/venv' && '$work/venv/bin/pip' install --quiet --no-index '$wheel' && lode='$work/venv/bin/lode' && \$lode $use"
  fi
  echo
} >"$work/table"
awk '/^<!-- bench-dist -->$/ { print; while ((getline line < table) > 0) print line; skip = 1; next }
  /^<!-- end of bench-dist -->$/ { skip = 0 } !skip' table="$work/table" "$here/docs/PLATFORMS.md" >"$work/text"
cat "$work/text" >"$here/docs/PLATFORMS.md"
cat "$work/table"
