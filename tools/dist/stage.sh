#!/bin/sh
# stage.sh TARGET FOLDER - puts what `make dist` has built for TARGET into FOLDER as it is installed below a prefix: bin, lib/lode,
# share. Licences and the list of parts (SBOM) are in share/doc/lode.
set -eu
cd "$(dirname "$0")/../.."
target=$1 out=$2
built=build/dist/$target/release
rm -rf "$out"
mkdir -p "$out/bin" "$out/lib/lode" "$out/share/lode/models" "$out/share/doc/lode/licences"
install -m 755 "$built/lode" "$out/bin/lode"
install -m 755 "$built/lode-parser" "$out/lib/lode/lode-parser"
install -m 644 models/code/code.model models/code/words.glossary "$out/share/lode/models/"
install -m 644 README.md CHANGELOG.md "$out/share/doc/lode/"
tools/dist/licences.sh "$target" "$out/share/doc/lode/licences"
tools/dist/sbom.sh "$target" >"$out/share/doc/lode/sbom.spdx.json"
# man pages and completions are the same for all targets; the program of this machine prints them
host=build/dist/$(uname -m)-linux-musl/release/lode
mkdir -p "$out/share/man/man1" "$out/share/bash-completion/completions" "$out/share/zsh/site-functions" "$out/share/fish/vendor_completions.d"
"$host" help --man >"$out/share/man/man1/lode.1"
"$host" help db --man >"$out/share/man/man1/lode-db.1"
"$host" help --completions bash >"$out/share/bash-completion/completions/lode"
"$host" help --completions zsh >"$out/share/zsh/site-functions/_lode"
"$host" help --completions fish >"$out/share/fish/vendor_completions.d/lode.fish"
