#!/bin/bash
# busy.sh - runs a command beside more busy processes than there are cores. Usage: busy.sh COMMAND...
# LODE_TEST_BUSY says how many for each core (12). They end with this script, whatever ends it. Tests that look at a
# clock to tell a hang get that much more time (LODE_TEST_PATIENCE), because timing decides no test.
set -u
each=${LODE_TEST_BUSY:-12}
cores=$(getconf _NPROCESSORS_ONLN)
export LODE_TEST_PATIENCE=${LODE_TEST_PATIENCE:-$((each + 1))}
busy=()
trap 'kill "${busy[@]}" 2>/dev/null' EXIT
trap 'exit 130' INT TERM HUP
for _ in $(seq $((each * cores))); do
  # Looks now and then whether the script is still there: nothing ends it when the script is killed
  sh -c 'while kill -0 '$$' 2>/dev/null; do i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; done' </dev/null >/dev/null 2>&1 &
  busy+=($!)
done
echo "busy: ${#busy[@]} processes beside the tests, on $cores cores"
"$@"
