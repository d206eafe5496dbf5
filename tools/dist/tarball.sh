#!/bin/sh
# tarball.sh MACHINE OUT - the tarball for Linux on MACHINE, with install.sh; its bytes depend on its contents alone
set -eu
cd "$(dirname "$0")/../.."
machine=$1 out=$2
version=$(sed -n 's/^#define LODE_VERSION_TEXT "\(.*\)"/\1/p' include/lode.h)
name=lode-$version-linux-$machine
work=build/dist/tarball
rm -rf "$work"
mkdir -p "$work" "$out"
cp -r "build/dist/stage/$machine-linux-musl" "$work/$name"
install -m 755 tools/dist/install.sh "$work/$name/install.sh"
(cd "$work/$name" && find bin lib share -type f | LC_ALL=C sort | xargs sha256sum >SHA256SUMS)
tar -C "$work" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u+w,go-w --format=ustar -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
rm -rf "$work"
echo "$out/$name.tar.gz"
