#!/bin/sh
# install.sh [PREFIX] - installs this copy of lode for one user: into ~/.local, or into PREFIX. Needs no root, writes nothing elsewhere.
# install.sh --uninstall [PREFIX] removes it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
remove=
[ "${1:-}" != --uninstall ] || { remove=1; shift; }
prefix=${1:-${HOME:?HOME is not set: name a PREFIX}/.local}
case "$prefix" in /*) ;; *) echo "install.sh: PREFIX is an absolute path, not $prefix" >&2; exit 2 ;; esac

cd "$here"
files=$(find bin lib share -type f)
if [ -n "$remove" ]; then
  for file in $files; do rm -f "$prefix/$file"; done
  rmdir "$prefix/lib/lode" "$prefix/share/lode/models" "$prefix/share/lode" "$prefix/share/doc/lode/licences" "$prefix/share/doc/lode" 2>/dev/null || :
  echo "lode is removed from $prefix"
  exit 0
fi
sums=true # where neither program is, nothing is compared
if command -v sha256sum >/dev/null 2>&1; then sums=sha256sum; elif command -v shasum >/dev/null 2>&1; then sums="shasum -a 256"; fi
$sums -c SHA256SUMS >/dev/null 2>&1 || {
  echo "install.sh: a file is not as it was packed (SHA256SUMS)" >&2
  exit 1
}
for file in $files; do
  mkdir -p "$prefix/${file%/*}"
  cp "$file" "$prefix/$file.new"
  mv "$prefix/$file.new" "$prefix/$file" # a running lode keeps the file that it has
done
chmod 755 "$prefix/bin/lode" "$prefix/lib/lode/lode-parser"
echo "installed: $prefix/bin/lode, $("$prefix/bin/lode" --version)"
case ":$PATH:" in *":$prefix/bin:"*) ;; *) echo "add $prefix/bin to PATH" ;; esac
