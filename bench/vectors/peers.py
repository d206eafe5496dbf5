"""peers.py - the same vectors and queries in other libraries and databases, in their own processes.

  peers.py PEER FILE TRUTH FOLDER [--rows N] [--queries N] [--threads N]
      PEER: faiss | usearch (libraries: index alone) | chroma | lance (databases: documents and metadata too)

Prints "name value" lines. A library's figures are queries a second at recall 0.95 and 0.99 (interpolated over its own knob, one
thread); a database's are its recall and queries a second for some settings of its knob, and under filters.
"""
import argparse, array, os, struct, sys, time

K = 10
a = argparse.ArgumentParser()
a.add_argument("peer"); a.add_argument("file"); a.add_argument("truth"); a.add_argument("folder")
a.add_argument("--rows", type=int, default=0); a.add_argument("--queries", type=int, default=300)
a.add_argument("--threads", type=int, default=0)
args = a.parse_args()
threads = args.threads or os.cpu_count() or 1

import numpy as np

with open(args.file, "rb") as f:
    n_all, nq_all, dim, metric = struct.unpack("<4I", f.read(16))
    n = min(args.rows or n_all, n_all)
    nq = min(args.queries, nq_all)
    rows = np.fromfile(f, dtype="<f4", count=n * dim).reshape(n, dim)
    f.seek(16 + n_all * dim * 4)
    queries = np.fromfile(f, dtype="<f4", count=nq * dim).reshape(nq, dim)
bounds = np.fromfile(args.truth, dtype="<f8", count=nq)
if metric:
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
    queries = queries / np.maximum(np.linalg.norm(queries, axis=1, keepdims=True), 1e-30)


def out(name, value):
    print(f"{args.peer}_{name} {value}", flush=True)


def recall(found):
    """found: for each query the row numbers."""
    hits = 0
    for q, ids in enumerate(found):
        v = rows[np.asarray(ids, dtype=np.int64)[:K]].astype(np.float64)
        x = queries[q].astype(np.float64)
        d = 1 - v @ x if metric else ((v - x) ** 2).sum(axis=1)
        hits += int((d <= bounds[q] + 1e-5 * (1 + abs(bounds[q]))).sum())
    return hits / (nq * K)


def curve(search, efforts):
    """search(effort) answers all queries one after the other; queries a second at 0.95 and 0.99."""
    points = []
    for effort in efforts:
        best = 0
        for _ in range(2):
            begin = time.perf_counter()
            found = search(effort)
            best = max(best, nq / (time.perf_counter() - begin))
        points.append((recall(found), best))
        if points[-1][0] >= 0.992:
            break
    for wanted in (0.95, 0.99):
        value = 0
        for i, (r, speed) in enumerate(points):
            if r < wanted:
                continue
            value = speed
            if i and r > points[i - 1][0]:
                part = (wanted - points[i - 1][0]) / (r - points[i - 1][0])
                value = 1 / (part / speed + (1 - part) / points[i - 1][1])
            break
        out(f"at_{wanted * 100:.0f}", f"{value:.0f}")
    out("best_recall", f"{points[-1][0]:.4f}")


EFFORTS = [10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024]


def run_faiss():
    import faiss
    faiss.omp_set_num_threads(threads)
    index = faiss.IndexHNSWFlat(dim, 16, faiss.METRIC_INNER_PRODUCT if metric else faiss.METRIC_L2)
    index.hnsw.efConstruction = 200
    begin = time.perf_counter()
    index.add(rows)
    out("build_s", f"{time.perf_counter() - begin:.2f}")
    faiss.omp_set_num_threads(1)

    def search(effort):
        index.hnsw.efSearch = effort
        return [index.search(queries[i : i + 1], K)[1][0] for i in range(nq)]

    curve(search, EFFORTS)


def run_usearch():
    from usearch.index import Index
    index = Index(ndim=dim, metric="cos" if metric else "l2sq", dtype="i8" if metric else "f32", connectivity=16,
                  expansion_add=200)
    begin = time.perf_counter()
    index.add(np.arange(n), rows, threads=threads)
    out("build_s", f"{time.perf_counter() - begin:.2f}")

    def search(effort):
        index.expansion_search = effort
        return [index.search(queries[i], K, threads=1).keys for i in range(nq)]

    curve(search, EFFORTS)


def documents(i):
    return f"record number {i} of the benchmark, with a few words of text"


def measure(name, ask, check=True):
    best = 0
    for _ in range(2):
        begin = time.perf_counter()
        found = [ask(i) for i in range(nq)]
        best = max(best, nq / (time.perf_counter() - begin))
    out(f"{name}_qps", f"{best:.0f}")
    if check:
        out(f"{name}_recall", f"{recall(found):.4f}")


def run_chroma():
    import chromadb
    from chromadb.config import Settings
    client = chromadb.PersistentClient(path=args.folder, settings=Settings(anonymized_telemetry=False))
    c = client.create_collection("vectors", embedding_function=None, configuration={
        "hnsw": {"space": "cosine" if metric else "l2", "max_neighbors": 16, "ef_construction": 200, "ef_search": 100}})
    begin = time.perf_counter()
    for at in range(0, n, 1000):
        part = range(at, min(at + 1000, n))
        c.add(ids=[str(i) for i in part], embeddings=rows[at : at + 1000], documents=[documents(i) for i in part],
              metadatas=[{"p": i * 7919 % 100, "kind": "row"} for i in part])
    out("add_and_index_s", f"{time.perf_counter() - begin:.2f}")

    def ask(i, where=None):
        r = c.query(query_embeddings=[queries[i]], n_results=K, where=where, include=["documents", "metadatas", "distances"])
        return [int(x) for x in r["ids"][0]]

    ask(0)
    for effort in (32, 100, 300):
        c.modify(configuration={"hnsw": {"ef_search": effort}})
        measure(f"ef{effort}", ask)
    for percent in (1, 10, 50):
        measure(f"filter_{percent}", lambda i: ask(i, {"p": {"$lt": percent}}), check=False)


def run_lance():
    import lancedb
    db = lancedb.connect(args.folder)

    def batches():
        for at in range(0, n, 1000):
            yield [{"id": str(i), "vector": rows[i], "document": documents(i), "p": i * 7919 % 100, "kind": "row"}
                   for i in range(at, min(at + 1000, n))]

    begin = time.perf_counter()
    table = None
    for batch in batches():
        if table is None:
            table = db.create_table("v", batch)
        else:
            table.add(batch)
    out("add_s", f"{time.perf_counter() - begin:.2f}")
    table.create_index(metric="cosine" if metric else "l2", vector_column_name="vector", index_type="IVF_HNSW_SQ")
    table.create_scalar_index("p")
    out("add_and_index_s", f"{time.perf_counter() - begin:.2f}")

    def ask(i, probes, refine, where=None):
        q = table.search(queries[i]).distance_type("cosine" if metric else "l2").limit(K).nprobes(probes).refine_factor(refine)
        if where:
            q = q.where(where, prefilter=True)
        return [int(x) for x in q.select(["id", "document", "p", "kind"]).to_arrow()["id"].to_pylist()]

    for probes, refine in ((1, 2), (20, 2), (20, 10)):
        measure(f"probes{probes}_refine{refine}", lambda i: ask(i, probes, refine))
    for percent in (1, 10, 50):
        measure(f"filter_{percent}", lambda i: ask(i, 20, 2, f"p < {percent}"), check=False)


try:
    {"faiss": run_faiss, "usearch": run_usearch, "chroma": run_chroma, "lance": run_lance}[args.peer]()
except ImportError as e:
    out("skipped", str(e).replace(" ", "_"))
    sys.exit(3)
