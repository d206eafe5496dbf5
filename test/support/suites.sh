# suites.sh - what the scripts share that run somebody else's tests on the database these were written for and on Lode (chroma_suites.sh,
# mempalace_suites.sh); sourced after kit.sh. A part NAME leaves what pytest -v printed in $results/NAME.theirs and $results/NAME.lode. The tests
# that pass there and not here must be those that $differs lists for the part, no more and no less: lines "PART[,PART] TEST", reasons in comments.

# statuses FILE: "TEST<tab>STATUS" of pytest's -v, without the percentage
statuses() { sed -n 's/ *\[ *[0-9]*%\]$//; s/^\([^ ]*::.*\) \(PASSED\|FAILED\|ERROR\|SKIPPED\|XPASS\|XFAIL\)\( (.*)\)\{0,1\}$/\1\t\2/p' "$1" | sort -u; }
# listed PART: its tests in $differs
listed() { sed -n "s/^\([^# ]*,\)\{0,1\}$1\(,[^ ]*\)\{0,1\} \(.*\)$/\3/p" "$differs" | sort -u; }
# differences PART THEIRS OURS RAN: compares sorted lists of tests that pass, and adds the line of the part to the summary. Variants of a test
# ("[...]" at its end) are one
differences() {
  local part=$1 same test differing
  same=$(comm -12 "$2" "$3" | wc -l)
  passed=$((passed + same))
  comm -23 "$2" "$3" | sed 's/\[.*//' | sort -u > "$results/$part.differs"
  differing=$(comm -23 "$2" "$3" | wc -l)
  listed "$part" > "$tmp/listed"
  while read -r test; do bad "$part: passes there only, and is not listed: $test"; done < <(comm -23 "$results/$part.differs" "$tmp/listed")
  if [ -z "${suites_sample:-}" ]; then
    while read -r test; do bad "$part: is listed, but does not differ: $test"; done < <(comm -13 "$results/$part.differs" "$tmp/listed")
  fi
  printf '%-18s %8s %8s %8s %8s\n' "$part" "$4" "$(wc -l < "$2")" "$same" "$differing" >> "$tmp/summary"
}
# compare PART: what pytest printed of both
compare() {
  local part=$1 side
  for side in theirs lode; do
    grep -qE '^=+ .*[0-9]+ (passed|failed|skipped|error).* in [0-9.]+s' "$results/$part.$side" || bad "$part: the tests did not come to their end: $(tail -n 1 "$results/$part.$side")"
    statuses "$results/$part.$side" > "$tmp/$side"
    grep 'PASSED$' "$tmp/$side" | cut -f1 | sort -u > "$tmp/$side.passed"
  done
  [ -s "$tmp/theirs.passed" ] || { bad "$part: no test passes there: $(tail -n 3 "$results/$part.theirs")"; return; }
  differences "$part" "$tmp/theirs.passed" "$tmp/lode.passed" "$(wc -l < "$tmp/theirs")"
}
# summary: of all parts that were compared
summary() {
  [ -f "$tmp/summary" ] || return
  printf '%-18s %8s %8s %8s %8s\n' "" tests passing "same" differing
  cat "$tmp/summary"
}
