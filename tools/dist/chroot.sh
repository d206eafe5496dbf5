#!/bin/sh
# chroot.sh SUITE FOLDER - the smallest Debian SUITE with python3 in FOLDER, once: no compiler, none of Lode's libraries
set -eu
suite=$1 folder=$2
[ ! -f "$folder.complete" ] || exit 0
[ "$(id -u)" = 0 ] || { echo "chroot: skipped, it needs root"; exit 0; }
# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(ORIGIN) $(RELEASE) $(SITE)' 2>/dev/null | awk '$1 == "Debian" && $2 !~ /-/ { print $3; exit }')
rm -rf "$folder"
mkdir -p "$folder"
echo "chroot: $suite"
debootstrap --variant=minbase --include=python3,python3-pip "$suite" "$folder" "$mirror" >"$folder.log" 2>&1 || { tail -n 3 "$folder.log"; exit 1; }
: >"$folder.complete"
