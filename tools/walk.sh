#!/bin/bash
# walk.sh LODE - the two walks of docs/ARCHITECTURE.md, counted: which files lie on the way of a record from `lode db add` to the disk, and of a
# source file from `lode index` to a result of `lode search`.
#
# LODE is a build without optimisation (make SAN=cov build/cov/lode). gdb stops it wherever SQLite or the operating system is asked for something and
# prints the stack. Counted are the files of all stacks, their rooms, and the ways: pairs of rooms of which one calls the other.
set -eu
lode=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CONFIG_HOME=$work/config XDG_DATA_HOME=$work/data XDG_STATE_HOME=$work/state LODE_TRUST=1

cat >"$work/stops" <<'END'
set pagination off
set confirm off
set print frame-arguments none
set debuginfod enabled off
set breakpoint pending on
handle SIGPIPE SIGCHLD nostop noprint pass
rbreak ^real_
rbreak ^os_sys_f.*sync$
break sqlite3_open_v2
break sqlite3_prepare_v3
break sqlite3_step
break write
commands 1-100
silent
bt
continue
end
END

stacks() { # arguments of lode: its stacks, those of all threads that stop
  gdb -batch -nx -x "$work/stops" -ex run --args "$lode" "$@" 2>/dev/null </dev/null || :
}
count() { # title; reads stacks
  awk -v title="$1" '
    /^#[0-9]+ / {
      depth = substr($1, 2) + 0
      file = ""
      if (match($0, / at src\/[a-z]+\/[a-z]+\/[a-z_0-9]+\.[ch]/)) file = substr($0, RSTART + 8, RLENGTH - 8)
      room = file; sub(/\/[^\/]*$/, "", room)
      if (depth == 0) below = ""
      if (file == "") next
      files[file] = 1; rooms[room] = 1
      if (below != "" && below != room) ways[room " " below] = 1
      below = room
    }
    END {
      for (f in files) { n++; print "  " f | "sort" }
      close("sort")
      for (r in rooms) k++
      for (w in ways) m++
      printf "%s: %d files in %d rooms, %d ways from one room to another\n", title, n, k, m
    }'
}

echo '{"id":"a","document":"one","metadata":{"k":1},"embedding":[1,0]}' >"$work/lines"
stacks --store "$work/store" db add notes --create "$work/lines" | count "lode db add"
mkdir "$work/project" && cd "$work/project"
printf 'int add(int a, int b) {\n  return a + b;\n}\n' >sum.c
"$lode" init --quiet >/dev/null 2>&1 || :
{ stacks index; stacks search "add two numbers"; } | count "lode index, lode search"
