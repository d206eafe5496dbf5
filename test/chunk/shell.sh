#!/bin/sh
# backup.sh - copies a folder, keeps the last seven.
set -eu

SOURCE=${1:-/srv/data}
TARGET=/var/backups
KEEP=7

# Says it and leaves.
die() {
  echo "backup: $1" >&2
  exit 1
}

function rotate {
  ls -1t "$TARGET" | tail -n +$((KEEP + 1)) | while read -r old; do
    rm -rf "${TARGET:?}/$old"
  done
}

copy() {
  stamp=$(date +%Y%m%d)
  mkdir -p "$TARGET/$stamp" || die "cannot write to $TARGET"
  cp -a "$SOURCE/." "$TARGET/$stamp/"
}

[ -d "$SOURCE" ] || die "no such folder: $SOURCE"
copy
rotate
echo "done"
