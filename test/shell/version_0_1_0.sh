#!/bin/bash
# version_0_1_0.sh LODE - version 0.1.0, built from its revision, refuses a store of this version and leaves it as it is; a store that it made is
# brought up by this version, and then refused. Takes minutes, so it runs with LODE_TEST_FULL=1 only, where git has that revision.
set -u
cd "$(dirname "$0")/../.." || exit 1
. test/support/kit.sh
begin version_0_1_0 "${1:-}"
revision=e01ed3b

if [ "${LODE_TEST_FULL:-}" != 1 ]; then skip "0.1.0 is built with LODE_TEST_FULL=1 only"; finish; exit; fi
if ! git cat-file -e "$revision^{commit}" 2>/dev/null; then skip "git does not have $revision"; finish; exit; fi
mkdir "$tmp/old"
git archive "$revision" | tar -xf - -C "$tmp/old"
if ! make -C "$tmp/old" -j2 build/release/lode GRAMMARS="$tmp/none" >"$tmp/log" 2>&1; then bad "0.1.0 cannot be built: $(tail -n 3 "$tmp/log")"; finish; exit; fi
old=$tmp/old/build/release/lode
cd "$tmp" || exit 1

# old CODE TEXT ARGS...: the same as run, by 0.1.0; its error has TEXT in it
old() {
  local want=$1 text=$2 said got
  shift 2
  said=$("$old" "$@" 2>&1 </dev/null)
  got=$?
  if [ $got -eq "$want" ] && [[ $said == *"$text"* ]]; then ok; else bad "0.1.0 $*: exit $got, wanted $want and \"$text\": ${said:0:300}"; fi
}
sums() { (cd "$1" && find . -type f ! -name lode.lock -exec sha256sum {} + | sort); }

printf '{"id":"a","document":"one","metadata":{"n":1},"embedding":[1,2,3]}\n{"id":"b","document":"two","embedding":[3,2,1]}\n' >records
run 0 db create c --store new
run 0 db add c records --store new
before=$(sums new)
code=$("$old" db count c --store new >/dev/null 2>&1; echo $?)
for command in "db count c" "db verify" "db add c records" "db optimize"; do
  # shellcheck disable=SC2086
  old "$code" "format" $command --store new
done
if [ "$code" != 0 ]; then ok; else bad "0.1.0 takes a store of this version"; fi
if [ "$(sums new)" = "$before" ]; then ok; else bad "0.1.0 changed a store of this version"; fi
run 0 db verify --store new

old 0 "" db create c --store made
old 0 "" db add c records --store made
old 0 "2" db count c --store made
run 0 db count c --store made # reads it as it is
old 0 "2" db count c --store made
run 0 db optimize --store made
run 0 db verify --store made
run 0 db count c --store made
if [ "$out" = 2 ] || [[ $out == *2* ]]; then ok; else bad "a store of 0.1.0 has $out records"; fi
old "$code" "format" db count c --store made
finish
