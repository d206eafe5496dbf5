#!/bin/sh
# make.sh TOOLS WORK [REVISION] - the model for code from nothing: fetch, mine, count words, pack, start, train, export.
#
# TOOLS is where `make train-tools` put the programs, WORK a folder with about 10 GB of room. Every step leaves a file and is
# left out when its file is there, so that an interrupted run goes on where it stopped. Ends with WORK/code.model and
# WORK/held-out.tsv (for LODE_PAIRS of `make bench-quality`). The model minilm must be installed.
set -eu
tools=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
revision=${3:-local}
mkdir -p "$2/pairs"
cd "$2"

[ -e fetched ] || { "$here/fetch.sh" . && : >fetched; }

unpack() {
  case $1 in
    *.deb) dpkg-deb --fsys-tarfile "$1" ;;
    *.gz | *.tgz) gzip -dc "$1" ;;
    *.xz) xz -dc "$1" ;;
    *.bz2) bzip2 -dc "$1" ;;
    *.zst) zstd -dcq "$1" ;;
  esac 2>/dev/null
}
for file in deb/*.deb src/*.tar.* npm/*.tgz; do
  name=$(basename "$file")
  package=${name%%_*}
  package=${package%-[0-9]*.tgz}
  [ ! -e "$file" ] || [ -e "pairs/$name.tsv" ] || {
    unpack "$file" | "$tools/mine" "$package" >"pairs/$name.tmp"
    mv "pairs/$name.tmp" "pairs/$name.tsv"
  }
done

all() { find pairs -name '*.tsv' | LC_ALL=C sort | xargs cat; }
[ -e vocab.tsv ] || { all | "$tools/vocab" 48000 >vocab.tmp && mv vocab.tmp vocab.tsv; }
[ -e pairs.pack ] || { all | "$tools/pack" vocab.tsv pairs.tmp held-out.tsv && mv pairs.tmp pairs.pack; }
[ -e start ] || "$tools/start" vocab.tsv start
[ -e table ] || cp start table
"$tools/train" pairs.pack vocab.tsv table epochs=3 until=2 batch=1024 rate=0.06
"$tools/train" pairs.pack vocab.tsv table epochs=3 batch=1024 rate=0.12 package=1
"$tools/export" start vocab.tsv distilled distilled.model
"$tools/export" table vocab.tsv "$revision" code.model
