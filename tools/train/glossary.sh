#!/bin/sh
# glossary.sh WORK OUT - the words of other languages from nothing: fetches packages with catalogues of translated messages (what apt knows; those small ones that have
# Japanese ones or four of the five languages, and glossary.txt), takes the catalogues out of them, and aligns the words (glossary.py; needs numpy, jieba, janome).
# About 250 MB of download and two minutes on a quiet core. What is there is kept.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/deb" "$1/catalogues"
mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE)' | awk '$2 == "bookworm" { print $1; exit }')
[ -s "$1/contents" ] || for arch in all amd64; do
  curl -sf "$mirror/dists/bookworm/main/Contents-$arch.gz" | gzip -dc | grep -E '/locale/(de|es|fr|ja|zh_CN)/LC_MESSAGES/.*\.mo'
done >"$1/contents"
awk '{ n = split($NF, of, ","); split($1, at, "/locale/"); language = substr(at[2], 1, 2)
    for (i = 1; i <= n; i++) { name = of[i]; sub(".*/", "", name); if (!((name, language) in seen)) { seen[name, language] = 1; count[name]++ } } }
  END { for (name in count) if (count[name] >= 4 || (name, "ja") in seen) print name }' "$1/contents" | LC_ALL=C sort >"$1/names"
apt-cache dumpavail | awk 'NR == FNR { want[$1] = 1; next } /^Package:/ { name = $2 } /^Size:/ { size = $2 } /^$/ { if (name in want && size < 400000) print name }' \
  "$1/names" - | cat - "$here/glossary.txt" | LC_ALL=C sort -u | (cd "$1/deb" && xargs -r -n 100 apt-get --print-uris download 2>/dev/null) |
  awk -F"'" '/^\x27/ { print $2 }' | (cd "$1/deb" && xargs -r -P 4 -n 1 sh -c '[ -s "${0##*/}" ] || { curl -sf --retry 2 -o "${0##*/}.part" "$0" && mv "${0##*/}.part" "${0##*/}"; } || true')
for file in "$1"/deb/*.deb; do
  to="$1/catalogues/$(basename "$file" | sed 's/_.*//')"
  [ -d "$to" ] || {
    mkdir -p "$to.part"
    dpkg-deb --fsys-tarfile "$file" | tar -x -C "$to.part" --wildcards '*/de/LC_MESSAGES/*.mo' '*/es/LC_MESSAGES/*.mo' '*/fr/LC_MESSAGES/*.mo' \
      '*/ja/LC_MESSAGES/*.mo' '*/zh_CN/LC_MESSAGES/*.mo' 2>/dev/null || true
    mv "$to.part" "$to"
  }
done
"$here/glossary.py" "$1/catalogues" "$here/../../models/code/code.model" "$2"
