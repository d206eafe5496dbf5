#!/bin/bash
# run.sh - runs test programs, two at a time, and adds up what they say. Usage: run.sh [LABEL=]COMMAND...
# Each command ends with "N passed, N failed[, N skipped]"; one that does not is a failure. The last line is the sum.
set -u
jobs=${LODE_TEST_JOBS:-2}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
# Most of the time goes to syncing small files: in memory that costs nothing (power cuts are simulated, not waited for)
if [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ] && [ "$(df -Pk /dev/shm | awk 'NR==2 { print $4 }')" -gt 1000000 ]; then
  export TMPDIR=/dev/shm
fi
seed=${LODE_TEST_SEED:-$(date +%s)}
export LODE_TEST_SEED=$seed
echo "seed: LODE_TEST_SEED=$seed"

run_one() { # number label command
  start=$(date +%s)
  sh -c "$3" >"$logs/$1.log" 2>&1
  code=$?
  line=$(tail -n 1 "$logs/$1.log" | grep -E '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$')
  [ -n "$line" ] || line="0 passed, 1 failed"
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
