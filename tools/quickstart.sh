#!/bin/sh
# quickstart.sh LODE - indexes this project's own tree and searches it; then the vector database under it.
set -eu
lode=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")/.."
store=build/quickstart
export LC_ALL=C

say() {
  printf '\n$ lode'
  for word in "$@"; do
    case $word in *[\ \{\"\$]*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
  done
  printf '\n'
}
show() {
  say "$@"
  "$lode" "$@"
}

echo "Code search, on this project's own sources:"
show index .
show search 'who steps aside when somebody waits for a lock' -n 3
show search json_parse -n 2
show status --skip-stats

printf '\nThe model that other tools use for text, all-MiniLM-L6-v2 (45 MB, once):\n'
if say model install minilm && "$lode" model install minilm; then
  rm -rf "$store"
  printf '\nAnd the vector database, with texts embedded by it:\n'
  show db create notes --metric cosine --embedder minilm --store "$store"
  say db upsert notes --embed --store "$store"
  printf '%s\n' '{"id":"tea","document":"Green tea should steep for three minutes at 80 degrees.","metadata":{"kind":"drink"}}' \
    '{"id":"bike","document":"The chain of a bicycle wants oil after rain.","metadata":{"kind":"tool"}}' \
    '{"id":"sql","document":"A rollback journal holds the pages as they were before a transaction.","metadata":{"kind":"tool"}}' |
    "$lode" db upsert notes --embed --store "$store"
  show db query notes --text 'how do I brew a hot beverage' --mode vector -k 1 --store "$store"
  show db verify --store "$store"
else
  echo "(it could not be had; \`lode model install minilm\` tries again)"
fi
printf '\nThat was Lode. Next: `lode setup` in a project of yours, `%s --help`, README.md, `make test`.\n' "$1"
