#!/bin/sh
# make-chroma-seeds.sh - seeds of the targets pickle, hnsw and chroma, from test/fixtures/chroma. Needs xz and the sqlite3 shell.
set -eu
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p fuzz/seeds/pickle fuzz/seeds/hnsw fuzz/seeds/chroma
for version in 0.6.3 1.5.9; do
  mkdir "$tmp/$version"
  tar -C "$tmp/$version" -xJf "test/fixtures/chroma/chroma-$version.tar.xz"
  pickle=$(ls "$tmp/$version"/chroma/*/index_metadata.pickle | head -1)
  cp "$pickle" "fuzz/seeds/pickle/$version"
  { printf '\004\020'; cat "$(dirname "$pickle")/header.bin"; head -c 4992 "$(dirname "$pickle")/data_level0.bin"; } >"fuzz/seeds/hnsw/$version"
  # the same tables with small pages and few rows
  db=$tmp/$version/chroma/chroma.sqlite3
  sqlite3 "$db" "delete from migrations; delete from embeddings_queue where seq_id % 5; delete from embeddings where id % 6; \
    delete from embedding_metadata where id % 6; drop table embedding_fulltext_search"
  sqlite3 "$db" "update collections set schema_str=null" 2>/dev/null || true # older ones have no such column
  sqlite3 "$db" "pragma page_size=1024; vacuum"
  { printf '\000\000'; cat "$db"; } >"fuzz/seeds/chroma/$version"
done
# a log and a journal beside it
db=$tmp/0.6.3/chroma/chroma.sqlite3
cp "$db" "$tmp/before.db"
sqlite3 "$db" "pragma journal_mode=wal; pragma wal_autocheckpoint=0; update embeddings set seq_id=7 where id < 20;" ".shell cp $db-wal $tmp/wal; cp $db $tmp/main.db" >/dev/null
n=$(stat -c %s "$tmp/wal")
{ printf "\\$(printf %o $((n % 256)))\\$(printf %o $((n / 256 + 128)))"; cat "$tmp/wal" "$tmp/main.db"; } >fuzz/seeds/chroma/wal
ls -l fuzz/seeds/pickle fuzz/seeds/hnsw fuzz/seeds/chroma
