#!/bin/sh
# tarball.sh TARGET OUT - the tarball for TARGET, with install.sh
set -eu
cd "$(dirname "$0")/../.."
target=$1 out=$2
version=$(sed -n 's/^#define LODE_VERSION_TEXT "\(.*\)"/\1/p' include/lode.h)
machine=${target%%-*} system=${target#*-}
name=lode-$version-${system%-musl}-$machine
work=build/dist/tarball.$target
rm -rf "$work"
mkdir -p "$work"
cp -r "build/dist/stage/$target" "$work/$name"
install -m 755 tools/dist/install.sh "$work/$name/install.sh"
(cd "$work/$name" && find bin lib share -type f | LC_ALL=C sort | xargs sha256sum >SHA256SUMS)
tools/dist/pack.sh "$work" "$name" "$out/$name.tar.gz"
rm -rf "$work"
