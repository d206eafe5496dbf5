# kit.sh - what the scripts in test/shell share; sourced by them. They set $lode and $tmp first.
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() {
  failed=$((failed + 1))
  echo "FAIL line ${BASH_LINENO[1]}: $*${seed:+ (seed $seed)}"
}
skip() {
  skipped=$((skipped + 1))
  echo "skipped: $*"
}
# run CODE ARGS...: runs lode in the present folder, checks the exit code, keeps $out and $err
run() {
  local want=$1
  shift
  out=$("$lode" "$@" 2>"$tmp/err" </dev/null)
  local got=$?
  err=$(cat "$tmp/err")
  if [ $got -eq "$want" ]; then ok; else bad "lode $*: exit $got, wanted $want: ${out:0:300} ${err:0:300}"; fi
}
has() { case $out in *"$1"*) ok ;; *) bad "no '$1' in: ${out:0:600}" ;; esac; }
hasnt() { case $out in *"$1"*) bad "'$1' in: ${out:0:600}" ;; *) ok ;; esac; }
says() { case $err in *"$1"*) ok ;; *) bad "no '$1' in: ${err:0:500}" ;; esac; }
silent() { case $err in *"$1"*) bad "'$1' in: ${err:0:500}" ;; *) ok ;; esac; }
check() {
  local text=$1
  shift
  if "$@"; then ok; else bad "$text"; fi
}
# A number of the JSON in $out
field() { printf '%s' "$out" | sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" | head -1; }
is_field() { check "$1 is '$(field "$1")', wanted $2: ${out:0:400}" [ "$(field "$1")" = "$2" ]; }
