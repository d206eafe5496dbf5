#!/bin/bash
# dist_trace.sh ZIG - stack traces of self-contained programs for Linux: a program that crashes in several ways (dist_trace.c), linked with
# tools/dist/static/execinfo.c and musl, on this machine and on the other one under qemu-user
set -u
cd "$(dirname "$0")/../.." || exit 1
zig=$1
passed=0 failed=0 skipped=0
tmp=$(mktemp -d "${TMPDIR:-/tmp}/lode-trace-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trace() { # MACHINE WAY FUNCTION...: these, one after the other, are called below main
  local machine=$1 way=$2 got
  shift 2
  $run "$tmp/$machine" "$way" >"$tmp/frames"
  got=$(sed 's/^lode(\([^+]*\)+.*/\1/' "$tmp/frames" | tr '\n' ' ')
  case " $got" in *" $* "*) passed=$((passed + 1)) ;; *) failed=$((failed + 1)); echo "FAIL: $machine, $way: $got"; cat "$tmp/frames" ;; esac
}
[ -x "$zig" ] || { echo "skipped: zig is not here (make dist fetches it)"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
for machine in x86_64 aarch64; do
  run=
  [ "$machine" = "$(uname -m)" ] || run=$(command -v "qemu-$machine-static") || { echo "skipped: no qemu-user-static for $machine"; skipped=$((skipped + 1)); continue; }
  "$zig" cc -target "$machine-linux-musl" -O2 -g0 -std=c11 -D_GNU_SOURCE -Wno-infinite-recursion -fPIC -funwind-tables -fno-sanitize=undefined \
    -Itools/dist/static -static -pie -o "$tmp/$machine" test/shell/dist_trace.c tools/dist/static/execinfo.c -lunwind ||
    { echo "FAIL: a program for $machine"; failed=$((failed + 1)); continue; }
  trace $machine reading by_reading crash main
  trace $machine copying by_copying crash main
  trace $machine calling by_calling crash main
  trace $machine aborting raise abort by_aborting crash main
  trace $machine waiting by_waiting crash main
  trace $machine sorting by_sorting crash main
  trace $machine recursing by_recursing by_recursing by_recursing
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
