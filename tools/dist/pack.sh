#!/bin/sh
# pack.sh FOLDER NAME FILE - FOLDER/NAME as the tarball FILE, whose bytes depend on the names, modes and contents in it alone. The time is
# that of npm's own tarballs: some tools do not like files of 1970.
set -eu
tar -C "$1" --sort=name --mtime=@499162500 --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r,go-w --format=ustar -cf - "$2" | gzip -9n >"$3"
echo "$3"
