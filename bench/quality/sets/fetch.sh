#!/bin/bash
# fetch.sh FOLDER - clones the repositories of repos.txt into FOLDER/owner+name, each at its commit. What is there is kept.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
grep -v '^#' "$here/repos.txt" | while read -r _ _ repo commit; do
  tree=$1/${repo/\//+}
  [ ! -d "$tree" ] || continue
  git clone -q "https://github.com/$repo" "$tree" && git -C "$tree" checkout -q "$commit" && rm -rf "$tree/.git"
done
