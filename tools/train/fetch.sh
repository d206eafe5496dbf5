#!/bin/sh
# fetch.sh FOLDER - the packages that the model for code is made from, as FOLDER/{deb,src,npm}; what is there is kept.
#
#   deb  binary packages that carry source, chosen by name and size from what apt knows
#   src  source packages for C, C++, Java, C#, Kotlin and Scala: sources.txt (apt needs a deb-src entry)
#   npm  packages for TypeScript, and for the Kotlin, Swift and Java that native modules carry: npm.txt
# What cannot be had is left out: a few packages more or less do not matter.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/deb" "$1/src" "$1/npm"
cd "$1"

# 'uri' name size ...: one file each, whole or not at all
get() {
  awk -F"'" '/^\x27/ { print $2 }' | grep -E "$2" | xargs -r -P 4 -n 1 sh -c '
    file='"$1"'/${0##*/}; [ -s "$file" ] || { curl -sf --retry 2 -o "$file.part" "$0" && mv "$file.part" "$file"; } || true'
}

apt-cache dumpavail | awk '
  /^Package:/ { name = $2 } /^Size:/ { size = $2 }
  function take(pattern, most) { return name ~ pattern && size <= most }
  /^$/ {
    if (name !~ /-(dbg|doc|dbgsym)$/ &&
        (take("^golang-.*-dev$", 2500000) || take("^librust-.*-dev$", 2000000) || take("^python3-", 700000) || take("^ruby-", 1000000) ||
         take("^node-", 1000000) || take("^php-", 1000000) || take("^lua-", 500000))) print name
    name = size = ""
  }' | LC_ALL=C sort -u | xargs -r -n 500 apt-get --print-uris download 2>/dev/null | get deb '\.deb$'

tr -s ' \n' '\n' <"$here/sources.txt" | while read -r name; do
  apt-get --print-uris --download-only source "$name" 2>/dev/null || true
done | get src '\.orig[^/]*\.tar\.(gz|xz|bz2|zst)$'

cd npm
tr -s ' \n' '\n' <"$here/npm.txt" | while read -r name; do
  mark=.$(echo "$name" | tr '/@' '__')
  [ -e "$mark" ] || { timeout 120 npm pack --silent "$name" >/dev/null 2>&1 || true; : >"$mark"; }
done
