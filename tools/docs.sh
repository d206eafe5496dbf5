#!/bin/sh
# docs.sh TO - README.md and docs/*.md as arrays of bytes, TO/docs_pages.c (src/app/docs/docs.h).
set -eu
to=$1
cd "$(dirname "$0")/.."
mkdir -p "$to"
{
  echo '/* Made by tools/docs.sh of docs/. */'
  echo '#include "docs/docs.h"'
  n=0
  for file in README.md docs/*.md; do
    n=$((n + 1))
    echo "static const unsigned char docs_$n[] = {"
    od -An -v -tu1 "$file" | sed 's/^ *//; s/  */,/g; s/$/,/'
    echo '};'
  done
  echo 'const docs_page docs_pages[] = {'
  n=0
  for file in README.md docs/*.md; do
    n=$((n + 1))
    name=$(basename "$file" .md | tr A-Z a-z)
    title=$(sed -n 's/^# *//p' "$file" | head -n 1 | tr -d '"\\`')
    echo "  {\"$name\", \"$file\", \"$title\", docs_$n, sizeof docs_$n},"
  done
  echo '  {0}};'
} >"$to/docs_pages.c.new"
mv "$to/docs_pages.c.new" "$to/docs_pages.c"
