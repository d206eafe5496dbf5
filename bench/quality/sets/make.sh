#!/bin/bash
# make.sh TREES - writes names.tsv, literals.tsv, absent.tsv and SHA256SUMS beside itself: the frozen sets of bench/QUALITY.md.
#
# TREES has each repository of repos.txt as owner+name, at its commit. The same trees give the same bytes: what is taken is chosen by a
# hash of the text with a fixed seed. Where a definition lies is said by universal-ctags, which shares nothing with Lode's parser.
#   names.tsv     half repository type name path line       type: long (function of more than 60 lines), class, function, other
#   literals.tsv  half repository type path line offset bytes sha256      type: string (a literal), line; the text itself stays in its tree
#   absent.tsv    half repository type question             type: nonsense, topic (no file of the tree has the topic's words)
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
trees=$(realpath "${1:?usage: make.sh TREES}")
seed=20261118
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Not asked for: tests, examples, copies of other projects, documents, generated files.
aside='(^|/)(tests?|specs?|__tests__|testing|testdata|fixtures?|examples?|samples?|bench[a-z]*|vendor|third_party|docs?|site|scripts|m4)/|(_test|_spec|Tests?|\.test|\.d)\.[a-z]+$'

# shellcheck disable=SC2016
awk_lib='
function hash(s,   i, h) { # of the text and the seed: an order that looks random and is always the same
  h = SEED % 2147483647
  for (i = 1; i <= length(s); i++) h = (h * 131 + ORD[substr(s, i, 1)] + 7) % 2147483647
  return (h * 48271) % 2147483647
}
BEGIN { for (i = 0; i < 256; i++) ORD[sprintf("%c", i)] = i }'

source_files() { # LANGUAGE: paths of its sources that are asked for
  local ending
  case $1 in
    C) ending='[ch]' ;; C++) ending='(cc|cpp|h|hpp)' ;; C#) ending=cs ;; Elixir) ending=ex ;; Go) ending=go ;; Java) ending=java ;;
    Python) ending=py ;; Ruby) ending=rb ;; Rust) ending=rs ;; TypeScript) ending=ts ;;
  esac
  find . -type f -printf '%P\n' | grep -E "\.$ending\$" | grep -Ev "$aside" | sort | while IFS= read -r file; do
    head -n 10 "$file" | grep -qiE 'generated|do not edit|bison parser|lexical scanner' || printf '%s\n' "$file"
  done
}

names_of() { # LANGUAGE: type name path line, in the order of the hash
  ctags -R -x --languages="$1$([ "$1" != C ] || echo ,C++)" --fields=+neKs --_xformat='%N	%K	%F	%n	%{end}	%{scope}' . 2>/dev/null |
    sed 's~	\./~	~' >"$tmp/tags"
  source_files "$1" >"$tmp/files"
  # shellcheck disable=SC2016
  awk -F'\t' -v OFS='\t' -v SEED=$seed -v language="$1" "$awk_lib"'
    function text_of(path, line) { # reads a file once; marks the lines of Elixir heredocs, whose examples ctags takes for code
      if (!(path in size)) {
        inside = n = 0
        while ((getline t < path) > 0) {
          text[path, ++n] = t
          doc[path, n] = inside
          if (language == "Elixir" && gsub(/"""/, "", t) % 2) inside = !inside
        }
        close(path)
        size[path] = n
      }
      return text[path, line]
    }
    function last_line(path, line,   first, indent, i) { # where ctags does not say: the brace or "end" at the same indent
      first = text_of(path, line)
      if (first ~ /, do:/) return line
      match(first, /^[ \t]*/)
      indent = substr(first, 1, RLENGTH)
      for (i = line + 1; i <= size[path]; i++)
        if (substr(text[path, i], 1, RLENGTH) == indent && substr(text[path, i], RLENGTH + 1) ~ /^(\}|end$)/) return i
      return line
    }
    FILENAME == ARGV[1] { wanted[$0] = 1; next }
    {
      name = $1; kind = $2; path = $3; line = $4; end = $5
      short = name
      sub(/.*[.:]/, "", short)
      scope = $6
      sub(/.*[.:]/, "", scope)
      if (kind ~ /^(implementation|package|packageName|alias|namespace|test|accessor|unknown|local)$/ && language != "TypeScript") next
      if (kind ~ /^(method|function)$/ && short == scope) next # a constructor
      text_of(path, line)
      if (doc[path, line]) next
      if (language == "Elixir" && seen[name, path, kind]++) next # further clauses
      count[name]++
      if (!(path in wanted) || name !~ /^[A-Za-z_][A-Za-z0-9_.]*[?!]?$/ || length(name) < 4) next
      if (name ~ /_H_?$|_INCLUDED_?$|^__anon|^(main|init)$/ || !index(text[path, line], short)) next
      if (kind ~ /^(class|struct|interface|trait|protocol|exception|union|enum|annotation)$/) type = "class"
      else if (kind ~ /^(function|func|method|member|singletonMethod|macro|generator|guard|delegate)$/ && !(kind == "member" && language != "Python") && !(kind == "macro" && language !~ /Elixir|Rust/)) {
        if (end == "") end = last_line(path, line)
        type = end - line + 1 > 60 ? "long" : "function"
      } else if (kind == "module" && language ~ /Elixir|Ruby/) type = "class"
      else if (kind ~ /^(macro|constant|const|typedef|type|callback)$/) type = "other"
      else next
      if (language ~ /TypeScript|Python/ && type == "other" && text[path, line] ~ /^[ \t]/) next # local
      found[name] = type OFS name OFS path OFS line
    }
    END { for (name in found) if (count[name] == 1) print hash(found[name]), found[name] }' "$tmp/files" "$tmp/tags" | sort -n | cut -f2-
}

take_names() { # from names_of: a hundred of a program, not too many of one type; what is missing is filled up
  awk -F'\t' -v OFS='\t' '
    BEGIN { most["long"] = 14; most["class"] = 30; most["function"] = 44; most["other"] = 12 }
    { if (n[$1]++ < most[$1]) { print; total++ } else rest[++r] = $0 }
    END { for (i = 1; i <= r && total < 100; i++) { print rest[i]; total++ } }'
}

literals_of() { # LANGUAGE: type path line offset text, in the order of the hash
  # shellcheck disable=SC2016
  source_files "$1" | tr '\n' '\0' | xargs -0 awk -v OFS='\t' -v SEED=$seed "$awk_lib"'
    function words(s) { return gsub(/[A-Za-z]+/, "", s) }
    {
      line = $0
      if (line ~ /[^ -~\t]|\t.*[^\t]\t/ || line ~ /^[ \t]*(\/\/|#|\*|\/\*|import|use |using |from |@)/) next
      if (match(line, /"[^"\\\t]+"/) && RLENGTH >= 18 && RLENGTH <= 82) {
        s = substr(line, RSTART + 1, RLENGTH - 2)
        if (words(s) >= 3 && s !~ /^ | $/) print hash(FILENAME s), "string", FILENAME, FNR, RSTART, s
      }
      t = line
      gsub(/^[ \t]+|[ \t]+$/, "", t)
      if (length(t) >= 24 && length(t) <= 90 && words(t) >= 3) print hash(t FILENAME), "line", FILENAME, FNR, index(line, t) - 1, t
    }' | sort -n | cut -f2-
}

take_literals() { # those that occur once in the tree: up to 25 strings, 50 in all
  local strings=0 all=0 type path line offset text
  cat >"$tmp/literals"
  for want in string line; do
    while IFS=$'\t' read -r type path line offset text && [ $all -lt 50 ]; do
      [ "$type" = $want ] && { [ $want = line ] || [ $strings -lt 25 ]; } || continue
      [ "$(grep -rIFo -e "$text" . | head -n 2 | wc -l)" = 1 ] || continue
      [ $want = line ] || strings=$((strings + 1))
      all=$((all + 1))
      printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$type" "$path" "$line" "$offset" "${#text}" "$(printf %s "$text" | sha256sum | cut -c1-64)"
    done <"$tmp/literals"
  done
}

absent_of() { # REPOSITORY: four questions of words that do not exist, six about what is not in the tree
  # shellcheck disable=SC2016
  awk -v OFS='\t' -v SEED=$seed -v repo="$1" "$awk_lib"'
    function word(   s, i) {
      s = ""
      for (i = 0; i < 3; i++) { x = hash(repo x i); s = s substr("bdfgklmnprstvz", x % 14 + 1, 1) substr("aeiou", int(x / 14) % 5 + 1, 1) }
      return s substr("xqzjw", x % 5 + 1, 1)
    }
    BEGIN {
      x = hash(repo)
      print "nonsense", word() " " word() " " word()
      print "nonsense", "how does the " word() " " word() " the " word()
      print "nonsense", "where is " word() " of " word() " handled"
      print "nonsense", word() "_" word()
    }'
  # shellcheck disable=SC2016
  grep -v '^#' "$here/topics.txt" | awk -F'|' -v OFS='\t' -v SEED=$seed -v repo="$1" "$awk_lib"' { print hash(repo $2), $1, $2 }' | sort -n | cut -f2- |
    while IFS=$'\t' read -r keys question; do
      grep -rIqiF -e "${keys//,/$'\n'}" . || printf 'topic\t%s\n' "$question"
    done | head -n 6
}

: >"$tmp/names.tsv"
: >"$tmp/literals.tsv"
: >"$tmp/absent.tsv"
while read -r half language repo _; do
  [[ $half != \#* ]] || continue
  cd "$trees/${repo/\//+}"
  names_of "$language" >"$tmp/all"
  take_names <"$tmp/all" | sort | sed "s~^~$half	$repo	~" >>"$tmp/names.tsv"
  literals_of "$language" >"$tmp/all"
  take_literals <"$tmp/all" | sort | sed "s~^~$half	$repo	~" >>"$tmp/literals.tsv"
  (absent_of "$repo" || true) | sed "s~^~$half	$repo	~" >>"$tmp/absent.tsv"
  echo "$repo" >&2
done <"$here/repos.txt"
cd "$here"
mv "$tmp"/{names,literals,absent}.tsv .
sha256sum repos.txt topics.txt names.tsv literals.tsv absent.tsv >SHA256SUMS
