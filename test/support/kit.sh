# kit.sh - what the scripts in test/shell share; sourced by them: a folder and a home of their own, checks that are counted, servers that are
# waited for, packages of npm.
patience=${LODE_TEST_PATIENCE:-1} # times as long as on a quiet machine
server=                           # the process id of what is to be killed at the end

# begin NAME PROGRAM: $lode, the folder $tmp, which is removed at the end, and a home in it; $user_home is the real one
begin() {
  user_home=$HOME
  lode=$(realpath "${2:?usage: $1.sh PATH-OF-LODE}")
  tmp=$(mktemp -d "${TMPDIR:-/tmp}/lode-$1-XXXXXX")
  trap '[ -z "$server" ] || kill -9 $server 2>/dev/null; rm -rf "$tmp"' EXIT
  export HOME="$tmp/home" XDG_DATA_HOME="$tmp/data" NO_COLOR=1 LODE_PAGER= GIT_CONFIG_GLOBAL=/dev/null
  unset LODE_STORE
  mkdir -p "$HOME"
}
# finish: the last line of a script, and its exit status
finish() {
  if [ "$skipped" = 0 ]; then echo "$passed passed, $failed failed"; else echo "$passed passed, $failed failed, $skipped skipped"; fi
  [ "$failed" = 0 ]
}

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
# with_syntax WHAT: is lode-parser built, with grammars? Where npm's registry cannot be reached it is not, and WHAT is skipped
with_syntax() {
  (cd "$tmp" && "$lode" doctor --json 2>/dev/null) | grep -q '"check":"parser".* languages with a grammar' && return 0
  skip "$1: the grammars are not built (make grammars)"
  return 1
}
# on_platform PLATFORMS WHAT: is this build for one of them? `make test PLATFORM=posix` says that it is not linux, and WHAT is skipped
on_platform() {
  case " $1 " in *" ${LODE_TEST_PLATFORM:-linux} "*) return 0 ;; esac
  skip "$2: not on $LODE_TEST_PLATFORM"
  return 1
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

# wait_ready LOG: until the server that writes this log is ready, or has died; $port
wait_ready() {
  port=
  for _ in $(seq $((600 * patience))); do
    port=$(sed -n 's/.* at https\{0,1\}:[^ ]*:\([0-9]*\)[,;].*/\1/p' "$1" | head -1)
    [ -n "$port" ] && grep -q 'is ready' "$1" && return 0
    kill -0 "$server" 2>/dev/null || return 1
    sleep 0.05
  done
  return 1
}
# hold_lock FILE BYTE: another process locks this byte of the file until release_lock
hold_lock() {
  rm -f "$tmp/held"
  python3 -c 'import fcntl, os, sys, time
fcntl.lockf(os.open(sys.argv[1], os.O_RDWR), fcntl.LOCK_EX, 1, int(sys.argv[2], 0))
open(sys.argv[3], "w").close()
time.sleep(600)' "$1" "$2" "$tmp/held" & holder=$!
  until [ -e "$tmp/held" ]; do kill -0 $holder || return; sleep 0.02; done
}
release_lock() { kill $holder; wait $holder 2>/dev/null; }
# tally NAME COMMAND...: a test program of its own; adds up the last line of its output
tally() {
  local name=$1 last
  shift
  timeout $((300 * patience)) "$@" >"$tmp/$name.out" 2>&1
  last=$(tail -1 "$tmp/$name.out")
  if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed ]]; then
    passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
    [ "${BASH_REMATCH[2]}" = 0 ] || cat "$tmp/$name.out"
  else
    bad "$name: $(tail -20 "$tmp/$name.out")"
  fi
}
# have_npm FROM TO FILE...: the packages that FROM/package-lock.json pins are in TO/node_modules, with the files; else $why
have_npm() {
  local from=$1 to=$2
  shift 2
  command -v node >/dev/null && command -v npm >/dev/null || { why="node and npm are not installed"; return 1; }
  [ "$(node -p 'process.versions.node.split(".")[0] >= 20')" = true ] || { why="node is older than 20"; return 1; }
  mkdir -p "$to"
  (cd "$from" && cp package.json package-lock.json "$@" "$OLDPWD/$to/") || return 1
  cmp -s "$to/package-lock.json" "$to/installed.json" && [ -d "$to/node_modules" ] && return 0
  (cd "$to" && HOME=$user_home timeout 300 npm ci --ignore-scripts --no-audit --no-fund) >"$tmp/npm.log" 2>&1 && cp "$to/package-lock.json" "$to/installed.json" && return 0
  why="npm cannot get the packages of $from"
  return 1
}
