"""Search expressions of chromadb: conditions that are filters, ranks that can be made and passed on; sparse vectors, which cannot be stored. The same
tests run against chromadb itself (LODE_CHROMA_MODULE=chromadb)."""
import importlib
import os
import tempfile
import unittest

MODULE = os.environ.get("LODE_CHROMA_MODULE", "lode.chroma")
chromadb = importlib.import_module(MODULE)
of = importlib.import_module(MODULE + ".execution.expression")
types = importlib.import_module(MODULE + ".api.types")
K = of.K


class Conditions(unittest.TestCase):
    def test_a_condition_is_a_filter(self):
        with tempfile.TemporaryDirectory() as folder:
            client = chromadb.PersistentClient(folder)
            notes = client.create_collection("notes", embedding_function=None)
            notes.add(ids=["a", "b", "c"], embeddings=[[1.0], [2.0], [3.0]], metadatas=[{"n": 1, "s": "x"}, {"n": 2, "s": "y"}, {"n": 3, "s": "x"}])
            for condition, ids in ((K("n") > 1, ["b", "c"]), ((K("n") <= 2) & (K("s") == "x"), ["a"]), ((K("n") == 1) | K("s").is_in(["y"]), ["a", "b"]),
                                   (K("s") != "x", ["b"]), (K("n").not_in([1, 2]), ["c"])):
                self.assertEqual(notes.get(where=condition.to_dict())["ids"], ids)
            self.assertRaises(ValueError, notes.get, where=K("n") > 1)  # only its dictionary is

    def test_conditions_of_dictionaries(self):
        for data in ({"a": {"$eq": 1}}, {"$and": [{"a": {"$gt": 1}}, {"$or": [{"b": {"$regex": "x"}}, {"c": {"$nin": [1]}}]}]}, {"#document": {"$contains": "x"}}):
            self.assertEqual(of.Where.from_dict(data).to_dict(), data)
        joined = (K("a") == 1) & (K("b") == 2) & (K("c") == 3)
        self.assertEqual(len(joined.conditions), 3)
        for data, kind in (({}, ValueError), ([], TypeError), ({"$and": []}, ValueError), ({"$or": {}}, TypeError), ({"a": {}}, ValueError), ({"a": 1, "b": 2}, ValueError),
                           ({"a": {"$foo": 1}}, ValueError), ({"a": {"$in": 1}}, TypeError), ({"a": {"$contains": [1]}}, TypeError), ({"a": {"$regex": 1}}, TypeError)):
            self.assertRaises(kind, of.Where.from_dict, data)
        self.assertRaises(TypeError, K.DOCUMENT.contains, 1)

    def test_ranks(self):
        rank = of.Knn(query=[0.5, 1.0]) * 2 + of.Val(0.25) - 1
        data = rank.to_dict()
        self.assertEqual(data["$sub"]["right"], {"$val": 1})
        self.assertEqual(data["$sub"]["left"]["$sum"][0]["$mul"][1], {"$val": 2})
        self.assertEqual(of.Rank.from_dict({"$max": [{"$val": 1}, {"$val": 2}, {"$abs": {"$exp": {"$val": 3}}}]}).to_dict()["$max"][2], {"$abs": {"$exp": {"$val": 3}}})
        fused = of.Rrf([of.Knn([0.1], return_rank=True), of.Val(3)], weights=[3.0, 1.0], normalize=True).to_dict()
        self.assertEqual([term["$div"]["left"]["$val"] for term in fused["$mul"][1]["$sum"]], [0.75, 0.25])
        for data, kind in (({}, ValueError), ({"$val": "x"}, TypeError), ({"$foo": 1}, ValueError), ({"$sum": [{"$val": 1}]}, ValueError), ({"$knn": {}}, ValueError),
                           ({"$knn": {"query": [1.0], "limit": 0}}, ValueError), ({"$div": {"left": {"$val": 1}}}, ValueError)):
            self.assertRaises(kind, of.Rank.from_dict, data)
        self.assertRaises(ValueError, of.Rrf([]).to_dict)
        self.assertRaises(ValueError, of.Rrf([of.Val(1)], weights=[1.0, 2.0]).to_dict)

    def test_searches(self):
        search = of.Search(where={"a": 1}, rank={"$val": 0.5}, limit=3, select=["#document"]).group_by(of.GroupBy(keys=K("c"), aggregate=of.MinK(keys=K.SCORE, k=2)))
        self.assertEqual(search.to_dict(), {"filter": {"a": {"$eq": 1}}, "rank": {"$val": 0.5}, "limit": {"offset": 0, "limit": 3}, "select": {"keys": ["#document"]},
                                            "group_by": {"keys": ["c"], "aggregate": {"$min_k": {"keys": ["#score"], "k": 2}}}})
        self.assertEqual(search.limit(1, offset=2).to_dict()["limit"], {"offset": 2, "limit": 1})
        for given, kind in (({"where": "x"}, TypeError), ({"rank": 1}, TypeError), ({"limit": "1"}, TypeError), ({"limit": 0}, ValueError), ({"select": 1}, TypeError),
                            ({"group_by": {"keys": ["c"]}}, ValueError)):
            self.assertRaises(kind, of.Search, **given)
        result = types.SearchResult({"ids": [["a", "b"]], "documents": [["x", None]], "metadatas": None, "scores": [[0.5, 0.25]]})
        self.assertEqual(result.rows(), [[{"id": "a", "document": "x", "score": 0.5}, {"id": "b", "score": 0.25}]])


class Sparse(unittest.TestCase):
    def test_sparse_vectors_are_checked_and_not_stored(self):
        vector = types.SparseVector([1, 3], [0.5, 2])
        self.assertEqual(types.SparseVector.from_dict(vector.to_dict()), vector)
        for indices, values in (([1], []), ([2, 1], [1.0, 2.0]), ([-1], [1.0]), ([1.5], [1.0]), ([1], ["x"]), ("x", [1.0])):
            self.assertRaises(ValueError, types.SparseVector, indices, values)
        self.assertEqual(types.normalize_metadata({"s": vector.to_dict(), "k": {"x": 1}}), {"s": vector, "k": {"x": 1}})
        types.validate_metadata({"s": vector})
        with tempfile.TemporaryDirectory() as folder:
            client = chromadb.PersistentClient(folder)
            notes = client.create_collection("notes", embedding_function=None)
            for call in (notes.add, notes.upsert):
                self.assertRaises((TypeError, ValueError), call, ids=["a"], embeddings=[[1.0]], metadatas=[{"s": vector}])
            self.assertRaises((TypeError, ValueError), client.create_collection, "other", metadata={"s": vector})
            self.assertEqual((notes.count(), client.count_collections()), (0, 1))


class Clients(unittest.TestCase):
    def test_what_is_in_memory_ends_with_its_last_client(self):
        one, two = chromadb.EphemeralClient(), chromadb.EphemeralClient()
        one.create_collection("in-memory", embedding_function=None)
        one.close()
        self.assertEqual(two.get_collection("in-memory").count(), 0)
        two.close()
        with chromadb.EphemeralClient() as three:
            self.assertRaises(chromadb.errors.NotFoundError, three.get_collection, "in-memory")

    def test_settings_that_say_another_address_are_refused(self):
        for settings, port in ((chromadb.Settings(chroma_server_host="elsewhere.invalid"), 1), (chromadb.Settings(chroma_server_http_port=2), 1)):
            with self.assertRaisesRegex(ValueError, "is different to the one provided in HttpClient"):
                chromadb.HttpClient(port=port, settings=settings)

    def test_isinstance_tells_servers_from_stores(self):
        from_server = importlib.import_module(MODULE + ".api.fastapi").FastAPI
        with chromadb.EphemeralClient() as client:
            self.assertNotIsInstance(client, from_server)
            self.assertNotIsInstance(client._server, from_server)
        self.assertRaises(chromadb.errors.InvalidArgumentError, self.wrong_space)

    @staticmethod
    def wrong_space():
        with chromadb.EphemeralClient() as client:
            client.create_collection("wrong-space", metadata={"hnsw:space": "foobar"}).add(ids=["a"], embeddings=[[1.0]])


if __name__ == "__main__":
    unittest.main()
