#!/bin/bash
# dist_qemu.sh STAGE [SCRIPT] - the core of what the program does, for the machine that this one is not, under qemu-user: version, index, search,
# a collection written, queried and verified; or test/shell/SCRIPT.sh with that program
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
passed=0 failed=0
check() { # text command...
  local text=$1; shift
  if "$@" >"$tmp/log" 2>&1; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL: $text"; tail -n 20 "$tmp/log"; fi
}
other=$([ "$(uname -m)" = x86_64 ] && echo aarch64 || echo x86_64)
stage=$1/$other-linux-musl
qemu=$(command -v "qemu-$other-static" || true)
if [ -z "$qemu" ] || [ ! -x "$stage/bin/lode" ]; then
  echo "skipped: qemu-user-static or the build for $other is missing"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi
tmp=$(mktemp -d "${TMPDIR:-/tmp}/lode-qemu-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
export HOME=$tmp/home
mkdir -p "$HOME" "$tmp/project" "$tmp/bin"
# The kernel may not know how to start a program of that machine: the parser is started through a script
printf '#!/bin/sh\nexec %s %s "$@"\n' "$qemu" "$stage/lib/lode/lode-parser" >"$tmp/bin/lode-parser"
chmod +x "$tmp/bin/lode-parser"
export LODE_PARSER=$tmp/bin/lode-parser LODE_MODELS=$stage/share/lode/models
lode() { "$qemu" "$stage/bin/lode" "$@"; }
if [ -n "${2:-}" ]; then
  # Servers start their workers by /proc/self/exe, which the kernel alone can do (binfmt_misc)
  program=$stage/bin/lode
  if ! "$program" --version >/dev/null 2>&1; then
    if [ "$2" != hostile ]; then
      echo "skipped: $2: this kernel starts no programs for $other (binfmt_misc)"
      echo "0 passed, 0 failed, 1 skipped"
      exit 0
    fi
    program=$tmp/bin/lode
    printf '#!/bin/sh\nexec %s %s "$@"\n' "$qemu" "$stage/bin/lode" >"$program"
    chmod 755 "$tmp" "$tmp/bin" "$tmp/bin"/* # other users run it as well
  fi
  LODE_TEST_PATIENCE=$((${LODE_TEST_PATIENCE:-1} * 10)) LODE_TEST_PLATFORM=qemu "$here/test/shell/$2.sh" "$program"
  exit
fi
cp "$here"/src/lib/base/*.[ch] "$tmp/project/"
cp "$here"/bindings/python/lode/*.py "$tmp/project/"
check "--version" lode --version
check "the parser starts" "$tmp/bin/lode-parser" --check .
check "index" lode index "$tmp/project"
found() { lode search "$1" --project "$tmp/project" --json | grep -q "$2"; }
check "search by words" found crc32c_portable crc32c.c
check "search by meaning" found "checksum of a block of bytes" crc32c
check "search in Python" found "the shared library is loaded" _library.py
check "embed" lode embed --model code "read a file"
same() { [ "$(lode embed --model code 'read a file' --json)" = "$("$1" embed --model code 'read a file' --json)" ]; }
[ ! -x "$1/$(uname -m)-linux-musl/bin/lode" ] || check "the same vector as on this machine" same "$1/$(uname -m)-linux-musl/bin/lode"
check "a collection" lode db create some --store "$tmp/store"
records() { printf '{"id":"%s","embedding":[%s]}\n' a 1,0 b 0,1 | lode db import some - --store "$tmp/store"; }
check "records" records
nearest() { lode db query some --store "$tmp/store" --vector "[1,0.1]" -k 1 --json | grep -q '"a"'; }
check "the nearest" nearest
check "verify" lode db verify --store "$tmp/store"
check "stats" lode db stats --store "$tmp/store"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
