#!/bin/bash
# sqlite.sh - the store's tests with other versions of SQLite than the installed one. Usage: sqlite.sh TESTS [all [VERSION]]
#
# The test programs in the folder TESTS are run as they are, with a library of another version (deps/sqlite/versions.txt) in place
# of the system's: as it happens to an installed program when the system is upgraded. The store's sources must compile with each
# version's header, too. Without "all" (or LODE_TEST_FULL=1) it is a sample, for `make test`.
set -u
tests=$1
cd "$(dirname "$0")/../.." || exit 1
passed=0 failed=0 skipped=0
all=${2:-}
[ "${LODE_TEST_FULL:-}" != 1 ] || all=all
only=${3:-}
unset LODE_TEST_FULL # every byte of every version would take days

store="vfs vfs_crash journal journal_read journal_store schema text_renewed verify salvage backup damage record_ids private locks segments segments_damage model crash killed
  processes threads api api_read api_streams api_upkeep query query_text filter filter_random metamorphic rescue_db faults"
# the reads and writes of a new store, documents longer than a page, words, damage that is met while opening
sample="vfs:page_size vfs:parts_of_pages text_renewed schema:known damage:cut_short"

run() { # version test[:WORD]
  local log line
  log=$(LD_LIBRARY_PATH=$PWD/build/sqlite/$1 "$tests/test_${2%%:*}" $(expr "$2" : '[^:]*:\(.*\)') 2>&1)
  line=$(tail -n 1 <<<"$log")
  if [[ $line =~ ^([0-9]+)\ passed,\ 0\ failed ]] && [ "${BASH_REMATCH[1]}" -gt 0 ]; then
    passed=$((passed + BASH_REMATCH[1]))
  else
    failed=$((failed + 1))
    echo "FAIL: test_$2 with SQLite $1"
    tail -n 30 <<<"$log"
  fi
}

installed=$(pkg-config --modversion sqlite3)
while read -r version _ _ extent system; do
  case $version in '' | '#'*) continue ;; esac
  [ "$all" = all ] || { [ "$extent" = sample ] && [ "$version" != "$installed" ]; } || continue
  [ -z "$only" ] || [ "$version" = "$only" ] || continue
  if ! why=$(tools/sqlite.sh "$version" build/sqlite 2>&1); then
    echo "skipped: ${why##*$'\n'}"
    skipped=$((skipped + 1))
    continue
  fi
  # a test that ran with the installed SQLite after all would prove nothing
  if ! LD_LIBRARY_PATH=$PWD/build/sqlite/$version ldd "$tests/test_vfs" | grep -q "build/sqlite/$version/libsqlite3"; then
    echo "FAIL: test_vfs does not load SQLite $version"
    failed=$((failed + 1))
    continue
  fi
  # shellcheck disable=SC2046
  if ${CC:-cc} -std=c11 -D_GNU_SOURCE -Iinclude -Isrc/lib -Isrc/app -isystem "build/sqlite/$version" -Wall -Wextra $(tools/werror.sh ${CC:-cc}) \
    -fsyntax-only src/lib/store/*.c src/lib/vfs/*.c src/lib/sqlite/*.c; then
    passed=$((passed + 1))
  else
    echo "FAIL: the store does not compile with the header of SQLite $version"
    failed=$((failed + 1))
  fi
  before=$passed
  if [ "$all" = all ]; then list=$store; else list=$sample; fi
  for t in $list; do run "$version" "$t"; done
  echo "SQLite $version ($system): $((passed - before)) passed"
done <deps/sqlite/versions.txt
[ $skipped -eq 0 ] || tail=", $skipped skipped"
echo "$passed passed, $failed failed${tail:-}"
[ $failed -eq 0 ]
