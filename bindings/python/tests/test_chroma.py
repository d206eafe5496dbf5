"""One set of tests for the chromadb module and for lode.chroma: LODE_CHROMA_MODULE names which (lode.chroma when not set)."""
import importlib
import os
import socket
import sys
import tempfile
import threading
import time
import unittest

chromadb = importlib.import_module(os.environ.get("LODE_CHROMA_MODULE", "lode.chroma"))
OURS = chromadb.__name__ == "lode.chroma"
if OURS:
    from lode.chroma._http import HttpBackend
    from lode.chroma.config import Settings


def rounded(result):
    """Arrays as lists, floats to six places: what both can agree on."""
    def walk(x):
        if hasattr(x, "tolist"):
            x = x.tolist()
        if isinstance(x, float):
            return round(x, 5)
        if isinstance(x, (list, tuple)):
            return [walk(y) for y in x]
        if isinstance(x, dict):
            return {k: walk(v) for k, v in x.items()}
        return x
    return walk(result)


def embed(input):
    """Three numbers of a text."""
    return [[float(len(t)), float(t.count("e")), 1.0] for t in input]


class Function:
    def __call__(self, input):
        return embed(input)

    def embed_query(self, input):
        return embed(input)

    @staticmethod
    def name():
        return "three-numbers"

    def get_config(self):
        return {}

    @staticmethod
    def build_from_config(config):
        return Function()

    def default_space(self):
        return "l2"

    def supported_spaces(self):
        return ["l2", "cosine", "ip"]

    def is_legacy(self):
        return False


class Client(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True) if sys.version_info >= (3, 10) else tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = folder.name
        self.client = chromadb.PersistentClient(self.path)
        if hasattr(self.client, "close"):
            self.addCleanup(self.client.close)

    def notes(self, **options):
        notes = self.client.create_collection("notes", embedding_function=Function(), **options)
        notes.add(ids=["a", "b", "c"], embeddings=[[1, 0, 0], [0, 2, 0], [0.5, 0.5, 1]], documents=["the parser", "a lexer", "Trees"],
                  metadatas=[{"n": 1, "lang": "c"}, {"n": 2.5, "lang": "go"}, {"n": 3, "ok": True}])
        return notes


class Collections(Client):
    def test_making_finding_and_dropping(self):
        first = self.client.create_collection("first", metadata={"a": 1}, embedding_function=Function())
        self.assertEqual((first.name, first.metadata, first.count()), ("first", {"a": 1}, 0))
        with self.assertRaises(Exception) as caught:
            self.client.create_collection("first", embedding_function=Function())
        self.assertIn("exists", str(caught.exception))
        self.assertEqual(self.client.get_or_create_collection("first", embedding_function=Function()).id, first.id)
        self.assertEqual(self.client.get_collection("first", embedding_function=Function()).id, first.id)
        self.client.create_collection("second", embedding_function=Function())
        self.assertEqual(sorted(c.name for c in self.client.list_collections()), ["first", "second"])
        if chromadb.__name__ == "lode.chroma":
            with importlib.import_module("lode").Store(self.path) as store:
                store.collection("first~reembed", create=True).close()  # what Store.reembed() makes aside
                self.assertEqual(self.client.count_collections(), 2)
                store.drop("first~reembed")
        self.assertEqual(self.client.count_collections(), 2)
        self.client.delete_collection("first")
        for do in (lambda: self.client.get_collection("first", embedding_function=Function()), lambda: self.client.delete_collection("first")):
            self.assertRaises(chromadb.errors.NotFoundError, do)

    def test_names_are_checked(self):
        for name in ("ab", "a b c", ".abc", "abc-", "a/b", "x" * 513):
            with self.assertRaises(Exception, msg=name):
                self.client.create_collection(name, embedding_function=Function())

    def test_modify(self):
        notes = self.notes()
        notes.modify(name="renamed", metadata={"b": "x"})
        self.assertEqual((notes.name, notes.metadata), ("renamed", {"b": "x"}))
        self.assertEqual(self.client.get_collection("renamed", embedding_function=Function()).count(), 3)


class Records(Client):
    def test_get(self):
        notes = self.notes()
        self.assertEqual(rounded(notes.get()), {
            "ids": ["a", "b", "c"], "embeddings": None, "documents": ["the parser", "a lexer", "Trees"], "uris": None,
            "included": ["metadatas", "documents"], "data": None,
            "metadatas": [{"n": 1, "lang": "c"}, {"n": 2.5, "lang": "go"}, {"n": 3, "ok": True}]})
        self.assertEqual(notes.get(ids=["c", "a", "nobody"])["ids"], ["a", "c"])
        self.assertEqual(notes.get(limit=1, offset=1)["ids"], ["b"])
        self.assertEqual(rounded(notes.get(ids="b", include=["embeddings"]))["embeddings"], [[0, 2, 0]])
        self.assertEqual(notes.peek(2)["ids"], ["a", "b"])

    def test_filters(self):
        notes = self.notes()
        for where, ids in (({"n": 1}, ["a"]), ({"n": {"$gt": 1}}, ["b", "c"]), ({"lang": {"$ne": "c"}}, ["b", "c"]), ({"lang": {"$in": ["c", "go"]}}, ["a", "b"]),
                           ({"lang": {"$nin": ["c"]}}, ["b", "c"]), ({"$and": [{"n": {"$gte": 1}}, {"lang": "c"}]}, ["a"]),
                           ({"$or": [{"ok": True}, {"lang": "go"}]}, ["b", "c"]), ({"n": {"$lt": 2.6}}, ["a", "b"])):
            self.assertEqual(notes.get(where=where)["ids"], ids, where)
        for where, ids in (({"$contains": "parser"}, ["a"]), ({"$not_contains": "parser"}, ["b", "c"]), ({"$regex": "^[A-Z]"}, ["c"]),
                           ({"$or": [{"$contains": "lexer"}, {"$contains": "Trees"}]}, ["b", "c"])):
            self.assertEqual(notes.get(where_document=where)["ids"], ids, where)
        for where in ({}, {"n": {"$foo": 1}}, {"a": 1, "b": 2}, {"n": {"$in": []}}, {"$and": []}):
            if where == {} and not OURS:
                continue
            with self.assertRaises(Exception, msg=str(where)):
                notes.get(where=where)

    def test_query(self):
        notes = self.notes()
        found = rounded(notes.query(query_embeddings=[[1, 0, 0], [0, 1, 0]], n_results=2))
        self.assertEqual(found["ids"], [["a", "c"], ["b", "c"]])
        self.assertEqual(found["distances"], [[0, 1.5], [1, 1.5]])
        self.assertEqual(found["documents"], [["the parser", "Trees"], ["a lexer", "Trees"]])
        self.assertEqual((found["embeddings"], found["uris"], found["data"]), (None, None, None))
        self.assertEqual(notes.query(query_texts=["the parser"], n_results=1)["ids"][0].__len__(), 1)
        self.assertEqual(notes.query(query_embeddings=[[1, 0, 0]], where={"lang": "go"})["ids"], [["b"]])
        self.assertEqual(rounded(notes.query(query_embeddings=[1, 0, 0], n_results=1, include=["embeddings"]))["embeddings"], [[[1, 0, 0]]])

    def test_distances(self):
        for space, wanted in (("l2", [0.0, 5.0]), ("cosine", [0.0, 1.0]), ("ip", [0.0, 1.0])):
            notes = self.client.create_collection("space-" + space, metadata={"hnsw:space": space}, embedding_function=Function())
            notes.add(ids=["a", "b"], embeddings=[[1, 0], [0, 2]])
            self.assertEqual(rounded(notes.query(query_embeddings=[[1, 0]], n_results=2))["distances"], [wanted], space)

    def test_writes(self):
        notes = self.notes()
        notes.add(ids=["a", "d"], embeddings=[[9, 9, 9], [1, 1, 1]], documents=["changed", "d"])  # "a" is left as it is
        self.assertEqual(notes.get(ids=["a"])["documents"], ["the parser"])
        notes.update(ids=["a"], metadatas=[{"n": 7, "lang": None}])
        self.assertEqual(notes.get(ids=["a"])["metadatas"], [{"n": 7}])
        notes.upsert(ids=["b", "e"], documents=["B", "E"], metadatas=[{"x": 1}, {"y": 2}])
        self.assertEqual(notes.get(ids=["b", "e"])["documents"], ["B", "E"])
        self.assertEqual(notes.get(ids=["b"])["metadatas"], [{"n": 2.5, "lang": "go", "x": 1}])
        notes.update(ids=["nobody"], documents=["x"])
        self.assertEqual(notes.count(), 5)
        notes.delete(ids=["a", "nobody"])
        notes.delete(where={"lang": "go"})
        self.assertEqual(notes.get()["ids"], ["c", "d", "e"])

    def test_lists(self):
        notes = self.notes()
        notes.add(ids=["l"], embeddings=[[1, 1, 1]], metadatas=[{"l": ["a", "b"], "n": [1, 2]}])
        self.assertEqual(notes.get(ids=["l"])["metadatas"], [{"l": ["a", "b"], "n": [1, 2]}])
        self.assertEqual(notes.get(where={"l": {"$contains": "b"}})["ids"], ["l"])
        self.assertEqual(notes.get(where={"n": {"$not_contains": 2}})["ids"], ["a", "b", "c"])

    def test_a_function_is_found_again_by_its_name(self):
        if not OURS:
            return
        self.notes()
        found = self.client.get_collection("notes")
        with self.assertRaisesRegex(ValueError, "three-numbers"):  # never by another model
            found.query(query_texts=["x"])
        chromadb.register_embedding_function(Function)
        self.assertEqual(found.query(query_texts=["the parser"], n_results=1)["ids"][0], found.query(query_embeddings=embed(["the parser"]), n_results=1)["ids"][0])

    def test_mistakes(self):
        notes = self.notes()
        for do in (lambda: notes.add(ids=["x", "x"], embeddings=[[1, 1, 1], [1, 1, 1]]), lambda: notes.add(ids=["x"], embeddings=[[1, 2]]),
                   lambda: notes.add(ids=[], embeddings=[]), lambda: notes.add(ids=["x"]), lambda: notes.add(ids=["x"], embeddings=[[1, 1, 1], [2, 2, 2]]),
                   lambda: notes.add(ids=["x"], embeddings=[[1, 1, 1]], metadatas=[{"k": object()}]), lambda: notes.add(ids=["x"], embeddings=[[1, 1, 1]], metadatas=[{}]),
                   lambda: notes.delete(), lambda: notes.query(query_embeddings=[[1, 2]]), lambda: notes.query(query_embeddings=[[1, 1, 1]], n_results=0),
                   lambda: notes.get(include=["nonsense"]), lambda: notes.query(), lambda: notes.add(ids=[1], embeddings=[[1, 1, 1]])):
            with self.assertRaises(Exception):
                do()
        self.assertEqual(notes.count(), 3)

    def test_it_is_there_again(self):
        self.notes()
        again = chromadb.PersistentClient(self.path)
        self.assertEqual(again.get_collection("notes", embedding_function=Function()).count(), 3)


@unittest.skipUnless(OURS, "about directories of Chroma's own")
class Foreign(unittest.TestCase):
    def test_a_directory_of_chromas_is_not_written_to(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "chroma.sqlite3"), "wb") as file:
                file.write(b"SQLite format 3\0")
            with self.assertRaisesRegex(ValueError, "lode rescue chroma"):
                chromadb.PersistentClient(folder)
            self.assertEqual(os.listdir(folder), ["chroma.sqlite3"])


@unittest.skipUnless(OURS and os.environ.get("LODE_SERVE"), "LODE_SERVE names no running server (HOST:PORT)")
class Http(unittest.TestCase):
    def test_the_same_over_http(self):
        host, port = os.environ["LODE_SERVE"].rsplit(":", 1)
        client = chromadb.HttpClient(host, int(port))
        notes = client.get_or_create_collection("python-http", embedding_function=Function(), metadata={"hnsw:space": "cosine"})
        notes.upsert(ids=["a", "b"], embeddings=[[1, 0], [0, 2]], documents=["x", "y"], metadatas=[{"n": 1}, {"n": 2}])
        self.assertEqual(notes.get()["ids"], ["a", "b"])
        self.assertEqual(rounded(notes.query(query_embeddings=[[1, 0]], n_results=1))["ids"], [["a"]])
        self.assertRaises(chromadb.errors.NotFoundError, client.get_collection, "nobody-here")
        client.delete_collection("python-http")


@unittest.skipUnless(OURS, "about our own client")
class Connections(unittest.TestCase):
    """A server that answers the first request of a connection, and treats the second as the test says."""

    def setUp(self):
        self.seen, self.end = [], "drop"
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.serve, daemon=True).start()
        settings = Settings(chroma_server_host="127.0.0.1", chroma_server_http_port=self.listener.getsockname()[1])
        self.backend = HttpBackend(settings, "t", "d", timeout=1)
        self.backend.request("GET", "/api/v2/heartbeat")
        self.addCleanup(self.backend.close)
        self.addCleanup(self.listener.close)

    def serve(self):
        held = []
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            held.append(connection)
            file = connection.makefile("rb")
            for n in range(2):
                head = []
                while not head or head[-1] not in (b"\r\n", b""):
                    head.append(file.readline())
                if head[-1] == b"":
                    break
                length = [int(line[15:]) for line in head if line.lower().startswith(b"content-length:")]
                file.read(length[0] if length else 0)
                self.seen.append(head[0].split()[0].decode())
                if n == 0:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                    if self.end == "idle":
                        break
                elif self.end == "partial":
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{")
            if self.end != "hang":
                connection.shutdown(socket.SHUT_RDWR)

    def test_a_write_is_not_repeated(self):
        with self.assertRaises(ValueError):
            self.backend.request("POST", "/x", {})
        self.assertEqual(self.seen, ["GET", "POST"])

    def test_a_read_is_repeated_once(self):
        self.assertEqual(self.backend.request("POST", "/x", {}, reads=True), {})
        self.assertEqual(self.seen, ["GET", "POST", "POST"])

    def test_nothing_is_repeated_after_a_part_of_the_answer_or_a_timeout(self):
        for self.end in ("partial", "hang"):
            self.seen.clear()
            if self.end == "hang":
                self.backend.request("GET", "/y")
            with self.assertRaises(ValueError):
                self.backend.request("GET", "/x")
            self.assertEqual(len(self.seen), 1 if self.end == "partial" else 2)

    def test_a_connection_closed_meanwhile_is_opened_again(self):
        self.end = "idle"
        self.backend.request("GET", "/x", None)
        time.sleep(0.2)
        self.assertEqual(self.backend.request("POST", "/x", {}), {})


if __name__ == "__main__":
    unittest.main()
