#!/usr/bin/env python3
"""bench.py FOLDER PROGRAM RESULT - what the Python binding costs: the same calls from Python and from C (bench_binding) on the same stores; the
difference is the binding's. In a store of 10 records x 8 the engine's share is small enough to see it. Writes the table RESULT. With
PREPARE=1 it only makes the stores."""
import os
import platform
import random
import subprocess
import sys
import time
from typing import NamedTuple

import lode

try:
    import numpy
except ImportError:
    numpy = None

MANY = 1000  # questions of query_many
folder, program, result = sys.argv[1:4]


class Scale(NamedTuple):
    folder: str
    records: int
    dimension: int
    calls: int  # in a round
    rounds: int

    def __str__(self):
        return "%s x %d" % (format(self.records, ","), self.dimension)


SMALL = Scale(os.path.join(folder, "small"), 10, 8, 50, 1000)
LARGE = Scale(os.path.join(folder, "large"), 20000, 384, 50, 10)


def prepare(scale):
    if os.path.exists(os.path.join(scale.folder, "lode.db")):
        return
    rnd = random.Random(3)
    with lode.connect(scale.folder) as store:
        bench = store.collection("bench", create=True, metric="cosine")
        for start in range(0, scale.records, 1000):
            ids = ["r%d" % i for i in range(start, min(start + 1000, scale.records))]
            bench.add(ids, ["document %s with some words in it" % id for id in ids], [{"n": i, "lang": "c"} for i in range(len(ids))],
                      [[rnd.gauss(0, 1) for _ in range(scale.dimension)] for _ in ids])
        store.optimize()


def seconds(do, calls, rounds):
    least = 1e9
    for _ in range(rounds):
        start = time.process_time()
        for i in range(calls):
            do(i)
        least = min(least, (time.process_time() - start) / calls)
    return least


def from_python(scale, names):
    with lode.connect(scale.folder, read_only=True) as store:
        bench = store.collection("bench")
        questions = [row.vector for row in bench.get(limit=MANY, include=("vector",))]
        n = len(questions)
        if numpy:
            questions = numpy.array(questions)
        calls = {
            "count": lambda i: bench.count(),
            "get": lambda i: bench.get(["r%d" % (i % n)]),
            "query": lambda i: bench.query(questions[i % n], k=10, include=()),
            "query_parts": lambda i: bench.query(questions[i % n], k=10),
            "query_many": lambda i: bench.query_many(questions, k=10, include=()),
        }
        return {name: seconds(calls[name], 1 if name == "query_many" else scale.calls, scale.rounds) for name in names}


def from_c(scale):
    out = subprocess.check_output([program, scale.folder, str(scale.calls), str(scale.rounds)], text=True)
    return {name: float(value) for name, value in map(str.split, out.splitlines())}


ROWS = [(SMALL, "count", "`count()`"), (SMALL, "get", "`get([id])`, document and metadata"),
        (SMALL, "query", "`query(vector, k=10)`, ids and distances"), (SMALL, "query_parts", "`query(vector, k=10)`, document and metadata"),
        (LARGE, "query_many", "`query_many(1,000 vectors, k=10)`, for each vector")]

for scale in (SMALL, LARGE):
    prepare(scale)
if os.environ.get("PREPARE"):
    sys.exit(0)
lines = ["# What the Python binding costs", "",
         "`make bench-python`, Python %s%s. The same calls on the same stores, from Python and from C, in time of CPU: the best of %s rounds of %d calls (%s) and of "
         "%d rounds (%s)." % (platform.python_version(), " with numpy " + numpy.__version__ if numpy else " without numpy", format(SMALL.rounds, ","),
                              SMALL.calls, SMALL, LARGE.rounds, LARGE), "",
         "| records | call | Python | C | the binding's share |", "|---|---|---|---|---|"]
for scale in (SMALL, LARGE):
    ours, engine = from_python(scale, [name for at, name, _ in ROWS if at is scale]), from_c(scale)
    for at, name, title in ROWS:
        if at is scale:
            share = MANY if name == "query_many" else 1
            mine, its = ours[name] / share * 1e6, engine[name] / share * 1e6
            lines.append("| %s | %s | %.1f us | %.1f us | %.1f us |" % (scale, title, mine, its, mine - its))
lines += ["", "The last row includes making %s rows of Python objects of the answers." % format(MANY * 10, ",")]
with open(result, "w") as file:
    file.write("\n".join(lines) + "\n")
print("\n".join(lines))
