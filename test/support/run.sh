#!/bin/bash
# run.sh - runs test programs, two at a time, and adds up what they say. Usage: run.sh [LABEL=]COMMAND...
# Each command ends with "N passed, N failed[, N skipped]"; one that does not, or runs nothing, is a failure. The last line is the sum.
#
# Everything that the tests write goes to one folder, their TMPDIR. It is removed at the end, whatever the end is; what processes are
# left by then are killed. Who is killed outright cannot do that: the next run does it. A folder is in use as long as somebody
# holds the lock of its file .owner (the lock is inherited by all that run in it). Test programs do the same by themselves (test.c).
set -u
jobs=${LODE_TEST_JOBS:-2}
base=${TMPDIR:-}
# Most of the time goes to syncing small files: in memory that costs nothing (power cuts are simulated, not waited for). The nodes
# of the cluster's test take 4 GB.
if [ -z "$base" ] && [ -w /dev/shm ] && [ "$(df -Pk /dev/shm | awk 'NR==2 { print $4 }')" -gt 5000000 ]; then
  base=/dev/shm
fi
base=${base:-/tmp}

remove_folder() {
  # a test of a full disk may have been killed with its disk mounted
  awk -v under="$1/" 'index($2, under) == 1 { print $2 }' /proc/mounts | while read -r place; do umount -l "$place"; done
  rm -rf "$1" 2>/dev/null || { chmod -R u+rwx "$1"; rm -rf "$1"; } 2>/dev/null
}

for old in "$base"/lode-test-*; do
  if [ -f "$old/.owner" ] && [ ! -L "$old" ] && [ -O "$old" ] && flock -n "$old/.owner" true; then remove_folder "$old"; fi
done

TMPDIR=$(mktemp -d "$base/lode-test-XXXXXX") || exit 1
chmod 711 "$TMPDIR" # some tests run programs as another user in folders of theirs
export TMPDIR
logs=$TMPDIR/logs
mkdir "$logs"

# What tests started and left running, whatever group or session it went to: it has our TMPDIR, or one in it
kill_left() {
  for p in /proc/[0-9]*; do
    if grep -qzF "TMPDIR=$TMPDIR" "$p/environ" 2>/dev/null; then kill -9 "${p#/proc/}" 2>/dev/null; fi
  done
}
cleanup() {
  trap '' INT TERM HUP
  kill_left
  wait 2>/dev/null
  kill_left
  remove_folder "$TMPDIR"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
# Locked before it has its name: nobody must find one of ours without its lock
exec {owner}>"$TMPDIR/.owner.new"
flock "$owner"
mv "$TMPDIR/.owner.new" "$TMPDIR/.owner"

seed=${LODE_TEST_SEED:-$(date +%s)}
export LODE_TEST_SEED=$seed
echo "seed: LODE_TEST_SEED=$seed"

run_one() { # number label command
  start=$(date +%s)
  sh -c "$3" >"$logs/$1.log" 2>&1
  code=$?
  line=$(tail -n 1 "$logs/$1.log" | grep -E '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$')
  case $line in '' | "0 passed, 0 failed") line="0 passed, 1 failed" ;; esac
  if [ $code -ne 0 ] && echo "$line" | grep -q ' 0 failed'; then line="0 passed, 1 failed"; fi
  echo "$line" >"$logs/$1.sum"
  if echo "$line" | grep -q ' 0 failed'; then
    grep -E '^skipped' "$logs/$1.log" | sed "s|^|$2: |"
    echo "ok    $2: $line ($(($(date +%s) - start)) s)"
  else
    echo "FAIL  $2: $line (exit $code)"
    tail -n 60 "$logs/$1.log" | sed "s|^|      |"
  fi
}

n=0
running=0
for item in "$@"; do
  n=$((n + 1))
  label=${item%%=*}
  command=${item#*=}
  [ "$label" != "$item" ] || command=$item
  run_one $n "$label" "$command" &
  running=$((running + 1))
  if [ "$running" -ge "$jobs" ]; then
    wait -n
    running=$((running - 1))
  fi
done
wait
cat "$logs"/*.sum | awk '{ p += $1; f += $3; if ($5 != "") s += $5 } END {
  if (s > 0) printf "%d passed, %d failed, %d skipped\n", p, f, s; else printf "%d passed, %d failed\n", p, f; exit f > 0 }'
