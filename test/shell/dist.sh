#!/bin/bash
# dist.sh OUT [CHROOT...] - what `make dist` has put into OUT, as a new user has it: sizes and sums; the tarball in a root folder that has
# nothing but a static busybox; wheel and tarball in each CHROOT (Debian, python3, no compiler, no libraries), and npm's tarballs here.
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
wheel=$(ls "$out/lodekit-$version"-*"$machine".whl 2>/dev/null)

# ---- The files themselves ----

[ ! -f "$out/SHA256SUMS" ] || check "SHA256SUMS" sh -c "cd '$out' && sha256sum -c SHA256SUMS"
for file in "$out"/*.whl "$out"/*.tgz "$out"/*.tar.gz; do
  check "$(basename "$file") has at most 25 MB" test "$(stat -c %s "$file")" -le 25000000
done
tar -xzf "$tarball" -C "$tmp"
tree=$tmp/lode-$version-linux-$machine
check "lode needs no library" sh -c "! readelf -d '$tree/bin/lode' | grep -q NEEDED"
check "lode-parser needs no library" sh -c "! readelf -d '$tree/lib/lode/lode-parser' | grep -q NEEDED"
check "no path of the build in the programs" sh -c "! grep -qa '$here' '$tree/bin/lode' '$tree/lib/lode/lode-parser'"
check "the SBOM is JSON" python3 -m json.tool "$tree/share/doc/lode/sbom.spdx.json"
for part in $(awk '/^(crate|debian)/ { print $5 }' "$here/deps/dist/sources.txt"); do
  check "the licence of $part" test -s "$tree/share/doc/lode/licences/$part.txt"
done
if [ -n "$wheel" ]; then
  mkdir "$tmp/wheel"
  (cd "$tmp/wheel" && python3 -m zipfile -e "$wheel" .)
  library=$(ls "$tmp"/wheel/lode/liblode.so.*)
  newest=$(readelf -V "$library" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
  check "the library wants glibc 2.17, not $newest" sh -c "printf '%s\n' GLIBC_2.17 '$newest' | sort -V | tail -n 1 | grep -qx GLIBC_2.17"
  check "it exports lode_ alone" sh -c "! nm -D --defined-only '$library' | grep -v ' lode_'"
fi

# ---- In other roots ----

# inside ROOT COMMAND: with /proc and /dev/null, no network
cat >"$tmp/inside.sh" <<'SH'
mount -t proc proc "$1/proc" && mount --bind /dev/null "$1/dev/null" && ip link set lo up 2>/dev/null
exec chroot "$1" /usr/bin/env -i PATH=/home/user/.local/bin:/bin:/usr/bin HOME=/home/user sh -c "$2"
SH
inside() { unshare --mount --net --pid --fork sh "$tmp/inside.sh" "$1" "$2"; }

prepare() { # ROOT: a project and the artefacts
  mkdir -p "$1/proc" "$1/dev" "$1/tmp" "$1/home/user/project"
  : >>"$1/dev/null"
  (cd "$here" && git ls-files src/lib/base src/lib/os src/app/scan web bindings/python/lode | xargs cp --parents -t "$1/home/user/project")
  cp -r "$tree" "$1/home/user/unpacked"
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
  check "$1: a crash report has names" inside "$2" "cd /home/user && { lode serve --store crashed --port 18124 >/dev/null 2>/tmp/crash.log & pid=\$!; } ;
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do grep -q 'is ready' /tmp/crash.log && break; sleep 1; done
    worker=\$(sed -n 's/.*worker \\([0-9]*\\) is ready.*/\\1/p' /tmp/crash.log | head -n 1)
    kill -SEGV \$worker; sleep 3; kill \$pid; cat crashed/crashes/*; grep -q 'lode(crash_handler+0x' crashed/crashes/*"
  check "$1: install.sh --uninstall" inside "$2" "/home/user/unpacked/install.sh --uninstall && [ ! -e .local/bin/lode ] && [ ! -e /home/user/.local/lib/lode ]"
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
  else
    skip "the root with busybox alone: busybox-static is not installed"
  fi
  for base in "$@"; do
    name=$(basename "$base")
    root=$tmp/$name
    cp -a "$base" "$root"
    prepare "$root"
    try_tarball "$name" "$root"
    [ -n "$wheel" ] || { skip "$name: no wheel"; continue; }
    cp "$wheel" "$root/home/user/"
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
else
  skip "npm, or its packages, are not there"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
