#!/bin/bash
# install.sh - `make install` into an empty folder, then a program built with what pkg-config says.
set -u
cd "$(dirname "$0")/../.." || exit 1
passed=0 failed=0
check() { # text command...
  local text=$1; shift
  if "$@" >"$tmp/log" 2>&1; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "failed: $text"; cat "$tmp/log"; fi
}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
check "make install" make --no-print-directory install DESTDIR="$tmp/tree" PREFIX=/opt/lode
root=$tmp/tree/opt/lode
for f in bin/lode include/lode.h lib/liblode.a lib/liblode.so lib/pkgconfig/lode.pc share/man/man1/lode.1 \
  share/bash-completion/completions/lode share/zsh/site-functions/_lode share/fish/vendor_completions.d/lode.fish share/lode/models/code.model share/lode/models/words.glossary; do
  check "$f is installed" test -s "$root/$f"
done
sed -i "s|^prefix=.*|prefix=$root|" "$root/lib/pkgconfig/lode.pc"
cat >"$tmp/use.c" <<'C'
#include <lode.h>
#include <stdio.h>
int main(int argc, char **argv) {
  lode_store *store;
  lode_error err;
  lode_open_options o = {.create = true};
  if (argc < 2 || lode_open(argv[1], &o, &store, &err) != LODE_OK) return 1;
  lode_close(store);
  return puts(lode_version()) < 0;
}
C
export PKG_CONFIG_PATH=$root/lib/pkgconfig
check "a program builds against it" sh -c "cc -o $tmp/use $tmp/use.c \$(pkg-config --cflags --libs lode)"
check "and runs" env LD_LIBRARY_PATH="$root/lib" "$tmp/use" "$tmp/store"
check "the static library is enough" sh -c "cc -o $tmp/use-static $tmp/use.c \$(pkg-config --cflags lode) $root/lib/liblode.a \$(pkg-config --libs sqlite3 libpcre2-8 libutf8proc) -lpthread -lm -ldl"
check "and runs, too" "$tmp/use-static" "$tmp/store"
check "the store's folder is private" sh -c "[ \$(stat -c %a $tmp/store) = 700 ]"
check "bash completion parses" bash -n "$root/share/bash-completion/completions/lode"
check "the program runs" "$root/bin/lode" --version
mkdir -p "$tmp/project" "$tmp/home"
echo 'int count_the_sheep(int n) { return n; }' >"$tmp/project/sheep.c"
installed() { env -u LODE_MODELS -u LODE_PARSER HOME="$tmp/home" XDG_DATA_HOME="$tmp/home/data" "$root/bin/lode" "$@"; }
check "it finds its model" installed model verify code
cp models/code/code.model "$root/share/lode/models/minilm.pack" # any file: it is looked for, and is none
check "models are looked for below the prefix" sh -c "env -u LODE_MODELS HOME=$tmp/home $root/bin/lode embed --model minilm x 2>&1 | grep -q /opt/lode/bin/../share/lode/models"
rm "$root/share/lode/models/minilm.pack"
check "it indexes" installed index "$tmp/project"
check "it searches by meaning" sh -c "HOME=$tmp/home $root/bin/lode search 'how many sheep' --mode vector --project $tmp/project | grep -q sheep.c"
check "it finds the model for code beside itself" env -u LODE_MODELS HOME="$tmp" "$root/bin/lode" embed --model code "read a file"
check "make install LIBDIR=" make --no-print-directory install DESTDIR="$tmp/multi" PREFIX=/usr LIBDIR=/usr/lib/a-machine
check "the library is in LIBDIR" test -s "$tmp/multi/usr/lib/a-machine/liblode.a" -a -s "$tmp/multi/usr/lib/a-machine/pkgconfig/lode.pc"
check "lode.pc names it" grep -q '^libdir=${prefix}/lib/a-machine$' "$tmp/multi/usr/lib/a-machine/pkgconfig/lode.pc"
check "and make uninstall" make --no-print-directory uninstall DESTDIR="$tmp/multi" PREFIX=/usr LIBDIR=/usr/lib/a-machine
check "leaves nothing there" sh -c "[ -z \"\$(find $tmp/multi -type f)\" ]"
check "make uninstall" make --no-print-directory uninstall DESTDIR="$tmp/tree" PREFIX=/opt/lode
check "nothing is left" sh -c "[ -z \"\$(find $root -type f)\" ]"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
