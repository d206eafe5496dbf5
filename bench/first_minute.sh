#!/bin/bash
# first_minute.sh [LABEL=]LODE... - from an installed program to the first right answer, walked by somebody who does what the program says: how many
# commands, how many of them failed, how long. Several programs (an older version beside this one) give one table.
#
# The walker types README's first search in a project that was never indexed, in a terminal. If a command fails and its message names a command
# in backquotes, that one is typed, then the search again; a question is answered by Enter. The walk ends when the first result is in the
# expected file. Projects: two rooms of Lode's sources, and all of them.
set -u
cd "$(dirname "$0")/.." || exit 1
tmp=$(mktemp -d "${TMPDIR:-/tmp}/lode-minute-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
unset LODE_STORE
export TERM=dumb NO_COLOR=1 LODE_PAGER=
command -v script >/dev/null || { echo "first_minute: script(1) is not installed" >&2; exit 1; }

# typed COMMAND: in a terminal of its own; $out, $code
typed() {
  out=$(printf '\n' | script -qec "sh -c '$1; echo; echo exit=\$?'" /dev/null 2>&1 | tr -d '\r')
  out=$(printf '%s' "$out")
  code=$(printf '%s\n' "$out" | sed -n 's/^exit=//p' | tail -1)
  steps=$((steps + 1))
}
# walk PROGRAM FOLDER QUESTION FILE
walk() {
  local search="lode search \"$3\"" start=${EPOCHREALTIME/./} advice first
  steps=0 failed=0 told=
  cd "$2" || exit 1
  while [ $steps -lt 8 ]; do
    typed "$search"
    first=$(printf '%s\n' "$out" | grep -m1 -E '^[^ ]+:[0-9]+')
    case $first in "$4":*) break ;; esac
    failed=$((failed + 1))
    advice=$(printf '%s\n' "$out" | grep -oE '`lode [a-z]+`' | head -1 | tr -d '`')
    [ -n "$advice" ] || { told="gave up"; break; }
    told=$advice
    typed "$advice"
  done
  seconds=$(awk -v us=$((${EPOCHREALTIME/./} - start)) 'BEGIN { printf "%.1f", us / 1e6 }')
  cd "$OLDPWD" || exit 1
}

echo "| program | project | files | commands | of them failed | told to type | seconds |"
echo "|---|---|---|---|---|---|---|"
n=0
for item in "$@"; do
  n=$((n + 1)) program=${item#*=} label=${item%%=*}
  [ "$label" != "$item" ] || label=$("$program" --version)
  mkdir -p "$tmp/$n/bin" "$tmp/$n/home" "$tmp/$n/small/.git" "$tmp/$n/large/.git"
  ln -s "$(realpath "$program")" "$tmp/$n/bin/lode"
  git archive HEAD src/lib/base src/lib/os | tar -xf - -C "$tmp/$n/small"
  git archive HEAD src include docs test | tar -xf - -C "$tmp/$n/large"
  for project in small large; do
    HOME=$tmp/$n/home XDG_DATA_HOME=$tmp/$n/data PATH=$tmp/$n/bin:$PATH walk "$program" "$tmp/$n/$project" "parse a JSON text" src/lib/base/json.c
    files=$(find "$tmp/$n/$project" -type f ! -path '*/.git/*' ! -path '*/.lode/*' | wc -l)
    echo "| $label | $project | $files | $steps | $failed | ${told:--} | $seconds |"
  done
done
