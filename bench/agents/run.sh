#!/bin/sh
# run.sh LODE - plays the questions and writes the table of bench/AGENTS.md. LODE_REPOS: a folder with the repositories of bench/agents/README.md;
# SEMBLE_PYTHON: a python that can import semble 0.7.0 (without it, semble is left out).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
page=$here/../AGENTS.md
[ -n "${LODE_REPOS:-}" ] || { echo "LODE_REPOS must name the folder of the repositories: bench/agents/README.md" >&2; exit 2; }
table=$(mktemp)
trap 'rm -f "$table" "$page.new"' EXIT
node "$here/play.mjs" "$1" "$LODE_REPOS" ${SEMBLE_PYTHON:+"$SEMBLE_PYTHON"} >"$table"
awk -v table="$table" '
  $0 == "<!-- end -->" { inside = 0 }
  !inside { print }
  $0 == "<!-- played -->" { inside = 1; while ((getline line <table) > 0) print line }' "$page" >"$page.new"
mv "$page.new" "$page"
cat "$table"
