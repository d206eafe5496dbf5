#!/bin/sh
# page.sh TO - web/ as one page TO/page.html, and that as an array of bytes, TO/page.c (src/app/server/page.h). Scripts are joined in the
# order of the line <!-- scripts: NAME NAME -->, which they replace; the style takes the place of <!-- style -->.
set -eu
to=$1
cd "$(dirname "$0")/.."
mkdir -p "$to"
awk '
  function put(file, line) { while ((got = (getline line < file)) > 0) print line; if (got < 0) { print file " cannot be read" > "/dev/stderr"; exit 1 } close(file) }
  /<!-- style -->/ { print "<style>"; put("web/style.css"); print "</style>"; next }
  /<!-- scripts:/ {
    print "<script>"; print "\047use strict\047;"
    for (i = 3; i <= NF && $i != "-->"; i++) put("web/" $i)
    print "</script>"; next
  }
  { print }
' web/index.html > "$to/page.html.new"
mv "$to/page.html.new" "$to/page.html"
{
  echo '/* Made by tools/page.sh of web/. */'
  echo '#include "server/page.h"'
  echo 'const unsigned char server_page_bytes[] = {'
  od -An -v -tu1 "$to/page.html" | sed 's/^ *//; s/  */,/g; s/$/,/'
  echo '};'
  echo 'const size_t server_page_size = sizeof server_page_bytes;'
} > "$to/page.c.new"
mv "$to/page.c.new" "$to/page.c"
