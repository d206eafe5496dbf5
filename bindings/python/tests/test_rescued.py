"""A directory that the chromadb package made, rescued and served: the same package must find in `lode serve` what it has put into the
directory: tenants, databases, collections, their configuration, records, and the same answers. Run by the interpreter that has chromadb;
LODE_PROGRAM names lode."""
import os
import random
import re
import shutil
import subprocess
import tempfile
import unittest

os.environ["ANONYMIZED_TELEMETRY"] = "False"
LODE = os.environ.get("LODE_PROGRAM")

try:
    import chromadb
    from chromadb.config import Settings
except ImportError:
    chromadb = None

PLACES = (("default_tenant", "default_database"), ("default_tenant", "archive"), ("acme", "main"), ("50% off", "main"))
SPACES = ("l2", "cosine", "ip")


def vectors(rnd, n):
    return [[rnd.uniform(-3, 3) for _ in range(8)] for _ in range(n)]


def collections_of(client, where):
    """What a client shows of its collections."""
    shown = {}
    for collection in client.list_collections():
        collection = client.get_collection(collection if isinstance(collection, str) else collection.name)
        got = collection.get(include=["documents", "metadatas", "embeddings"])
        rows = sorted(zip(got["ids"], got["documents"], got["metadatas"], [[round(float(x), 4) for x in v] for v in got["embeddings"]]))
        shown[collection.name] = {"metadata": collection.metadata, "configuration": collection.configuration_json, "rows": rows,
                                  "place": where, "count": collection.count(),
                                  "nearest": collection.query(query_embeddings=[[1.0] * 8], n_results=5, include=["distances"]) if rows else None}
    return shown


class Rounded(unittest.TestCase):
    def same(self, theirs, ours):
        self.assertEqual(sorted(theirs), sorted(ours))
        for name in theirs:
            a, b = theirs[name], ours[name]
            for part in ("metadata", "configuration", "count", "place"):
                self.assertEqual(a[part], b[part], (name, part))
            self.assertEqual([r[:3] for r in a["rows"]], [r[:3] for r in b["rows"]], name)
            for x, y in zip(a["rows"], b["rows"]):
                for p, q in zip(x[3], y[3]):
                    self.assertAlmostEqual(p, q, places=3, msg=(name, x[0]))
            if a["nearest"]:
                self.assertEqual(a["nearest"]["ids"], b["nearest"]["ids"], name)
                for p, q in zip(a["nearest"]["distances"][0], b["nearest"]["distances"][0]):
                    self.assertAlmostEqual(p, q, delta=1e-3 * max(1, abs(p)), msg=name)


@unittest.skipUnless(chromadb and LODE, "chromadb is not installed here, or LODE_PROGRAM is not set")
class Rescued(Rounded):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.chroma, self.store = os.path.join(self.folder, "chroma"), os.path.join(self.folder, "store")

    def fill(self):
        rnd, settings = random.Random(5), Settings(anonymized_telemetry=False, is_persistent=True, persist_directory=self.chroma)
        chromadb.PersistentClient(self.chroma, settings=settings)
        admin = chromadb.AdminClient(settings)
        for tenant in ("acme", "50% off", "empty tenant"):
            admin.create_tenant(tenant)
        for tenant, database in PLACES[1:] + (("acme", "nothing in it"),):
            admin.create_database(database, tenant)
        shown = {}
        for tenant, database in PLACES:
            client = chromadb.PersistentClient(self.chroma, settings=settings, tenant=tenant, database=database)
            for space in SPACES:
                hnsw = {"space": space, "ef_construction": 80, "ef_search": 70, "max_neighbors": 9, "sync_threshold": 40, "resize_factor": 1.5}
                made = client.create_collection("by-" + space, configuration={"hnsw": hnsw}, metadata={"about": database})
                for start in range(0, 120, 20):
                    made.add(ids=["%s-%d" % (space, i) for i in range(start, start + 20)], embeddings=vectors(rnd, 20),
                             documents=["text %d of %s" % (i, tenant) for i in range(start, start + 20)], metadatas=[{"n": i} for i in range(start, start + 20)])
                made.delete(ids=["%s-%d" % (space, i) for i in range(0, 120, 11)])
                made.update(ids=["%s-1" % space], embeddings=vectors(rnd, 1), metadatas=[{"changed": True}])
            shown[tenant, database] = collections_of(client, (tenant, database))
        return shown

    def serve(self):
        server = subprocess.Popen([LODE, "serve", "--store", self.store, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        for line in server.stdout:
            found = re.search(r"127\.0\.0\.1:(\d+)", line)
            if found:
                return int(found.group(1))
        self.fail("lode serve did not start")

    def test_what_was_rescued_is_served_as_it_was(self):
        theirs = self.fill()
        done = subprocess.run([LODE, "rescue", "chroma", self.chroma, "--to", self.store], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        port = self.serve()
        for (tenant, database), shown in theirs.items():
            client = chromadb.HttpClient("127.0.0.1", port, tenant=tenant, database=database, settings=Settings(anonymized_telemetry=False))
            self.same(shown, collections_of(client, (tenant, database)))
        admin = chromadb.AdminClient(Settings(chroma_api_impl="chromadb.api.fastapi.FastAPI", chroma_server_host="127.0.0.1",
                                              chroma_server_http_port=port, anonymized_telemetry=False))
        self.assertEqual(admin.get_tenant("empty tenant")["name"], "empty tenant")
        self.assertEqual(admin.get_database("nothing in it", "acme")["tenant"], "acme")
        here = chromadb.AdminClient(Settings(anonymized_telemetry=False, is_persistent=True, persist_directory=self.chroma))
        self.assertEqual(admin.get_database("archive", "default_tenant")["id"], str(here.get_database("archive", "default_tenant")["id"]))

    def test_lode_chroma_shows_the_same(self):
        theirs = self.fill()
        subprocess.run([LODE, "rescue", "chroma", self.chroma, "--to", self.store], capture_output=True, check=True)
        import lode.chroma
        for (tenant, database), shown in theirs.items():
            with lode.chroma.PersistentClient(self.store, tenant=tenant, database=database) as client:
                self.same(shown, collections_of(client, (tenant, database)))


@unittest.skipUnless(chromadb and LODE and os.environ.get("LODE_MINILM_ONNX") and os.environ.get("LODE_MODELS"),
                     "needs chromadb, LODE_PROGRAM, LODE_MINILM_ONNX (the weights as ONNX) and LODE_MODELS (with minilm)")
class MadeAgain(unittest.TestCase):
    """Vectors that Chroma made with its own MiniLM, lost, and made again by Lode's: the same but for rounding."""

    def test_lost_vectors_are_made_again(self):
        from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2
        with tempfile.TemporaryDirectory() as folder:
            path, model = os.path.join(folder, "chroma"), os.path.join(folder, "model", "onnx")
            shutil.copytree(os.environ["LODE_MINILM_ONNX"], model)
            os.symlink(os.path.join(model, "onnx", "model.onnx"), os.path.join(model, "model.onnx"))
            ONNXMiniLM_L6_V2.DOWNLOAD_PATH = os.path.dirname(model)
            client = chromadb.PersistentClient(path, settings=Settings(anonymized_telemetry=False))
            notes = client.create_collection("notes", configuration={"hnsw": {"space": "cosine", "sync_threshold": 10}},
                                             embedding_function=ONNXMiniLM_L6_V2(preferred_providers=["CPUExecutionProvider"]))
            texts = ["Note %d: %s" % (i, " ".join(random.Random(i).choices("the parser reads tokens of a lexer and builds trees for every search index".split(), k=12)))
                     for i in range(40)]
            for start in range(0, 40, 10):
                notes.add(ids=["n%d" % i for i in range(start, start + 10)], documents=texts[start:start + 10])
            exact = dict(zip(*(lambda got: (got["ids"], got["embeddings"]))(notes.get(include=["embeddings"]))))
            damaged = os.path.join(folder, "damaged")
            shutil.copytree(path, damaged)
            for name in os.listdir(damaged):
                if os.path.isdir(os.path.join(damaged, name)):
                    shutil.rmtree(os.path.join(damaged, name))  # "quarantine", as MemPalace does it
            plain = subprocess.run([LODE, "rescue", "chroma", damaged, "--to", os.path.join(folder, "plain"), "--json"], capture_output=True, text=True)
            self.assertEqual(plain.returncode, 3, plain.stdout + plain.stderr)  # vectors are missing, and it says so
            store = os.path.join(folder, "store")
            done = subprocess.run([LODE, "rescue", "chroma", damaged, "--to", store, "--embed", "--json"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            import lode
            import numpy
            with lode.connect(store) as opened:
                rows = opened.collection("notes").get(include=("vector", "document"))
            self.assertEqual(len(rows), 40)
            worst = min(float(numpy.dot(r.vector, exact[r.id]) / numpy.linalg.norm(r.vector) / numpy.linalg.norm(exact[r.id])) for r in rows)
            print("lost vectors made again: least cosine with the exact ones %.6f" % worst)
            self.assertGreater(worst, 0.99)


if __name__ == "__main__":
    unittest.main()
