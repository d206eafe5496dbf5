#!/usr/bin/env python3
"""bench.py FOLDER PROGRAM RESULT - what the Python binding costs: the same calls from Python and from C (bench_binding) on one store of 20,000
records x 384; the difference is the binding's. Writes the table RESULT. With PREPARE=1 it only makes the store."""
import os
import platform
import subprocess
import sys
import time

import lode

try:
    import numpy
except ImportError:
    numpy = None
import random

RECORDS, DIM, MANY, CALLS, ROUNDS = 20000, 384, 1000, 2000, 7
folder, program, result = sys.argv[1:4]

if not os.path.exists(os.path.join(folder, "lode.db")):
    rnd = random.Random(3)
    with lode.connect(folder) as store:
        bench = store.collection("bench", create=True, metric="cosine")
        for start in range(0, RECORDS, 1000):
            ids = ["r%d" % i for i in range(start, start + 1000)]
            vectors = [[rnd.gauss(0, 1) for _ in range(DIM)] for _ in ids]
            bench.add(ids, ["document %s with some words in it" % id for id in ids], [{"n": i, "lang": "c"} for i in range(1000)], vectors)
        store.optimize()
if os.environ.get("PREPARE"):
    sys.exit(0)


def best(do, calls):
    least = 1e9
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for i in range(calls):
            do(i)
        least = min(least, (time.perf_counter() - start) / calls)
    return least


with lode.connect(folder, read_only=True) as store:
    bench = store.collection("bench")
    rows = bench.get(limit=MANY, include=("vector",))
    questions = numpy.array([r.vector for r in rows], dtype=numpy.float32) if numpy else [r.vector for r in rows]
    ours = {
        "count": best(lambda i: bench.count(), CALLS),
        "get": best(lambda i: bench.get(["r%d" % (i % MANY)], include=("document", "metadata")), CALLS),
        "query": best(lambda i: bench.query(questions[i % MANY], k=10, include=()), CALLS),
        "query_many": best(lambda i: bench.query_many(questions, k=10, include=()), 1),
    }
engine = dict(line.split() for line in subprocess.check_output([program, folder, str(CALLS)], text=True).splitlines())
names = {"count": "`count()`", "get": "`get([id])`, document and metadata", "query": "`query(vector, k=10)`",
         "query_many": "`query_many(1,000 vectors, k=10)`, for each vector"}
lines = ["# What the Python binding costs", "",
         "`make bench-python`: %s records x %d, Python %s%s; best of %d rounds. The same calls on the same store, from Python and from C." % (
             format(RECORDS, ","), DIM, platform.python_version(), " with numpy " + numpy.__version__ if numpy else " without numpy", ROUNDS), "",
         "| call | Python | C | the binding's share |", "|---|---|---|---|"]
for name, title in names.items():
    share = MANY if name == "query_many" else 1
    mine, its = ours[name] / share * 1e6, float(engine[name]) / share * 1e6
    lines.append("| %s | %.1f us | %.1f us | %.1f us |" % (title, mine, its, mine - its))
lines += ["", "The last row includes making %s rows of Python objects of the answers." % format(MANY * 10, ",")]
with open(result, "w") as file:
    file.write("\n".join(lines) + "\n")
print("\n".join(lines))
