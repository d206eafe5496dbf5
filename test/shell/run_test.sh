#!/bin/bash
# run_test.sh - tests leave nothing behind: files and processes of one that fails, is killed, or whose runner is killed.
# Usage: run_test.sh PROGRAM, one of the test programs that runs for some seconds
set -um # -m: jobs get groups of their own, and do not ignore SIGINT
program=$1
patience=${LODE_TEST_PATIENCE:-1} # times as long as on a quiet machine
cd "$(dirname "$0")/../.." || exit 1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0
check() { # what, command
  local what=$1
  shift
  if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL: $what"; ls -R "$tmp/base" | head -n 20; fi
}
empty() { [ -z "$(ls -A "$tmp/base")" ]; }
holds() { [ -n "$(compgen -G "$tmp/base/$1")" ]; }
gone() { # process; one that nobody has waited for yet is gone, too
  for _ in $(seq $((400 * patience))); do
    grep -q '^State:[[:space:]]*[^Z]' "/proc/$1/status" 2>/dev/null || return 0
    sleep 0.05
  done
  return 1
}
written() { # file
  for _ in $(seq $((400 * patience))); do [ ! -s "$1" ] || return 0; sleep 0.05; done
  return 1
}
appears() { # pattern
  for _ in $(seq $((400 * patience))); do ! holds "$1" || return 0; sleep 0.05; done
  return 1
}
run() { TMPDIR=$tmp/base LODE_TEST_JOBS=1 exec env --default-signal=HUP,INT test/support/run.sh "$@" >"$tmp/log" 2>&1; }
mkdir "$tmp/base"

# A test that fails: its files, folders that it locked itself out of, and a process that left its group
cat >"$tmp/fails" <<'T'
mkdir -p "$TMPDIR/a/b" && echo x >"$TMPDIR/a/b/c" && chmod 000 "$TMPDIR/a" && d=$(mktemp -d) && echo x >"$d/x"
setsid sleep 1000 &
echo $! >"$1"
TMPDIR=$TMPDIR/a setsid sleep 1000 & # as a test does that runs others
echo $! >"$1.inner"
echo "0 passed, 1 failed"
exit 1
T
(run fails="sh $tmp/fails $tmp/pid")
check "a failed test is reported" grep -q "^FAIL  fails" "$tmp/log"
check "a failed test leaves files" empty
check "a failed test leaves a process" gone "$(cat "$tmp/pid")"
check "a failed test leaves a process in a folder of its own" gone "$(cat "$tmp/pid.inner")"

# One that tests nothing
TMPDIR=$tmp/base test/support/run.sh none='echo "0 passed, 0 failed"' >"$tmp/log" 2>&1
check "no tests at all are a failure" [ $? -ne 0 ]
check "and reported as one" grep -q "^FAIL  none" "$tmp/log"
TMPDIR=$tmp/base test/support/run.sh skips='echo "0 passed, 0 failed, 1 skipped"' >"$tmp/log" 2>&1
check "skipping all is not" [ $? -eq 0 ]

# One that is interrupted
printf 'echo x >"$TMPDIR/begun"\nmktemp -d >/dev/null\nsleep 1000 &\necho $! >"$1"\nsleep 1000\n' >"$tmp/sleeps"
for signal in TERM INT HUP; do
  rm -f "$tmp/pid"
  run sleeps="sh $tmp/sleeps $tmp/pid" &
  runner=$!
  check "SIG$signal: it begins" written "$tmp/pid"
  kill -$signal -- -$runner
  check "SIG$signal: the runner ends" gone $runner
  check "SIG$signal: files are left" empty
  check "SIG$signal: a process is left" gone "$(cat "$tmp/pid")"
done

# A runner that is killed outright: the next one cleans up, and leaves a run alone that goes on
rm -f "$tmp/pid" "$tmp/pid2"
run sleeps="sh $tmp/sleeps $tmp/pid" &
live=$!
check "a run goes on" written "$tmp/pid"
going=$(compgen -G "$tmp/base/*")
run sleeps="sh $tmp/sleeps $tmp/pid2" &
killed=$!
check "another goes on beside it" written "$tmp/pid2"
kill -9 -- -$killed
check "killed outright" gone $killed
check "with all that it ran" gone "$(cat "$tmp/pid2")"
check "it has left its folder" [ "$(compgen -G "$tmp/base/*" | wc -l)" = 2 ]
TMPDIR=$tmp/base test/support/run.sh quick='echo "1 passed, 0 failed"' >/dev/null 2>&1
check "only the dead one's folder is removed" [ "$(compgen -G "$tmp/base/*")" = "$going" ]
kill -TERM -- -$live
check "the other ends" gone $live
check "nothing of all this is left" empty

# The same of a test program by itself
TMPDIR=$tmp/base "$program" >/dev/null 2>&1 &
killed=$!
check "the program begins" appears 'lode-test-*/t-*'
kill -9 $killed
wait $killed 2>/dev/null
check "a killed program leaves its folder" holds 'lode-test-*'
mkdir -p "$tmp/base/lode-test-notours"
for _ in $(seq $((100 * patience))); do # its test dies with it, but not in the same moment
  TMPDIR=$tmp/base "$program" no_such_test >/dev/null
  [ "$(ls "$tmp/base")" != lode-test-notours ] || break
  sleep 0.05
done
check "the next one removes it, and only what it knows to be dead" [ "$(ls "$tmp/base")" = lode-test-notours ]

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
