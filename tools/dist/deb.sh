#!/bin/sh
# deb.sh OUT - Debian packages lode, liblodeABI and liblode-dev, linked with this system's libraries, and their source package, which has the
# sources of the grammars and needs no network; checked by lintian where that is installed. Needs debhelper.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p "$1"
tools/dist/fetch.sh build/dist/src grammars
out=$(cd "$1" && pwd)
command -v dh >/dev/null 2>&1 || { echo "deb: debhelper is not installed: apt-get install debhelper" >&2; exit 1; }
version=$(sed -n 's/^#define LODE_VERSION_TEXT "\(.*\)"/\1/p' include/lode.h)
abi=$(sed -n 's/^#define LODE_ABI \([0-9]*\).*/\1/p' include/lode.h)
when=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
work=$(mktemp -d "${TMPDIR:-/tmp}/lode-deb-XXXXXX")
trap 'rm -rf "$work"' EXIT
tree=$work/lode-$version
mkdir -p "$tree"
git ls-files -z | xargs -0 cp --parents -t "$tree"
tools/dist/grammar_sources.sh build/dist/src/grammars/node_modules "$tree/grammars"
cp -r packaging/debian "$tree/debian"
{ cat packaging/debian/copyright.in; tools/dist/deb_copyright.sh "$tree/grammars"; } >"$tree/debian/copyright"
cd "$tree/debian"
sed "s/@ABI@/$abi/g" control.in >control
mv liblode.install "liblode$abi.install"
rm -f control.in copyright.in
printf 'lode (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' "$version" \
  "$(sed -n 's/^Maintainer: //p' control)" "$(date -u -R -d "@$when")" >changelog
cd ..
SOURCE_DATE_EPOCH=$when DEB_BUILD_OPTIONS="parallel=2 nocheck noautodbgsym" dpkg-buildpackage -us -uc >"$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }
cp "$work"/*.deb "$work"/*.dsc "$work"/lode_*.tar.* "$out/"
if command -v lintian >/dev/null 2>&1; then
  lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$work"/*.changes
else
  echo "skipped: lintian is not installed"
fi
ls "$out"/*
