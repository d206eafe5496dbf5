#!/bin/bash
# terminal.sh PROGRAM - what a person sees in a terminal: the first search of a project, questions before something is removed, colours, and how
# much fits a screen. A terminal is made by script(1); without it those checks are skipped. Ends with "N passed, N failed[, N skipped]".
set -u
. "$(dirname "$0")/../support/kit.sh"
begin terminal "$@"
docs=$(cd "$(dirname "$0")/../../docs" && pwd)
cd "$tmp" || exit 1
terminal=
script -qec true /dev/null >/dev/null 2>&1 </dev/null && terminal=1
# typed TEXT COMMAND: the command in a terminal of 80 x 24, with these keys; $out without colours, $raw with them
typed() {
  local keys=$1
  shift
  raw=$(printf '%s' "$keys" | env -u NO_COLOR TERM=xterm-256color script -qec "stty cols 80 rows 24; $*" /dev/null 2>&1 | tr -d '\r')
  out=$(printf '%s' "$raw" | sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g; s/\x1b\]8;;[^\x1b]*\x1b\\//g')
}
lines() { printf '%s\n' "$out" | grep -c ''; }
# files FOLDER N: a project of N small files
files() {
  mkdir -p "$1/.git"
  awk -v dir="$1" -v n="$2" 'BEGIN { for (i = 0; i < n; i++) { f = dir "/part" i ".c";
    printf "/* part %d closes sessions */\nint close_session_%d(int s) {\n  return s - %d;\n}\n", i, i, i > f; close(f) } }'
}

# ---- A screen of help, the version, suggestions, plurals

run 2; out=$err
check "lode alone takes $(lines) lines" [ "$(lines)" -le 24 ]
check "a line of it is wider than 80" [ "$(printf '%s\n' "$out" | wc -L)" -le 80 ]
run 0 --help; has "db query"; has "export chroma-jsonl"
run 0 -V; has "lode "
for word in grep:search find:search init:setup web:ui ls:'db collections' reindex:'index --force' idnex:index delte:'--help'; do
  run 2 "${word%%:*}"; says "lode ${word#*:}"
done

# ---- The documents

run 0 help docs; has "  cookbook "; has "  search "
run 0 help cookbook; has "RAG in C"; hasnt "<!--"
run 0 help docs search; has "Code search: index, search, settings"
run 0 help docs/SEARCH.md; has "Code search: index, search, settings"
run 0 help search; has "Usage"; has "lode help docs search"
run 2 help cookbok; says "lode help cookbook"
run 2 help docs nosuch; says '`lode help docs` lists them'
run 2 help docs cookbok; says '`lode help docs cookbook`'
run 0 help --completions bash; has " cookbook "
for document in "$docs"/*.md; do
  name=$(basename "$document" .md)
  run 0 help docs "$name"; check "$name: the text is not that of docs/" [ "$(printf '%s' "$out" | grep -c '')" -gt 10 ]
done

# ---- The first search of a project

files small 5
cd small || exit 1
run 6 search "where are sessions closed" --no-refresh; says "lode index"
check "a search that may not write made a store" [ ! -e .lode ]
run 6 search "where are sessions closed" --read-only; says "lode index"
check "a search that only reads made a store" [ ! -e .lode ]
run 6 def close_session_1; says "lode index"
run 0 search "where are sessions closed"; has "close_session"; says "5 files were indexed first"
run 0 search "where are sessions closed"; silent "indexed first"
cd "$tmp" && files large 300 && cd large || exit 1
run 6 search "where are sessions closed"; says "lode index"; check "a large project was indexed without being asked" [ ! -e .lode ]
if [ -n "$terminal" ]; then
  typed 'n
' "'$lode' search close_session_7"
  has "Index its 300 files now? [Y/n]"; has "is not indexed yet: run"
  check "it was indexed against an answer" [ ! -e .lode ]
  typed '
' "'$lode' search close_session_7"
  has "part7.c:1-4"; has "300 files were indexed first"
else
  skip "script(1) makes no terminal here"
  run 0 index -q
fi
# never the home folder, however small it is
mkdir -p "$HOME" && echo 'int at_home(void);' >"$HOME/a.c"
(cd "$HOME" && "$lode" search at_home >/dev/null 2>&1 </dev/null); check "the home folder was indexed" [ ! -e "$HOME/.lode" ]

# ---- Results

run 0 search close_session_7 --oneline; has "part7.c:2: int close_session_7(int s) {"
check "--oneline: more lines than results" [ "$(printf '%s\n' "$out" | grep -vc '^part[0-9]*\.c:[0-9]*: ')" = 0 ]
run 0 search close_session_7 -n 1; has "part7.c:1-4"
run 0 search -F 'close' --files-only -n 100; check "a path comes twice" [ -z "$(printf '%s\n' "$out" | sort | uniq -d)" ]
run 0 search close_session_7 -n 1 --explain; has "name"; hasnt " 0.00 "
out=$(env -u NO_COLOR "$lode" search close_session_7 -n 1 --color always 2>/dev/null)
check "words of the language have no colour" [ "$(printf '%s' "$out" | grep -c $'\x1b\\[35mreturn')" = 1 ]
check "comments have no colour" [ "$(printf '%s' "$out" | grep -c $'\x1b\\[2m/[*] part ')" = 1 ]
check "the name that was asked for does not stand out" [ "$(printf '%s' "$out" | grep -c $'\x1b\\[1;31mclose')" -ge 1 ]
plain=$("$lode" search close_session_7 -n 1 2>/dev/null)
check "colours change the text" [ "$(printf '%s\n' "$out" | sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g')" = "$plain" ]
check "NO_COLOR has colours" [ "$(printf '%s' "$plain" | grep -c $'\x1b')" = 0 ]
out=$(env -u NO_COLOR "$lode" search "quantum teleportation recipes" --color always 2>"$tmp/err"); code=$?
check "a weak answer: exit $code" [ $code = 1 ]
check "a weak match has colours" [ "$(printf '%s' "$out" | grep -c $'\x1b\\[3[0-9]m')" = 0 ]
check "a weak match is not dimmed" [ "$(printf '%s' "$out" | grep -c $'\x1b\\[0;2m')" -gt 0 ]
run 0 context close_session_7; has "int close_session_7"
run 0 context part7.c:2; has "int close_session_7"

# ---- A file as it was indexed, with its tokens: kinds and lengths

run 0 read part7.c --indexed --spans --json; has '"spans":[[1,28],[4,3,0,1,5,15,0,1,4,3,0,1,5,1,0,3],[0,2,4,6,0,1,5,1,0,3,3,1,0,1],[0,1]]'; has '"lines":4'
run 0 read part7.c:3 -n 1 --indexed --spans --json; has '"snippet":"  return s - 7;"'; has '"spans":[[0,2,4,6,0,1,5,1,0,3,3,1,0,1]]'
run 0 read part7.c --indexed; has "int close_session_7(int s) {"
run 2 read part7.c --spans; says "spans"
run 2 read --name close_session_7 --indexed; says "indexed"
run 1 read part7.c:5 --indexed; says "has no line 5"
run 1 read nosuch.c --indexed; says "is not in the index"
{ awk 'BEGIN { print "/*"; for (i = 2; i < 20000; i++) print "line " i " of a comment"; print "*/ int last;" }'; } >comment.c
awk 'BEGIN { printf "int a = \""; for (i = 0; i < 90000; i++) printf "wide "; print "\";\nint b;" }' >wide.c
run 0 index -q
run 0 read comment.c:19999 -n 2 --indexed --json --spans; has '"snippet":"line 19999 of a comment\n*/ int last;"'; has '"start_line":19999,"end_line":20000'
run 0 read wide.c --indexed --json --spans; check "tokens of a wide line" [ "$(printf '%s' "$out" | grep -oE '"spans":.*' | wc -c)" -lt 100 ]; has ',[4,3,0,1,5,1,0,1]]'
check "a wide line is not whole" [ "$(printf '%s' "$out" | wc -c)" -gt 450000 ]
rm comment.c wide.c
run 0 index -q

# ---- Status

run 0 status; check "status takes $(lines) lines" [ "$(lines)" -le 10 ]; hasnt "segments"; has "300"
run 0 status -v; has "segments"; has "revision"
run 0 status --json; has '"revision":'; is_field files 300
: >empty.c
run 0 index -q; run 0 status --json; is_field files 300; has '"languages":{"c":300}'
run 0 index --json; sum=$(($(field added) + $(field changed) + $(field unchanged))); check "$(field files) files, and $sum new, changed and unchanged" [ "$(field files)" = "$sum" ]
run 0 status --skipped; has "empty.c"; has "has no text"
cd "$tmp" && run 0 status large; has "$tmp/large"

# ---- A file and a folder that cannot be read: root may read all, so the project is another user's then

files closed 5; mkdir closed/locked user
echo 'int x;' >closed/locked/x.c; chmod 000 closed/part3.c closed/locked
user=()
if [ "$(id -u)" = 0 ]; then
  user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  chmod 711 "$tmp"; chown -R 65534:65534 closed user
fi
# theirs ARGS...: lode as that user, in the project
theirs() { out=$(cd closed && HOME=$tmp/user XDG_DATA_HOME=$tmp/user "${user[@]}" "$lode" "$@" 2>&1 </dev/null); }
if "${user[@]}" test -r "$tmp/closed/part1.c" && theirs --version; then
  theirs index; has "4 files: 4 new"; has "2 files or folders cannot be read"
  theirs index --json; is_field files 4; is_field added 0; is_field unchanged 4
  theirs doctor; has "2 files or folders could not be read"
  theirs status; has "unreadable 2"
  theirs skipped --reason unreadable; has "part3.c"; has "locked/"; check "$(lines) lines of what cannot be read" [ "$(lines)" = 3 ]
  theirs skipped --reason hidden; hasnt part3.c
  chmod 644 closed/part3.c; chmod 755 closed/locked
  theirs index; has "6 files: 2 new"; hasnt "cannot be read"
  theirs doctor; hasnt "could not be read"
else
  skip "unreadable folders: another user gets neither to $tmp nor to $lode"
fi

# ---- A collection of the index that is gone, as other programs may do it, is noticed

files torn 3; (cd torn && "$lode" index -q 2>/dev/null)
for name in code files code.symbols; do
  mv torn/.lode bare; mv bare/index.lock kept
  run 0 db drop $name --store "$tmp/bare" --yes
  mv kept bare/index.lock; mv bare torn/.lode
  run 0 index torn; says "a collection of the index was dropped"; has "3 new"
  run 0 index torn; silent "dropped"; has "3 unchanged"
  run 0 search close_session_1 --project torn --oneline; has "part1.c"
done
cd large || exit 1

# ---- Results as one types

run 2 search --interactive close_session_7; says "--interactive needs a terminal"
run 2 search -i --json close_session_7; says "--interactive needs a terminal"
if [ -n "$terminal" ]; then
  printf '/* turned \xe2\x80\xae around \xe4\xb8\xad\xe6\x96\x87 */\nint turned_around;\n' >turned.c
  printf '#!/bin/sh\necho "$@" >"%s"\n' "$tmp/edited" >"$tmp/editor" && chmod +x "$tmp/editor"
  mkfifo "$tmp/keyboard"
  # browse: lode search -i in a terminal, with what is typed from descriptor 7; its process is in $tmp/pid, what it shows in $tmp/shown
  browse() {
    rm -f "$tmp/pid" "$tmp/shown"
    env -u NO_COLOR TERM=xterm-256color EDITOR="$tmp/editor" script -qec "stty cols 80 rows 24; sh -c 'echo \$\$ >$tmp/pid; exec \"$lode\" search --interactive $1'; echo code \$?; stty -a; echo the end" \
      /dev/null <"$tmp/keyboard" >"$tmp/shown" 2>&1 &
    browser=$!
    exec 7>"$tmp/keyboard"
  }
  shown() { sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g' "$tmp/shown" | tr -d '\r'; }
  await() { # text
    for _ in $(seq $((200 * patience))); do shown | grep -qF -- "$1" && return; sleep 0.05; done
    bad "nothing shows '$1': $(shown | tail -12)"
  }
  leaves() { # code: the terminal is as it was
    await "the end"
    check "exit code $1" grep -q "code $1" <(shown)
    check "the terminal was not given back" grep -qE '[^-]icanon.* echo ' <(shown | tr '\n' ' ')
    check "the screen was not given back" grep -q $'\x1b\\[?1049l' "$tmp/shown"
    check "lines do not wrap any more" grep -q $'\x1b\\[?7h' "$tmp/shown"
    exec 7>&-
    wait $browser
  }
  browse close_session_7
  await "> part7.c:2"; await "return s - 7;"
  printf '\025close_session_12' >&7; await "return s - 12;"
  printf '\r' >&7
  for _ in $(seq $((200 * patience))); do [ -s "$tmp/edited" ] && break; sleep 0.05; done
  check "the editor was given $(cat "$tmp/edited")" [ "$(cat "$tmp/edited")" = "+2 $PWD/part12.c" ]
  printf '\025turned around' >&7; await "int turned_around;"
  check "a bidirectional override reached the terminal" [ "$(grep -c $'\xe2\x80\xae' "$tmp/shown")" = 0 ]
  printf '\377\033[1;5C\025close_session_13' >&7; await "return s - 13;"
  printf '\003' >&7; leaves 130
  check "lines wrap in a narrow terminal" grep -q $'\x1b\\[?7l' "$tmp/shown"
  browse close_session_7; await "return s - 7;"; printf '\033' >&7; leaves 0
  browse close_session_7; await "return s - 7;"; kill -TERM "$(cat "$tmp/pid")"; leaves 143
  browse close_session_7; await "return s - 7;"; kill -SEGV "$(cat "$tmp/pid")"; leaves 139
  rm turned.c
else
  skip "script(1) makes no terminal here"
fi

# ---- Settings

run 2 config set search.limit; says "needs VALUE"
run 0 config set search.limit 3; run 0 config get search.limit; has 3
run 0 config unset search.limit; run 0 config get search.limit; has 10

cd "$tmp" || exit 1

# ---- Records by position

S="$tmp/notes"
printf '{"id":"a","document":"the harbour at dawn"}\n{"id":"b","document":"roses in a garden"}\n{"id":"c,d","document":"knives"}\n' |
  "$lode" db add notes --create --store "$S" >/dev/null 2>&1
run 0 db get notes a b --store "$S"; has harbour; has roses; hasnt knives
run 0 db get notes c,d --store "$S"; has knives
run 0 db get notes --ids a,b --store "$S"; has harbour; has roses
run 0 db query notes roses garden --store "$S"; has roses
run 0 db query notes --text roses --store "$S"; has roses

# ---- Where records go that no folder was named for is said

mkdir nowhere && cd nowhere || exit 1
run 0 db create other; says "made a store: $XDG_DATA_HOME/lode"
run 0 db create another; silent "store"
run 0 db create more --store "$S"; silent "store"
[ -z "$terminal" ] || { typed '' "'$lode' db create third"; has "the store is $XDG_DATA_HOME/lode"; }
run 0 db create fourth -q; silent "store"
cd "$tmp" || exit 1

# ---- Removing asks and keeps a copy

if [ -n "$terminal" ]; then
  typed 'n
' "'$lode' db delete notes a --store '$S'"
  has 'remove 1 record of "notes"? [y/N]'; has "nothing was removed"
  check "a refused deletion left a copy" [ -z "$(ls "$S".removed-* 2>/dev/null)" ]
  typed 'y
' "'$lode' db delete notes a --store '$S'"
  has "1 deleted; a copy is at $S.removed-"
  check "the copy does not have the record" grep -q harbour "$S".removed-*.jsonl
  run 0 db add notes "$S".removed-*.jsonl --store "$S"; run 0 db get notes a --store "$S"; has harbour
  rm -f "$S".removed-*
  typed 'y
' "'$lode' db drop notes --store '$S'"
  has 'the collection "notes" with 3 records'; has "a copy is at"
  check "the copy does not have 3 records" [ "$(grep -c . "$S".removed-*.jsonl)" = 3 ]
  run 0 db add notes "$S".removed-*.jsonl --create --store "$S"
  rm -f "$S".removed-*
  typed '' "'$lode' db delete notes a --yes --store '$S'"; has "1 deleted"
  typed 'y
' "'$lode' db drop notes --no-backup --store '$S'"; has "dropped"
  check "--yes or --no-backup left a copy" [ -z "$(ls "$S".removed-* 2>/dev/null)" ]
  printf '{"id":"a","document":"the harbour","embedding":[1,0.5]}\n' | "$lode" db add own --create --store "$S" >/dev/null 2>&1
  typed 'n
' "'$lode' db reembed own --model code --store '$S'"
  has 'remove the vectors of the collection "own" with 1 record? [y/N]'; has "nothing was removed"
  run 0 db get own a --include embedding --store "$S"; has '[1.0,0.5]'
  check "a refused reembed left a copy" [ -z "$(ls "$S".removed-* 2>/dev/null)" ]
  typed 'y
' "'$lode' db reembed own --model code --store '$S'"
  has "vectors by code@"; has "a copy is at $S.removed-"
  check "the copy does not have the vector" grep -q '\[1.0,0.5\]' "$S".removed-*.jsonl
  rm -f "$S".removed-*
  typed '' "'$lode' db reembed own --model code --store '$S'"; hasnt 'remove the vectors'; has "vectors by code@"
  check "vectors of a model were copied" [ -z "$(ls "$S".removed-* 2>/dev/null)" ]
else
  skip "script(1) makes no terminal here"
fi
run 0 db create other --store "$S"; printf '{"id":"a"}\n' | "$lode" db add other --store "$S" >/dev/null 2>&1
run 0 db delete other a --store "$S"; has "1 deleted"

# ---- A server of a store that is not there says so

"$lode" serve --store "$tmp/new" --port 0 2>"$tmp/log" >/dev/null & server=$!
wait_ready "$tmp/log"; kill -TERM $server; wait $server; server=
check "serve does not say that it makes a store" grep -q "there is no store at $tmp/new yet" "$tmp/log"

finish
