"""MemPalace's storage contract: with the real package where it is installed, else with the copy of the contract in lode."""
import os
import subprocess
import sys
import tempfile
import unittest

ENVIRONMENT = dict(os.environ)  # as it was: importing mempalace takes PYTHONPATH out of it

from lode import mempalace as palace  # noqa: E402
from lode.mempalace import LodeBackend, PalaceRef  # noqa: E402


def write_some(path, owner, n):
    """A process that writes a palace that others write at the same time."""
    backend = LodeBackend()
    drawers = backend.get_collection(palace=PalaceRef("p", path), collection_name="drawers", create=True)
    for i in range(n):
        drawers.upsert(ids=["%d-%d" % (owner, i)], documents=["drawer %d of %d" % (i, owner)], metadatas=[{"owner": owner}],
                       embeddings=[[float(owner), float(i), 1.0]])
    backend.close()


class Contract(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.backend = LodeBackend()
        self.addCleanup(self.backend.close)
        self.ref = PalaceRef("p", os.path.join(self.folder.name, "palace"))

    def drawers(self, create=True, name="drawers"):
        return self.backend.get_collection(palace=self.ref, collection_name=name, create=create)

    def filled(self):
        drawers = self.drawers()
        drawers.add(ids=["a", "b", "c"], documents=["the parser reads", "a lexer", "trees"],
                    metadatas=[{"wing": "x", "n": 1}, {"wing": "y", "n": 2}, {"wing": "x", "n": None}], embeddings=[[1, 0], [0, 1], [1, 1]])
        return drawers

    def test_what_is_not_there(self):
        self.assertRaises(palace.PalaceNotFoundError, self.drawers, False)
        os.makedirs(self.ref.local_path)
        self.assertRaises(palace.CollectionNotInitializedError, self.drawers, False)
        self.assertFalse(LodeBackend.detect(self.ref.local_path))
        self.drawers()
        with self.assertRaisesRegex(palace.CollectionNotInitializedError, "closets"):
            self.drawers(False, "closets")
        self.assertTrue(LodeBackend.detect(self.ref.local_path))
        with self.assertRaises(palace.UnsupportedCapabilityError):
            self.backend.get_collection(palace=PalaceRef("p", self.ref.local_path, "tenant"), collection_name="x", create=True)

    def test_folders_are_the_owners(self):
        os.makedirs(self.ref.local_path, 0o755)
        self.drawers()
        for folder in (self.ref.local_path, os.path.join(self.ref.local_path, "lode")):
            self.assertEqual(os.stat(folder).st_mode & 0o777, 0o700, folder)

    def test_drawers_without_wing_or_room(self):
        drawers = self.drawers()
        self.assertEqual(drawers.facet_counts("wing"), {})
        drawers.add(ids=["a", "b", "c", "d"], documents=["1", "2", "3", "4"], embeddings=[[1, 0]] * 4,
                    metadatas=[{"wing": "x", "room": "r"}, {"wing": "x"}, {"room": "s"}, {"n": 1}])
        self.assertEqual(drawers.facet_counts("wing"), {"x": 2, "unknown": 2})
        self.assertEqual(drawers.facet_counts("room", where={"wing": "x"}), {"r": 1, "unknown": 1})
        self.assertEqual(drawers.facet_counts("room", where={"wing": "unknown"}), {"s": 1, "unknown": 1})
        self.assertEqual(drawers.facet_counts("n"), {"1": 1})

    def test_an_older_mempalace_lacks_some_names(self):
        program = """
import sys, types
base = types.ModuleType("mempalace.backends.base")
from lode import _palace_contract
for name in dir(_palace_contract):
    if name not in ("EmbedderIdentity", "MaintenanceResult", "UnsupportedMaintenanceKindError"):
        setattr(base, name, getattr(_palace_contract, name))
backends = types.ModuleType("mempalace.backends")
backends.base = base
sys.modules.update({"mempalace": types.ModuleType("mempalace"), "mempalace.backends": backends, "mempalace.backends.base": base})
import lode.mempalace as palace
print(issubclass(palace.LodeBackend, base.BaseBackend), palace.EmbedderIdentity is _palace_contract.EmbedderIdentity)
"""
        done = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.stdout.strip(), "True True", done.stderr)

    def test_records(self):
        drawers = self.filled()
        self.assertEqual(drawers.count(), 3)
        got = drawers.get(ids=["c", "a", "nobody"], include=["documents", "metadatas", "embeddings"])
        self.assertEqual((got.ids, got.documents, got.metadatas, got.embeddings),
                         (["c", "a"], ["trees", "the parser reads"], [{"wing": "x"}, {"wing": "x", "n": 1}], [[1, 1], [1, 0]]))
        self.assertEqual(drawers.get(where={"wing": "x"}, include=[]).documents, [])
        found = drawers.query(query_embeddings=[[1, 0.1]], n_results=2, where={"wing": {"$in": ["x", "y"]}})
        self.assertEqual((found.ids, found.embeddings), ([["a", "c"]], None))
        self.assertEqual(found["ids"], found.ids)
        self.assertRaises(ValueError, drawers.query, query_texts=["x"], query_embeddings=[[1, 0]])
        self.assertRaises(ValueError, drawers.query)
        self.assertRaises(palace.UnsupportedFilterError, drawers.get, where={"n": {"$foo": 1}})
        self.assertRaises(palace.DimensionMismatchError, drawers.query, query_embeddings=[[1, 2, 3]])
        self.assertRaises(palace.DimensionMismatchError, drawers.upsert, ids=["z"], documents=["z"], embeddings=[[1, 2, 3]])
        self.assertRaises(ValueError, drawers.add, ids=["z", "a"], documents=["z", "a"], embeddings=[[1, 0], [1, 0]])
        self.assertEqual(drawers.count(), 3)
        drawers.update(ids=["a", "nobody"], metadatas=[{"n": 9}, {"n": 9}])
        self.assertEqual(drawers.get(ids=["a"]).metadatas, [{"wing": "x", "n": 9}])
        self.assertRaises(ValueError, drawers.update, ids=["a"])
        drawers.delete(where={"wing": "y"})
        self.assertEqual(drawers.get().ids, ["a", "c"])

    def test_search_by_words_facets_and_rows(self):
        drawers = self.filled()
        hits = drawers.lexical_search(query="parser", n_results=5).hits
        self.assertEqual([(h.id, h.metadata) for h in hits], [("a", {"wing": "x", "n": 1})])
        self.assertEqual(drawers.facet_counts("wing"), {"x": 2, "y": 1})
        self.assertEqual(len(drawers.get_all_metadata({"wing": "x"})), 2)
        self.assertEqual(drawers.get_all_rows(include=["documents"]).ids, ["a", "b", "c"])
        self.assertTrue(drawers.rekey_row(old_id="a", new_id="a2"))
        self.assertEqual(sorted(drawers.get().ids), ["a2", "b", "c"])

    def test_identity_and_care(self):
        drawers = self.filled()
        self.assertIsNone(drawers.get_stored_embedder_identity())
        drawers.set_embedder_identity(palace.EmbedderIdentity("minilm", 2))
        self.assertEqual(drawers.get_stored_embedder_identity(), palace.EmbedderIdentity("minilm", 2))
        self.assertEqual(drawers.run_maintenance("compact").status, "ran")
        self.assertRaises(palace.UnsupportedMaintenanceKindError, drawers.run_maintenance, "analyze")
        self.assertTrue(self.backend.health(self.ref).ok)

    def test_closing(self):
        drawers = self.filled()
        self.backend.close_palace(self.ref)
        self.assertFalse(drawers.health().ok)
        self.assertRaises(palace.BackendClosedError, drawers.count)
        self.assertEqual(self.drawers(False).count(), 3)
        self.backend.close()
        self.assertRaises(palace.BackendClosedError, self.drawers)

    def test_a_rescued_collection_keeps_its_metric(self):
        import lode
        os.makedirs(self.ref.local_path)
        with lode.connect(os.path.join(self.ref.local_path, "lode")) as store:
            store.collection("drawers", create=True, metric="l2").add(["a"], ["text"], None, [[1, 2]])
        drawers = self.drawers()
        self.assertEqual((drawers.count(), drawers.distance_metric), (1, "l2"))
        self.assertEqual(drawers.query(query_embeddings=[[1, 0]]).distances, [[4.0]])
        self.assertEqual(self.drawers(name="closets").distance_metric, "cosine")

    def test_palaces_do_not_see_each_other(self):
        self.filled()
        other = self.backend.get_collection(palace=PalaceRef("q", os.path.join(self.folder.name, "other")), collection_name="drawers", create=True)
        self.assertEqual((other.count(), other.get().ids), (0, []))

    def test_four_processes_write_one_palace_at_once(self):
        self.drawers()
        writers = [subprocess.Popen([sys.executable, __file__, self.ref.local_path, str(w), "30"], env=ENVIRONMENT) for w in range(4)]
        self.assertEqual([w.wait() for w in writers], [0] * 4)
        self.assertEqual(self.drawers(False).count(), 120)
        self.assertEqual(self.drawers(False).facet_counts("owner"), {"0": 30, "1": 30, "2": 30, "3": 30})


if __name__ == "__main__":
    if len(sys.argv) == 4:
        write_some(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    else:
        unittest.main()
