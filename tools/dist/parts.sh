#!/bin/sh
# parts.sh TARGET - prints what deps/dist/sources.txt has that is linked into the programs for TARGET, one line for each part: name, version,
# licence (SPDX, _ for spaces), package URL, SHA-256 of the package that it is taken from
set -eu
cd "$(dirname "$0")/../.."
case "$1" in *-macos*) system=macos ;; *) system=linux ;; esac
awk -v os="$system" -v machine="$(uname -m)" '
  /^#/ || NF == 0 { next }
  { name = $5; own = $6; licence = $7; only = $8 }
  $1 ~ /^pip\// { # the compiler: of it only what the next lines name is linked in
    if ($1 == "pip/" machine) { purl = "pkg:pypi/" $2 "@" $3; sum = $4 }
    next
  }
  $1 == "inside" { name = $2; own = $3; licence = $4; only = $5 }
  $1 == "crate" { purl = "pkg:cargo/" $2 "@" $3; sum = $4 }
  $1 == "debian" { sub(".*/", "", $2); purl = "pkg:deb/debian/" $2 "@" $3; sum = $4 }
  only == "" || only == os {
    at = purl
    gsub(/[+]/, "%2B", at)
    gsub(/~/, "%7E", at)
    print name, own, licence, at, sum
  }' deps/dist/sources.txt
