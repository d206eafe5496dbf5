#!/bin/sh
# deps.sh - installs the Debian packages that are missing, and says which. Usage: deps.sh PACKAGE...
set -eu

missing=
for package in "$@"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
  # what a build of Lode needs, by the names of other systems
  for try in "dnf install gcc make pkgconf sqlite-devel pcre2-devel utf8proc-devel libcurl-devel libmicrohttpd-devel npm" \
    "zypper install gcc make pkgconf sqlite3-devel pcre2-devel utf8proc-devel libcurl-devel libmicrohttpd-devel npm" \
    "pacman -S base-devel sqlite pcre2 libutf8proc curl libmicrohttpd npm" \
    "brew install sqlite pcre2 utf8proc curl libmicrohttpd pkgconf node"; do
    ! command -v "${try%% *}" >/dev/null 2>&1 || { echo "deps: this is not Debian; to build Lode here: $try" >&2; exit 1; }
  done
  echo "deps: this is not a Debian-like system; install these by its own means, or use the self-contained package (docs/PLATFORMS.md):$missing" >&2
  exit 1
fi
if [ "$(id -u)" = 0 ]; then
  as_root=
elif command -v sudo >/dev/null 2>&1; then
  as_root=sudo
else
  echo "deps: these Debian packages are missing, and installing them needs root or sudo:$missing" >&2
  echo "deps: as root: apt-get install$missing" >&2
  exit 1
fi

echo "deps: installing$missing"
export DEBIAN_FRONTEND=noninteractive
# The lists of a fresh machine are empty or old: try as it is first, then with new ones.
# shellcheck disable=SC2086
$as_root apt-get install -y --no-install-recommends $missing >/dev/null 2>&1 || {
  $as_root apt-get update -qq
  $as_root apt-get install -y --no-install-recommends $missing >/dev/null
}
echo "deps: done"
