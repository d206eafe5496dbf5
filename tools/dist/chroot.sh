#!/bin/sh
# chroot.sh SUITE FOLDER - the smallest Debian or Ubuntu SUITE with python3 in FOLDER, once: no compiler, none of Lode's libraries
set -eu
suite=$1 folder=$2
[ ! -f "$folder.complete" ] || exit 0
[ "$(id -u)" = 0 ] || { echo "chroot: skipped, it needs root"; exit 0; }
rm -rf "$folder"
mkdir -p "$folder"
echo "chroot: $suite"
log=$folder.log
case "$suite" in
  xenial)
    # Debian has no package of Ubuntu's keys
    mirror=http://archive.ubuntu.com/ubuntu
    keys=$folder.keys
    mkdir -p "$keys"
    curl -fsS -o "$keys/keys.deb" "$mirror/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb" &&
      echo "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8  $keys/keys.deb" | sha256sum -c --quiet && dpkg-deb -x "$keys/keys.deb" "$keys" ||
      { echo "chroot: Ubuntu's keys cannot be had"; exit 1; }
    debootstrap --variant=minbase --include=python3 --keyring="$keys/usr/share/keyrings/ubuntu-archive-keyring.gpg" "$suite" "$folder" "$mirror" >"$log" 2>&1
    ;;
  *)
    # shellcheck disable=SC2016
    mirror=$(apt-get indextargets --format '$(ORIGIN) $(RELEASE) $(SITE)' 2>/dev/null | awk '$1 == "Debian" && $2 !~ /-/ { print $3; exit }')
    debootstrap --variant=minbase --include=python3,python3-pip "$suite" "$folder" "$mirror" >"$log" 2>&1
    ;;
esac || { tail -n 3 "$log"; exit 1; }
: >"$folder.complete"
