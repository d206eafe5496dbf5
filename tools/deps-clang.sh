#!/bin/sh
# deps-clang.sh - installs clang's runtime (sanitizers, libFuzzer) where the installed clang cannot link without it.
#
# Debian names that package after clang's version, which is another one in each release: so the compiler is asked.
set -eu
made=$(mktemp)
trap 'rm -f "$made"' EXIT
links() {
  echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' |
    clang -fsanitize=fuzzer,address,undefined -x c -o "$made" - >/dev/null 2>&1
}
links && exit 0
major=$(clang -dumpversion | cut -d. -f1)
"$(dirname "$0")"/deps.sh "libclang-rt-$major-dev" || true
links || echo "deps: clang $major has no runtime of its own: make fuzz cannot link"
