#!/bin/sh
# npm.sh OUT [TARGET] - the npm package for TARGET, which npm chooses by its os and cpu; without one `lodekit`, whose command starts the program of
# the platform. The bytes of a package depend on its contents alone.
set -eu
cd "$(dirname "$0")/../.."
out=$1 target=${2:-}
version=$(sed -n 's/^#define LODE_VERSION_TEXT "\(.*\)"/\1/p' include/lode.h)
work=build/dist/npm.${target:-main}
trap 'rm -rf "$work"' EXIT

# TARGET, as node has it: linux-x64, darwin-arm64
platform() { echo "$1" | sed 's/-musl$//; s/^x86_64-\(.*\)/\1-x64/; s/^aarch64-\(.*\)/\1-arm64/; s/^macos/darwin/'; }

# NAME FIELDS - on standard output
manifest() {
  printf '{\n  "name": "%s",\n  "version": "%s",\n  "license": "Apache-2.0",\n' "$1" "$version"
  printf '  "description": "Semantic code search and an embedded vector database that do not crash",\n%s\n}\n' "$2"
}

# NAME - of the files in $work/package
pack() {
  tools/dist/pack.sh "$work" package "$out/$1-$version.tgz"
  rm -rf "$work"
}

rm -rf "$work"
mkdir -p "$work"
if [ -n "$target" ]; then
  name=$(platform "$target")
  cp -r "build/dist/stage/$target" "$work/package"
  manifest "lodekit-$name" "  \"os\": [\"${name%-*}\"],
  \"cpu\": [\"${name#*-}\"],
  \"preferUnplugged\": true" >"$work/package/package.json"
  pack "lodekit-$name"
  exit
fi
optional=
for each in x86_64-linux-musl aarch64-linux-musl x86_64-macos aarch64-macos; do
  optional="$optional${optional:+,}
    \"lodekit-$(platform $each)\": \"$version\""
done
mkdir -p "$work/package"
manifest lodekit "  \"bin\": {\"lode\": \"lode.js\"},
  \"engines\": {\"node\": \">=14\"},
  \"optionalDependencies\": {$optional
  }" >"$work/package/package.json"
install -m 755 tools/dist/npm/lode.js "$work/package/lode.js"
install -m 644 README.md LICENSE "$work/package/"
pack lodekit
