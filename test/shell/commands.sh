#!/bin/bash
# commands.sh PROGRAM - what every command has, asked of all of them: help in three ways, -V, a manual page that names each flag and is laid out
# without complaint, completions of its flags and of every value that is known. Ends with "N passed, N failed[, N skipped]".
set -u
. "$(dirname "$0")/../support/kit.sh"
begin commands "$@"
cd "$tmp" || exit 1
export PATH=${lode%/*}:$PATH
printf '{"id":"a"}\n' | lode db add harbour --create --store "$tmp/.lode" -q
"$lode" help --completions bash >"$tmp/complete.bash"
# shellcheck disable=SC1091
. "$tmp/complete.bash"
# offered WORDS...: what bash offers for the last of them, one on a line
offered() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _lode
  printf '%s\n' "${COMPREPLY[@]}" | sort -u
}
# The flags of a help text, each with what is said of it in one line: its own, and those of every command
flags() {
  awk '/^Flags/ { on = 1; next } /^[A-Z]/ { on = 0 } on && /^  +-/ { if (line) print line; line = $0; next } on { sub(/^ +/, " "); line = line $0 }
    END { if (line) print line }' <<<"$help"
}
same() { # text wanted got
  if [ "$2" = "$3" ]; then ok; else bad "$1"; diff <(echo "$2") <(echo "$3") | sed 's/^/      /' | head -10; fi
}
version=$("$lode" --version)
renders=
command -v groff >/dev/null && renders=1
[ -n "$renders" ] || skip "groff is not installed: manual pages are not laid out"

commands=0
while read -r -u 9 -a words; do
  name=${words[*]} commands=$((commands + 1))
  help=$("$lode" help "${words[@]}")
  check "lode $name: no help" [ -n "$help" ]
  same "lode $name --help is not lode help $name" "$help" "$("$lode" "${words[@]}" --help)"
  same "lode $name -h is not lode help $name" "$help" "$("$lode" "${words[@]}" -h)"
  same "lode $name -V" "$version" "$("$lode" "${words[@]}" -V 2>&1)"
  check "lode $name: no example" grep -q '^Examples$' <<<"$help"
  list=$(flags | grep -oE -- '^ +(-[a-zA-Z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u)
  same "lode $name: completions of flags" "$list" "$(offered lode "${words[@]}" --)"
  # Each flag whose help names its choices
  while IFS= read -r line; do
    flag=$(grep -oE -- '--[a-z-]+' <<<"$line" | head -1)
    choices=$(grep -oE 'one of [a-z0-9|_-]+' <<<"$line" | head -1 | cut -c8- | tr '|' '\n' | sort -u)
    [ -z "$choices" ] || same "lode $name $flag: values" "$choices" "$(offered lode "${words[@]}" "$flag" "")"
    case $line in
      *"$flag LANGUAGE"*) check "lode $name $flag: no languages" grep -qx python <<<"$(offered lode "${words[@]}" "$flag" "")" ;;
      *"$flag MODEL "*) check "lode $name $flag: no models" grep -qx minilm <<<"$(offered lode "${words[@]}" "$flag" "")" ;;
      *"$flag TYPE"*) check "lode $name $flag: no kinds" grep -qx function <<<"$(offered lode "${words[@]}" "$flag" "")" ;;
    esac
  done < <(flags)
  # The first argument
  case $(sed -n '/^Arguments$/{n;p}' <<<"$help") in
    "  SETTING"*) check "lode $name: no settings" grep -qx search.limit <<<"$(offered lode "${words[@]}" "")" ;;
    "  MODEL"*) check "lode $name: no models" grep -qx minilm <<<"$(offered lode "${words[@]}" "")" ;;
    "  NAME"*"name of the collection"*) case $name in
      "db create") ;;
      db*) check "lode $name: no collections" grep -qx harbour <<<"$(offered lode "${words[@]}" "")" ;;
    esac ;;
  esac
  # The manual page
  "$lode" help "${words[@]}" --man >"$tmp/page.1"
  check "lode $name: the manual has another title" grep -q "^.TH LODE-$(tr 'a-z ' 'A-Z-' <<<"$name") 1" "$tmp/page.1"
  if [ -n "$renders" ]; then
    shown=$(groff -man -Tutf8 -ww -P-cbou "$tmp/page.1" 2>"$tmp/groff" | sed 's/‐/-/g; s/−/-/g')
    check "lode $name: groff complains: $(head -2 "$tmp/groff")" [ ! -s "$tmp/groff" ]
    for flag in $list; do
      case $shown in *"$flag"*) ok ;; *) bad "lode $name: the manual has no $flag" ;; esac
    done
  fi
done 9< <("$lode" help --list)
check "only $commands commands were looked at" [ "$commands" -gt 60 ]

same "commands of lode mcp" "$(printf '%s\n' --help install remove)" "$(offered lode mcp "")"

# Values that are listed elsewhere
help=$("$lode" help mcp install)
same "clients" "$(flags | grep -oE 'one of [a-z|-]+' | head -1 | cut -c8- | tr '|' '\n' | sort -u)" "$(offered lode mcp install --client "")"
for name in $("$lode" config list --json 2>/dev/null | sed -n 's/^{"key":"\([^"]*\)".*/\1/p'); do
  check "the setting $name is not offered" grep -qx "$name" <<<"$(offered lode config set "")"
done
for shell in zsh fish; do
  if command -v $shell >/dev/null; then
    "$lode" help --completions $shell >"$tmp/complete.$shell"
    check "the completion for $shell does not parse" $shell -n "$tmp/complete.$shell"
  else
    skip "$shell is not installed"
  fi
done

finish
