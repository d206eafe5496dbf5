#!/bin/bash
# dist.sh OUT [CHROOT...] - what `make dist` has put into OUT, as a new user has it: sizes, sums, licences, what the files for all systems
# need; the tarball in a root folder that has nothing but a static busybox, and musl for the library; tarball, wheel and Debian package in
# each CHROOT (Debian, python3, no compiler, no libraries); npm's tarballs here. Files for macOS are looked at, not run.
# Needs root for chroot; mounts live in a namespace of their own and end with it.
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
out=$(cd "$1" && pwd)
shift
passed=0 failed=0 skipped=0
check() { # text command...
  local text=$1; shift
  if "$@" >"$tmp/log" 2>&1; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL: $text"; tail -n 20 "$tmp/log"; fi
}
skip() { echo "skipped: $*"; skipped=$((skipped + 1)); }
tmp=$(mktemp -d "${TMPDIR:-/tmp}/lode-dist-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
machine=$(uname -m)
version=$(sed -n 's/^#define LODE_VERSION_TEXT "\(.*\)"/\1/p' "$here/include/lode.h")
tarball=$out/lode-$version-linux-$machine.tar.gz
wheel=$(ls "$out/lodekit-$version"-*manylinux*"$machine".whl 2>/dev/null)
musl_wheel=$(ls "$out/lodekit-$version"-*musllinux*"$machine".whl 2>/dev/null)

# ---- The files themselves ----

[ ! -f "$out/SHA256SUMS" ] || check "SHA256SUMS" sh -c "cd '$out' && sha256sum -c SHA256SUMS"
budget=$here/tools/dist/budget.sh
for file in "$out"/*.whl "$out"/*.tgz "$out"/*.tar.gz "$out"/*.deb; do check "$(basename "$file") is within its budget" "$budget" packages "$file"; done
mkdir -p "$tmp/large/bin" "$tmp/large/lib/lode" "$tmp/large/share/lode/models" "$tmp/large/share/doc"
for file in bin/lode lib/lode/lode-parser share/lode/models/code.model share/doc/README.md; do echo small >"$tmp/large/$file"; done
echo small >"$tmp/large.so"
check "small parts are within their budgets" "$budget" parts "$tmp/large" "$tmp/large.so"
head -c 13100000 /dev/urandom >"$tmp/large/share/lode/models/code.model"
check "a model above its budget is refused" sh -c "! '$budget' parts '$tmp/large' '$tmp/large.so' 2>'$tmp/refusal' && grep -q 'models takes' '$tmp/refusal'"
head -c 25000001 /dev/zero >"$tmp/large.whl"
check "a package above its budget is refused" sh -c "! '$budget' packages '$tmp/large.whl' 2>'$tmp/refusal' && grep -q 'at most 25000000' '$tmp/refusal'"
rm -rf "$tmp"/large*
tar -xzf "$tarball" -C "$tmp"
tree=$tmp/lode-$version-linux-$machine
check "lode needs no library" sh -c "! readelf -d '$tree/bin/lode' | grep -q NEEDED"
check "lode-parser needs no library" sh -c "! readelf -d '$tree/lib/lode/lode-parser' | grep -q NEEDED"
check "no path of the build in the programs" sh -c "! grep -qa '$here' '$tree/bin/lode' '$tree/lib/lode/lode-parser'"
check "the SBOM is JSON" python3 -m json.tool "$tree/share/doc/lode/sbom.spdx.json"
for part in $("$here/tools/dist/parts.sh" "$machine-linux-musl" | cut -d' ' -f1) $("$here/tools/dist/grammar_packages.sh" | tr -d @ | tr / -); do
  check "the licence of $part" test -s "$tree/share/doc/lode/licences/$part.txt"
done
check "the SBOM has as many parts" sh -c "[ \$(grep -c '\"SPDXID\": \"SPDXRef-[a-z]' '$tree/share/doc/lode/sbom.spdx.json') -ge 46 ]"
check "the source that the LGPL wants beside the program" sh -c "tar -tzf '$out/lode-$version-libmicrohttpd.tar.gz' | grep -q libmicrohttpd/src/microhttpd/daemon.c"

# What is packed is of one state
packed() { # TREE
  mkdir -p "$1/tools" "$1/deps" && cp -r "$here/include" "$here/src" "$here/web" "$here/mk" "$1/" && cp -r "$here/tools/dist" "$1/tools/" &&
    cp -r "$here/deps/dist" "$here/deps/grammars" "$1/deps/" && "$1/tools/dist/sources.sh" >"$1/liblode.sources"
}
packs() { "$tmp/state/tools/dist/sources.sh" check "$tmp/state/liblode.sources"; }
check "a copy of the sources" packed "$tmp/state"
check "a library of these sources is packed" packs
echo 'int lode_added(void);' >>"$tmp/state/include/lode.h"
check "a library that is older than its header is refused" sh -c "! '$tmp/state/tools/dist/sources.sh' check '$tmp/state/liblode.sources' 2>'$tmp/refusal' && grep -q 'make dist builds it again' '$tmp/refusal'"
"$tmp/state/tools/dist/sources.sh" >"$tmp/state/liblode.sources"
check "one that was built again is packed" packs
rm "$tmp/state/liblode.sources"
check "one whose build did not end is refused" sh -c "! '$tmp/state/tools/dist/sources.sh' check '$tmp/state/liblode.sources' 2>/dev/null"

# Wheels: the metadata of today, and the library of the C library that the name tells; it has every function of today's header and no more
names() { # LIBRARY; zig's linker exports two names of its own from what is built for macOS
  case "$1" in *.dylib) "$llvm_nm" -g --defined-only "$1" | awk '{ sub(/^_/, "", $3); print $3 }' | grep -vxE '__dso_handle|_mh_dylib_header' ;; *) "$llvm_nm" -D --defined-only "$1" | awk '{ print $3 }' ;; esac | LC_ALL=C sort -u
}
llvm_nm=$(command -v llvm-nm || ls /usr/bin/llvm-nm-* 2>/dev/null | head -n 1)
"$here/tools/public-names.sh" >"$tmp/declared"
unpack() { mkdir -p "$2" && (cd "$2" && python3 -m zipfile -e "$1" .); }
for file in "$out"/*.whl; do
  unpack "$file" "$tmp/any"
  check "$(basename "$file"): metadata" sh -c "grep -qx 'Metadata-Version: 2.4' '$tmp'/any/*.dist-info/METADATA && grep -q '^License-Expression: .*Apache-2.0.*LGPL-2.1-or-later' '$tmp'/any/*.dist-info/METADATA"
  check "$(basename "$file"): every License-File is there" sh -c "cd '$tmp'/any/*.dist-info && sed -n 's/^License-File: //p' METADATA | while read -r f; do [ -s licenses/\$f ] || exit 1; done"
  check "$(basename "$file"): one library" test "$(ls "$tmp"/any/lode/liblode* | wc -l)" = 1
  names "$tmp"/any/lode/liblode* >"$tmp/exported"
  check "$(basename "$file"): it exports what lode.h declares" diff "$tmp/declared" "$tmp/exported"
  rm -rf "$tmp/any"
done
needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | tr '\n' ' '; }
if [ -n "$wheel" ]; then
  unpack "$wheel" "$tmp/wheel"
  library=$(ls "$tmp"/wheel/lode/liblode.so.*)
  newest=$(readelf -V "$library" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
  check "the library wants glibc 2.17, not $newest" sh -c "printf '%s\n' GLIBC_2.17 '$newest' | sort -V | tail -n 1 | grep -qx GLIBC_2.17"
  check "it needs glibc alone, not $(needed "$library")" sh -c "echo '$(needed "$library")' | tr ' ' '\n' | grep . | grep -vE '^(libc|libm|libpthread|libdl|ld-linux-[a-z0-9-]*)\.so\.[0-9]+$' && exit 1 || exit 0"
fi
if [ -n "$musl_wheel" ]; then
  unpack "$musl_wheel" "$tmp/musl"
  musl_library=$(ls "$tmp"/musl/lode/liblode.so.*)
  check "the musl wheel's library needs musl alone" test "$(needed "$musl_library")" = "libc.so "
  # What musl got after 1.1.24; its symbols have no versions
  check "it wants nothing that musl 1.1 has not" sh -c \
    "! readelf -W --dyn-syms '$musl_library' | awk '\$7 == \"UND\" { print \$8 }' | grep -xE 'statx|qsort_r|p(read|write)v2|reallocarray|gettid|_Fork|pthread_getname_np'"
fi

# ---- macOS: what can be said of the files without a Mac ----

dump=$(command -v llvm-objdump || ls /usr/bin/llvm-objdump-* 2>/dev/null | head -n 1)
for file in "$out"/lode-"$version"-macos-*.tar.gz; do
  [ -f "$file" ] || { skip "macOS: not built"; continue; }
  [ -n "$dump" ] || { skip "macOS: no llvm-objdump"; continue; }
  name=$(basename "$file" .tar.gz)
  cpu=${name##*-}
  tar -xzf "$file" -C "$tmp"
  unpack "$(ls "$out"/*macosx_11_0_"$([ "$cpu" = aarch64 ] && echo arm64 || echo x86_64)".whl)" "$tmp/mac-$cpu"
  for program in "$tmp/$name/bin/lode" "$tmp/$name/lib/lode/lode-parser" "$tmp/mac-$cpu"/lode/liblode.*.dylib; do
    check "$cpu: $(basename "$program") needs libSystem alone" sh -c \
      "'$dump' --macho --dylibs-used '$program' | grep compatibility | grep -v 'liblode.*dylib' | awk '{ print \$1 }' | sort -u >'$tmp/dylibs'; cat '$tmp/dylibs'; echo /usr/lib/libSystem.B.dylib | cmp - '$tmp/dylibs'"
    check "$cpu: $(basename "$program") is for macOS 11" sh -c "'$dump' --macho --private-headers '$program' | grep -qE '(minos|version) 11\.0'"
    check "$cpu: $(basename "$program") has no path of the build" sh -c "! grep -qa '$here' '$program'"
  done
  [ "$cpu" != aarch64 ] || check "arm64: the programs are signed, ad hoc" sh -c "'$dump' --macho --private-headers '$tmp/$name/bin/lode' | grep -q LC_CODE_SIGNATURE"
done

# ---- In other roots ----

# inside ROOT COMMAND: with /proc and /dev/null, no network; serving ROOT COMMAND: the same, but on this system's loopback
cat >"$tmp/inside.sh" <<'SH'
mount -t proc proc "$1/proc" && mount --bind /dev/null "$1/dev/null" && ip link set lo up 2>/dev/null
exec chroot "$1" /usr/bin/env -i PATH=/home/user/.local/bin:/bin:/usr/bin:/sbin:/usr/sbin HOME=/home/user sh -c "$2"
SH
inside() { unshare --mount --net --pid --fork sh "$tmp/inside.sh" "$1" "$2"; }
serving() { exec unshare --mount --pid --fork --kill-child=TERM sh "$tmp/inside.sh" "$1" "exec $2"; }

prepare() { # ROOT: a project and the artefacts
  mkdir -p "$1/proc" "$1/dev" "$1/tmp" "$1/home/user/project"
  : >>"$1/dev/null"
  (cd "$here" && git ls-files src/lib/base src/lib/os src/app/scan web bindings/python/lode | xargs cp --parents -t "$1/home/user/project")
  cp -r "$tree" "$1/home/user/unpacked"
}
try_deb() { # NAME ROOT
  cp "$out/lode_${version}_$(dpkg --print-architecture).deb" "$2/home/user/lode.deb"
  check "$1: dpkg -i" inside "$2" "dpkg -i /home/user/lode.deb"
  check "$1: the package's lode" inside "$2" "cd /home/user/project && /usr/bin/lode index && /usr/bin/lode search checksum | grep -q src/lib"
  check "$1: its files are as they were packed" inside "$2" "dpkg -V lode"
  check "$1: dpkg -r" inside "$2" "dpkg -r lode && [ ! -e /usr/bin/lode ]"
}
# Chroma's own client for Python, which test/shell/clients.sh has fetched, from this system against the server in ROOT
try_client() { # NAME ROOT
  local python=$here/build/clients/venv/bin/python server port=
  if [ ! -x "$python" ]; then skip "$1: Chroma's client is not in build/clients (test/shell/clients.sh)"; return; fi
  : >"$tmp/chroma.log"
  serving "$2" "lode serve --store /tmp/chroma --port 0" 2>"$tmp/chroma.log" >/dev/null &
  server=$!
  for _ in $(seq 60); do grep -q 'is ready' "$tmp/chroma.log" && break; sleep 1; done
  port=$(sed -n 's/.* at http:[^ ]*:\([0-9]*\)[,;].*/\1/p' "$tmp/chroma.log" | head -n 1)
  check "$1: Chroma's client ($(tail -n 1 "$tmp/chroma.log"))" "$python" "$here/test/clients/chroma.py" 127.0.0.1 "$port"
  kill -KILL "$server" # unshare ignores SIGTERM; the server gets one when it dies
  wait "$server" 2>/dev/null
}
try_tarball() { # NAME ROOT
  check "$1: install.sh without root's help" inside "$2" "/home/user/unpacked/install.sh"
  check "$1: --version" inside "$2" "lode --version"
  check "$1: index" inside "$2" "cd /home/user/project && lode index"
  check "$1: search by meaning" inside "$2" "cd /home/user/project && lode search 'turn a status into a text for the user' | grep -q src/lib"
  check "$1: doctor knows all grammars and the model" inside "$2" \
    "cd /home/user/project && lode doctor >/tmp/doctor && grep -q '36 of 36 languages' /tmp/doctor && grep -q 'code@1/256/static' /tmp/doctor"
  check "$1: serve answers" inside "$2" "cd /home/user && { lode serve --store served --port 18123 >/dev/null 2>/tmp/serve.log & } ;
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do grep -q 'is ready' /tmp/serve.log && break; sleep 1; done
    grep -q 'is ready' /tmp/serve.log"
  try_client "$1" "$2"
  check "$1: a crash report has names" inside "$2" "cd /home/user && { lode serve --store crashed --port 18124 >/dev/null 2>/tmp/crash.log & pid=\$!; } ;
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do grep -q 'is ready' /tmp/crash.log && break; sleep 1; done
    worker=\$(sed -n 's/.*worker \\([0-9]*\\) is ready.*/\\1/p' /tmp/crash.log | head -n 1)
    kill -SEGV \$worker; sleep 3; kill \$pid; cat crashed/crashes/*; grep -q 'lode(main+0x' crashed/crashes/*"
  check "$1: install.sh --uninstall" inside "$2" "/home/user/unpacked/install.sh --uninstall && [ ! -e .local/bin/lode ] && [ ! -e /home/user/.local/lib/lode ]"
}

# The library of the manylinux wheel with the root's own glibc
try_glibc() { # NAME ROOT
  local zig=$here/build/dist/src/zig/ziglang/zig
  if [ ! -x "$zig" ]; then skip "$1: a program for glibc: zig is not there"; return; fi
  cp "$library" "$2/home/user/$(basename "$library")"
  check "$1: a program for glibc 2.17" "$zig" cc -target "$machine-linux-gnu.2.17" -O2 -fno-sanitize=undefined -I"$here/include" -o "$2/home/user/glibc-notes" \
    "$here/examples/notes.c" "$library"
  check "$1: with $(inside "$2" "ldd --version" 2>/dev/null | sed -n '1s/.* //p') it adds and finds" inside "$2" "cd /home/user && LD_LIBRARY_PATH=. ./glibc-notes glibc.store"
}

# The library of the musl wheel, as a program that is linked with musl has it: Debian's package has the loader
try_musl() { # NAME ROOT
  local loader=/lib/ld-musl-$machine.so.1 zig=$here/build/dist/src/zig/ziglang/zig
  if [ ! -e "$loader" ] || [ ! -x "$zig" ] || [ -z "$musl_wheel" ]; then skip "$1: Debian's package musl, zig or the wheel are missing"; return; fi
  mkdir -p "$2/lib"
  cp -L "$loader" "$2/lib/"
  cp "$musl_library" "$2/lib/"
  check "$1: a program for it" "$zig" cc -target "$machine-linux-musl" -dynamic -O2 -fno-sanitize=undefined -I"$here/include" -o "$2/home/user/notes" "$here/examples/notes.c" "$musl_library"
  check "$1: it adds and finds" inside "$2" "cd /home/user && ./notes notes.store"
}

if [ "$(id -u)" != 0 ]; then
  skip "the other roots: they need root"
else
  busybox=$(command -v busybox || true)
  if [ -n "$busybox" ] && ! readelf -d "$busybox" 2>/dev/null | grep -q NEEDED; then
    root=$tmp/bare
    mkdir -p "$root/bin" "$root/usr/bin"
    cp "$busybox" "$root/bin/busybox"
    for name in $("$busybox" --list); do [ -e "$root/bin/$name" ] || ln -s busybox "$root/bin/$name"; done
    ln -sf /bin/busybox "$root/usr/bin/env"
    prepare "$root"
    try_tarball "nothing but busybox" "$root"
    try_musl "busybox and musl" "$root"
  else
    skip "the root with busybox alone: busybox-static is not installed"
  fi
  for base in "$@"; do
    name=$(basename "$base")
    root=$tmp/$name
    cp -a "$base" "$root"
    prepare "$root"
    try_tarball "$name" "$root"
    try_deb "$name" "$root"
    [ -n "$wheel" ] || { skip "$name: no wheel"; continue; }
    try_glibc "$name" "$root"
    cp "$wheel" "$root/home/user/"
    if ! inside "$root" "python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))'"; then
      check "$name: the wheel as an installer would lay it out" inside "$root" "cd /home/user && python3 -m zipfile -e *.whl unpacked-wheel &&
        cp -r unpacked-wheel/*.data/data wheel && cp -r unpacked-wheel/*.data/scripts wheel/bin && chmod +x wheel/bin/*"
      check "$name: its commands" inside "$root" "cd /home/user/project && /home/user/wheel/bin/lode search checksum | grep -q src/lib"
      skip "$name: the module: its Python is older than 3.9"
      continue
    fi
    check "$name: the wheel installs" inside "$root" \
      "python3 -m pip install --no-index --no-deps --target /home/user/wheel /home/user/*.whl 2>&1 || python3 -m zipfile -e /home/user/*.whl /home/user/wheel"
    check "$name: its commands" inside "$root" "cd /home/user/project && /home/user/wheel/bin/lode search checksum | grep -q src/lib"
    cat >"$root/home/user/use.py" <<'PY'
import subprocess, sys, tempfile, time
import lode, lode.chroma, lode.mempalace
folder = tempfile.mkdtemp()
def use(client):
    records = client.get_or_create_collection("some")
    records.add(ids=["a", "b"], embeddings=[[1, 0], [0, 1]], documents=["left", "right"])
    assert records.query(query_embeddings=[[1, .1]], n_results=1)["ids"] == [["a"]]
use(lode.chroma.PersistentClient(folder + "/one"))
server = subprocess.Popen(["/home/user/wheel/bin/lode", "serve", "--store", folder + "/two", "--port", "18200"], stderr=subprocess.PIPE)
while b"is ready" not in server.stderr.readline():
    pass
use(lode.chroma.HttpClient(host="127.0.0.1", port=18200))
server.terminate()
sys.exit(server.wait())
PY
    check "$name: the module, alone and against lode serve" inside "$root" "cd /home/user && PYTHONPATH=/home/user/wheel python3 use.py"
  done
fi

# ---- Debian packages ----

if command -v lintian >/dev/null; then
  for file in "$out"/*.deb; do check "lintian $(basename "$file")" lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$file"; done
else
  skip "lintian is not installed"
fi

# ---- npm ----

package=$out/lodekit-linux-$([ "$machine" = aarch64 ] && echo arm64 || echo x64)-$version.tgz
if command -v npm >/dev/null && [ -f "$package" ]; then
  mkdir "$tmp/npm"
  check "npm install" sh -c "cd '$tmp/npm' && npm init -y && npm install --offline --no-audit --no-fund '$package' '$out/lodekit-$version.tgz'"
  run=$tmp/npm/node_modules/.bin/lode
  check "lode by npm" sh -c "'$run' --version | grep -q '$version'"
  check "exit codes pass through" sh -c "'$run' nosuch; [ \$? = 2 ]"
  check "standard input passes through" sh -c "printf 'some text\n' | '$run' embed --model code | grep -q '[0-9]'"
  check "signals pass through" bash -c "'$run' serve --store '$tmp/served' --port 0 2>'$tmp/npm.log' & pid=\$!
    for i in \$(seq 60); do grep -q 'is ready' '$tmp/npm.log' && break; sleep 1; done; kill -TERM \$pid; wait \$pid && grep -q SIGTERM '$tmp/npm.log'"
  # npx, as the configuration of an agent has it
  check "npx" sh -c "cd '$tmp/npm' && npx --no-install lode --version | grep -q '$version'"
  check "exit codes through npx" sh -c "cd '$tmp/npm' && npx --no-install lode nosuch; [ \$? = 2 ]"
  check "an agent talks through npx" sh -c "cd '$tmp/npm' && echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}' | npx --no-install lode mcp | grep -q '\"result\"'"
  check "SIGTERM ends what npx started" bash -c "cd '$tmp/npm' || exit 1; npx --no-install lode serve --store '$tmp/served' --port 0 2>'$tmp/npx.log' & pid=\$!
    for i in \$(seq 60); do grep -q 'is ready' '$tmp/npx.log' && break; sleep 1; done; kill -TERM \$pid
    for i in \$(seq 60); do grep -q 'stopping (SIGTERM)' '$tmp/npx.log' && exit 0; sleep 1; done; cat '$tmp/npx.log'; exit 1"
else
  skip "npm, or its packages, are not there"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
