#!/bin/bash
# page-picture.sh LODE - makes the pictures of docs/UI.md: the page of `lode ui` in Chromium, on a copy of this project's sources. Wants
# what test/shell/web.sh wants: chromium, node and npm.
set -eu
lode=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")/.."
chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)}
node=build/webtest
dir=$(mktemp -d)
server=
trap 'test -z "$server" || kill "$server"; rm -rf "$dir"' EXIT
mkdir -p "$node" "$dir/lode/.git"
cp test/web/package.json test/web/package-lock.json test/web/picture.mjs "$node/"
[ -d "$node/node_modules/playwright-core" ] || (cd "$node" && npm ci --ignore-scripts --no-audit --no-fund)
cp -r src include web "$dir/lode/"
"$lode" index -q "$dir/lode"
(cd "$dir/lode" && exec "$lode" ui --no-open) 2>"$dir/log" &
server=$!
for _ in $(seq 600); do grep -q 'is ready' "$dir/log" && break; sleep 0.1; done
url=$(sed -n 's/.*the page is at \(http:[^#]*\)#token=.*/\1/p' "$dir/log")
node "$node/picture.mjs" "$url" "$chromium" "$dir/profile" docs
