#!/bin/bash
# meson.sh - the library built and installed by Meson: it exports the same names as the Makefile's, has its soname, and a program builds with
# what pkg-config says. Skipped where meson or ninja is not installed.
set -u
cd "$(dirname "$0")/../.." || exit 1
if ! command -v meson >/dev/null || ! command -v ninja >/dev/null; then
  echo "skipped: meson or ninja is not installed"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi
tmp=$(mktemp -d "${TMPDIR:-/tmp}/lode-meson-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0
check() { # text command...
  local text=$1; shift
  if "$@" >"$tmp/log" 2>&1; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL: $text"; tail -n 20 "$tmp/log"; fi
}
abi=$(sed -n 's/^#define LODE_ABI \([0-9]*\).*/\1/p' include/lode.h)
names() { nm -D --defined-only "$1" | awk '$2 ~ /[TDBR]/ { print $3 }' | sort -u; }
declared() { tr '\n' ' ' <include/lode.h | sed 's/;/;\n/g' | sed -n 's/.*LODE_API[^(]*[ *]\(lode_[a-z0-9_]*\)(.*/\1/p' | sort -u; }
check "meson setup" meson setup --werror -Dprefix="$tmp/installed" -Dlibdir=lib -Ddefault_library=both "$tmp/build"
check "meson compile" ninja -j2 -C "$tmp/build"
check "meson test" meson test --no-rebuild -C "$tmp/build"
check "meson install" meson install --no-rebuild -C "$tmp/build"
root=$tmp/installed
for f in include/lode.h lib/liblode.a lib/liblode.so lib/liblode.so."$abi" lib/pkgconfig/lode.pc share/lode/models/code.model share/lode/models/words.glossary; do
  check "$f is installed" test -s "$root/$f"
done
check "it exports the names of lode.h" diff <(declared) <(names "$root/lib/liblode.so")
check "its soname" sh -c "readelf -d '$root/lib/liblode.so' | grep -q 'SONAME.*liblode.so.$abi'"
export PKG_CONFIG_PATH=$root/lib/pkgconfig
check "a program builds with it" sh -c "cc -o $tmp/notes examples/notes.c \$(pkg-config --cflags --libs lode)"
check "and runs" env LD_LIBRARY_PATH="$root/lib" "$tmp/notes" "$tmp/store"
check "the static library is enough" sh -c "cc -o $tmp/static examples/notes.c \$(pkg-config --cflags lode) $root/lib/liblode.a \$(pkg-config --static --libs lode | sed 's/-llode//')"
check "and runs, too" "$tmp/static" "$tmp/store"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
