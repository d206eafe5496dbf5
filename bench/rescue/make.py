#!/usr/bin/env python3
"""make.py FIXTURE DIR RECORDS - a large Chroma directory, made by hand after the format of chromadb 1.5.9, for the bench of `lode rescue`.

The schema is that of FIXTURE (test/fixtures/chroma/chroma-1.5.9.tar.xz); one cosine collection of 384 numbers, a document of 60 words and six
values of metadata a record, as MemPalace keeps them; all vectors in the index, the queue purged. Needs nothing but Python."""
import array
import math
import os
import random
import sqlite3
import struct
import sys
import tarfile

DIM, M = 384, 16
fixture, out, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
rnd = random.Random(1)
os.makedirs(out)
with tarfile.open(fixture) as tar:
    member = tar.getmember("chroma/chroma.sqlite3")
    member.name = "chroma.sqlite3"
    tar.extract(member, out)
db = sqlite3.connect(os.path.join(out, "chroma.sqlite3"))
db.execute("pragma synchronous=off")
(collection,), = db.execute("select id from collections where name = 'by-cosine'")
segments = {scope: id for id, scope in db.execute("select id, scope from segments where collection = ?", (collection,))}
for table in ("embeddings", "embedding_metadata", "embedding_metadata_array", "embeddings_queue", "embedding_fulltext_search"):
    db.execute("delete from %s" % table)
db.execute("delete from segments where collection <> ?", (collection,))
db.execute("delete from collection_metadata where collection_id <> ?", (collection,))
db.execute("delete from collections where id <> ?", (collection,))
db.execute("update collections set name = 'mempalace_drawers', dimension = ?", (DIM,))
db.execute("delete from max_seq_id")
db.executemany("insert into max_seq_id(segment_id, seq_id) values (?, ?)", [(id, n) for id in segments.values()])

words = ["".join(rnd.choices("abcdefghijklmnopqrstuvwxyz", k=rnd.randint(3, 9))) for _ in range(5000)]


def rows():
    for i in range(1, n + 1):
        yield i, segments["METADATA"], "drawer_%06d" % i, i


def values():
    for i in range(1, n + 1):
        yield i, "chroma:document", " ".join(rnd.choices(words, k=60)), None
        yield i, "wing", "wing%d" % (i % 7), None
        yield i, "room", "room%d" % (i % 83), None
        yield i, "source_file", "/home/u/src/%d.md" % (i // 10), None
        yield i, "chunk_index", None, i % 10
        yield i, "added_by", "mempalace", None
        yield i, "filed_at", "2026-01-%02dT00:00:00" % (i % 28 + 1), None


db.executemany("insert into embeddings(id, segment_id, embedding_id, seq_id) values (?, ?, ?, ?)", rows())
db.executemany("insert into embedding_metadata(id, key, string_value, int_value) values (?, ?, ?, ?)", values())
db.commit()
db.close()

folder = os.path.join(out, segments["VECTOR"])
os.makedirs(folder)
size = 4 + 2 * M * 4 + DIM * 4 + 8
with open(os.path.join(folder, "header.bin"), "wb") as file:
    file.write(struct.pack("<iQQQQQQiIQQQdQ", 1, 0, n, n, size, size - 8, 4 + 2 * M * 4, 0, 0, M, 2 * M, M, 1 / math.log(M), 100))
links = struct.pack("<I", 2 * M) + bytes(2 * M * 4)
with open(os.path.join(folder, "data_level0.bin"), "wb") as data, open(os.path.join(folder, "length.bin"), "wb") as lengths:
    pool = [array.array("f", (rnd.gauss(0, 1) for _ in range(DIM))) for _ in range(500)]
    for label in range(1, n + 1):
        vector = array.array("f", pool[label % 500])
        vector[label % DIM] += label / n  # all of them differ
        norm = math.sqrt(math.sumprod(vector, vector) if hasattr(math, "sumprod") else sum(x * x for x in vector))
        data.write(links + array.array("f", (x / norm for x in vector)).tobytes() + struct.pack("<Q", label))
        lengths.write(struct.pack("<f", norm))
with open(os.path.join(folder, "link_lists.bin"), "wb") as file:
    file.write(bytes(4 * n))


def key(text):
    return b"X" + struct.pack("<I", len(text)) + text.encode()


with open(os.path.join(folder, "index_metadata.pickle"), "wb") as file:
    file.write(b"\x80\x03}(" + key("id_to_label") + b"}(")
    file.write(b"".join(key("drawer_%06d" % i) + b"J" + struct.pack("<i", i) for i in range(1, n + 1)))
    file.write(b"u" + key("label_to_id") + b"}(")
    file.write(b"".join(b"J" + struct.pack("<i", i) + key("drawer_%06d" % i) for i in range(1, n + 1)))
    file.write(b"uu.")
