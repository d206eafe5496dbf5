#!/bin/bash
# patches.sh OUT - the worked examples of examples/patches apply to this tree, and their tests pass. OUT has been filled by make: build/release.
#
# Each `Test:` line of a patch lists the sources of one program; they are compiled in a patched copy, and what they do not define
# comes from the archives of OUT.
set -u
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.." || exit 1
top=$PWD
tmp=$(mktemp -d "${TMPDIR:-/tmp}/lode-patches-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0
ok() { passed=$((passed + 1)); }
bad() {
  echo "FAIL: $1: $2. The tree has changed beneath the example: apply it by hand (git apply --3way), correct it, and write it again with git diff -U2 after its text"
  failed=$((failed + 1))
}

for patch in examples/patches/*.patch; do
  copy=$tmp/$(basename "$patch" .patch)
  mkdir "$copy"
  git ls-files -z -- docs include src test ':!test/chunk' ':!test/fixtures' | xargs -0 cp --parents -t "$copy"
  # a repository of its own, so that git does not look for one above
  if ! (cd "$copy" && git init -q . && git apply "$top/$patch") 2>"$tmp/log"; then bad "$patch" "it does not apply: $(head -3 "$tmp/log")"; continue; fi
  ok
  while read -r sources; do
    # shellcheck disable=SC2086,SC2046
    if ! (cd "$copy" && ${CC:-cc} -std=c11 -D_GNU_SOURCE -O1 -ffp-contract=off -Wall -Wextra -Iinclude -Isrc/lib -Isrc/app -Itest -o test-program $sources \
      "$out/inside/app.a" "$out/inside/lib.a" $(pkg-config --cflags --libs sqlite3 libpcre2-8 libutf8proc) -lpthread -lm -ldl) >"$tmp/log" 2>&1; then
      bad "$patch" "it does not compile: $(grep -m3 -E 'error|undefined' "$tmp/log")"; continue
    fi
    (cd "$copy" && ./test-program) >"$tmp/log" 2>&1 && ok || bad "$patch" "${sources%% *} fails: $(tail -3 "$tmp/log")"
  done < <(sed -n 's/^Test: //p' "$patch")
  grep -q '^Test: ' "$patch" || bad "$patch" "it names no test"
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
