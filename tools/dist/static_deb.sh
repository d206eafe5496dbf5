#!/bin/sh
# static_deb.sh TARGET OUT - the Debian package `lode` with the self-contained program for TARGET: it depends on nothing, and so is the same for every
# release of Debian and Ubuntu. `make deb` makes packages that use the system's libraries.
set -eu
cd "$(dirname "$0")/../.."
target=$1 out=$2
command -v dpkg-deb >/dev/null 2>&1 || { echo "static_deb: skipped, dpkg-deb is not installed"; exit 0; }
version=$(sed -n 's/^#define LODE_VERSION_TEXT "\(.*\)"/\1/p' include/lode.h)
case "$target" in x86_64-*) machine=amd64 ;; aarch64-*) machine=arm64 ;; *) echo "static_deb: what does Debian call $target?" >&2; exit 1 ;; esac
work=build/dist/deb.$target
rm -rf "$work"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/DEBIAN" "$work/usr"
cp -r "build/dist/stage/$target/." "$work/usr/"
doc=$work/usr/share/doc/lode
date=$(date -u -R -d "@${SOURCE_DATE_EPOCH:-0}")
maintainer=$(sed -n 's/^Maintainer: //p' packaging/debian/control.in)
mkdir -p "$work/usr/share/lintian/overrides"
mv "$doc/CHANGELOG.md" "$doc/changelog"
rm -f "$doc/licences/lode.txt"
{ cat packaging/debian/copyright.in
  echo
  echo "Files: /usr/bin/lode /usr/lib/lode/lode-parser"
  echo "Copyright: their authors, as /usr/share/doc/lode/licences tells"
  echo "License: Apache-2.0 and others"
  echo " Libraries and grammars are linked into the programs. The licence of each is in"
  echo " /usr/share/doc/lode/licences, the list of them in sbom.spdx.json."; } >"$doc/copyright"
printf 'lode (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md in the source.\n\n -- %s  %s\n' "$version" "$maintainer" "$date" >"$doc/changelog.Debian"
gzip -9n "$doc/changelog" "$doc/changelog.Debian" "$work"/usr/share/man/man1/*.1
cat >"$work/usr/share/lintian/overrides/lode" <<'TEXT'
# Everything is linked in, so that one package serves every release; licences and the list of parts are in /usr/share/doc/lode
lode: statically-linked-binary *
lode: embedded-library *
lode: unstripped-binary-or-object *
lode: shared-library-lacks-prerequisites *
TEXT
cat >"$work/DEBIAN/control" <<TEXT
Package: lode
Version: $version
Architecture: $machine
Maintainer: $maintainer
Installed-Size: $(du -sk "$work/usr" | cut -f1)
Section: utils
Priority: optional
$(sed -n '/^Package: lode$/,/^$/{/^Description/,/^$/p}' packaging/debian/control.in | sed '/^$/d')
 .
 This is the self-contained build, which needs no other package.
TEXT
find "$work" -type d -exec chmod 755 {} +
find "$work/usr" -type f -exec chmod u+rw,go+r,go-w {} +
(cd "$work" && find usr -type f | LC_ALL=C sort | xargs md5sum >DEBIAN/md5sums)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-0} dpkg-deb --root-owner-group -Zxz -b "$work" "$out/lode_${version}_$machine.deb" >/dev/null
echo "$out/lode_${version}_$machine.deb"
