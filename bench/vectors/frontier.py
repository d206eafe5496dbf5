"""frontier.py - the index alone beside the fastest libraries, runs in turn: make bench-frontier.

  frontier.py --bench PROGRAM [--old PROGRAM] --data FOLDER --cache FOLDER [--peers symqg,faiss] [--k 10,100]
              [--rounds N] [--queries N] SET...

PROGRAM is bench_index of this version, OLD of another one (with a cache of its own: FOLDER.old). SET is a file of
make-data.mjs without its ".bin". In each round everyone answers all queries, one call for all of them where the library
has one (Lode: query by query), on one thread, and reports the recall and the speed of each of its efforts. Speeds at a
recall are interpolated between efforts, the best of all rounds, by processor time. Indexes are built once, on two threads, and kept in the
cache. Bytes a vector: Lode's are those in memory (codes, links, records; float vectors stay in the file, if they are
read at all), the peers' the size of their index, which is all in memory.
"""

import argparse
import os
import subprocess
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--bench")
parser.add_argument("--old")
parser.add_argument("--data", required=True)
parser.add_argument("--cache", required=True)
parser.add_argument("--peers", default="symqg,faiss")
parser.add_argument("--k", default="10")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--queries", type=int, default=1000)
parser.add_argument("--answer", help="(internal) the peer whose queries are run in this process")
parser.add_argument("sets", nargs="+")
args = parser.parse_args()
PASSES = 3  # over all queries in a round, at each effort; the best counts, by processor time
EFFORTS = [10, 12, 16, 20, 24, 32, 48, 64, 100, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048]


# ---- A peer, in a process of its own

class Data:
    def __init__(self, name):
        import numpy as np
        self.path = os.path.join(args.data, name + ".bin")
        n, n_queries, self.dim, self.cosine = (int(x) for x in np.fromfile(self.path, dtype=np.uint32, count=4))
        both = np.memmap(self.path, dtype=np.float32, mode="r", offset=16, shape=(n + n_queries, self.dim))
        self.rows, self.queries = np.array(both[:n]), np.array(both[n : n + min(args.queries, n_queries)])
        if self.cosine:
            for x in (self.rows, self.queries):
                x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-30)
        self.n = n

    def truth(self, name, k):
        """The distance of the k-th nearest of each query."""
        import numpy as np
        path = os.path.join(args.cache, f"{name}.{len(self.queries)}.{k}.npy")
        if not os.path.exists(path):
            import faiss
            faiss.omp_set_num_threads(1)
            index = faiss.IndexFlatL2(self.dim)
            index.add(self.rows)
            np.save(path, index.search(self.queries, k)[0][:, -1])
        return np.load(path)

    def recall(self, found, k, bounds):
        import numpy as np
        hits = 0
        for q, ids in enumerate(np.asarray(found).astype(np.int64)):
            d = ((self.rows[ids[ids >= 0]] - self.queries[q]) ** 2).sum(axis=1)
            hits += int((d <= bounds[q] + 1e-5 * (1 + abs(bounds[q]))).sum())
        return hits / (len(self.queries) * k)


def symqg(data, name):
    """SymphonyQG; the vectors raw in each node, as its authors recommend for speed."""
    import rabitqlib
    path = os.path.join(args.cache, name + ".symqg")
    if not os.path.exists(path):
        index = rabitqlib.SymqgIndex(data.dim, 32, "l2", 0)
        begin = time.perf_counter()
        index.build(data.rows, 200, num_threads=2)
        print(f"built {time.perf_counter() - begin:.1f}", flush=True)
        index.save(path)
    index = rabitqlib.SymqgIndex.load(path)

    def search(k, effort):
        return next(x for x in index.search(data.queries, k, effort, num_threads=1) if x.dtype.kind in "ui")

    return search, EFFORTS, path


def faiss(data, name):
    """IVF1024,PQ(dim / 2)x4fs with floats for the final order."""
    import faiss as library
    path = os.path.join(args.cache, name + ".faiss")
    if not os.path.exists(path):
        library.omp_set_num_threads(2)
        index = library.index_factory(data.dim, f"IVF1024,PQ{data.dim // 2}x4fs,RFlat")
        begin = time.perf_counter()
        index.train(data.rows)
        index.add(data.rows)
        print(f"built {time.perf_counter() - begin:.1f}", flush=True)
        library.write_index(index, path)
    library.omp_set_num_threads(1)
    index = library.read_index(path)

    def search(k, effort):
        library.downcast_index(index.base_index).nprobe = effort[0]
        index.k_factor = effort[1]
        return index.search(data.queries, k)[1]

    return search, [(p, f) for p in (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256) for f in (4, 16, 64)], path


def answer(peer, name):
    data = Data(name)
    search, efforts, path = {"symqg": symqg, "faiss": faiss}[peer](data, name)
    print(f"bytes {os.path.getsize(path) / data.n:.0f}", flush=True)
    for k in (int(x) for x in args.k.split(",")):
        bounds = data.truth(name, k)
        for effort in efforts:
            if peer == "symqg" and effort < k:
                continue
            speed = 0
            for _ in range(PASSES):
                begin = time.process_time()
                found = search(k, effort)
                speed = max(speed, len(data.queries) / (time.process_time() - begin))
            recall = data.recall(found, k, bounds)
            print(f"point {k} {recall:.4f} {speed:.0f}", flush=True)
            if recall > 0.992:
                break


# ---- Rounds

def run(command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def peer_points(peer, name, points, facts):
    out = run([sys.executable, __file__, "--answer", peer, "--data", args.data, "--cache", args.cache, "--k", args.k,
               "--queries", str(args.queries), name])
    for line in out.splitlines():
        what, *rest = line.split()
        if what == "point":
            key = (peer, int(rest[0]))
            points.setdefault(key, {}).setdefault(float(rest[1]), []).append(float(rest[2]))
        else:
            facts[peer, what] = rest[0]


def lode_points(who, program, cache, name, points, facts):
    os.makedirs(cache, exist_ok=True)
    for k in args.k.split(","):
        if who == "lode before" and k != "10":
            continue
        more = [] if who == "lode before" else ["--k", k]
        out = run([program, os.path.join(args.data, name + ".bin"), "--no-peer", "--cache", cache, "--threads", "2",
                   "--queries", str(args.queries), "--rounds", str(PASSES - 1), *more])
        for line in out.splitlines():
            words = line.split()
            if line.startswith("beam"):
                points.setdefault((who, int(k)), {}).setdefault(float(words[3]), []).append(float(words[4][:-2]))
            elif line.startswith("memory:"):
                facts[who, "bytes"] = words[2]
            elif line.startswith("build:") and float(words[2]) > 0:
                facts[who, "built"] = words[2]


def speed_at(points, wanted):
    """The best that is found by any two points around the wanted recall; 0: not reached."""
    best = {recall: max(speeds) for recall, speeds in points.items()}
    above = [(r, s) for r, s in best.items() if r >= wanted]
    if not above:
        return 0
    high = max(above, key=lambda p: p[1])
    below = [(r, s) for r, s in best.items() if r < wanted and s > high[1]]
    if not below:
        return high[1]
    low = max(below)
    part = (wanted - low[0]) / (high[0] - low[0])
    return 1 / (part / high[1] + (1 - part) / low[1])


def compare(name):
    points, facts = {}, {}
    for _ in range(args.rounds):
        if args.bench:
            lode_points("lode", args.bench, args.cache, name, points, facts)
        if args.old:
            lode_points("lode before", args.old, args.cache + ".old", name, points, facts)
        for peer in filter(None, args.peers.split(",")):
            peer_points(peer, name, points, facts)
    print(f"\n## {name}\n\n| nearest | recall | beside | Lode, queries/s | it, queries/s | ratio |\n|---|---|---|---|---|---|")
    for k in (int(x) for x in args.k.split(",")):
        for wanted in (0.95, 0.99):
            mine = speed_at(points.get(("lode", k), {}), wanted)
            for who in sorted({w for w, kk in points if kk == k and w != "lode"}):
                speed = speed_at(points[who, k], wanted)
                ratio = f"{mine / speed:.2f}" if mine and speed else "-"
                print(f"| {k} | {wanted} | {who} | {mine:,.0f} | {speed:,.0f} | {ratio} |")
    print("\n" + ", ".join(f"{what} {who} {value}" for (who, what), value in sorted(facts.items())))
    sys.stdout.flush()


os.makedirs(args.cache, exist_ok=True)
for one in args.sets:
    answer(args.answer, one) if args.answer else compare(one)
