"""Unusual calls, made to the chromadb package and to lode.chroma: the answers must be the same, and where one raises, the other must
too, with an exception that the same `except` would catch. Needs an interpreter that has chromadb.

Left out, because the answers differ and ours are meant: a list of whole numbers contains 2.0 when it contains 2; delete() counts the records
that were there, not the ids that were given; None in the metadata of add() is left out instead of refused, as before 1.0;
and lists of deleted records do not come back in later ones."""
import os
import tempfile
import unittest

os.environ["ANONYMIZED_TELEMETRY"] = "False"
try:
    import chromadb
    from chromadb.config import Settings
except ImportError:
    chromadb = None
import lode.chroma

from test_chroma import Function, rounded


class Other(Function):
    @staticmethod
    def name():
        return "another"

    def get_config(self):
        return {"size": 3}


KINDS = ("NotFoundError", "DuplicateIDError", "UniqueConstraintError", "InvalidDimensionException", "InvalidArgumentError", "InternalError",
         "TypeError", "ValueError")
# Chroma's own ones differ from version to version and from local to HTTP; programs catch these as one
SAME = {"DuplicateIDError": "ValueError", "UniqueConstraintError": "ValueError", "InvalidDimensionException": "ValueError",
        "InvalidArgumentError": "ValueError", "InternalError": "ValueError"}


def kind_of(why):
    for kind in (k.__name__ for k in type(why).__mro__):
        if kind in KINDS:
            return SAME.get(kind, kind)
    return type(why).__name__


def told(collection):
    return {"name": collection.name, "metadata": collection.metadata, "configuration": collection.configuration_json, "count": collection.count()}


def filled(client, name="notes", **how):
    notes = client.create_collection(name, embedding_function=Function(), **how)
    notes.add(ids=["a", "b", "c", "d", "e"], embeddings=[[1, 0, 0], [0, 2, 0], [1, 1, 0.5], [3, 3, 3], [0, 0, 1]],
              documents=["the parser", "a lexer", "Trees", None, "the end"],
              metadatas=[{"n": 1, "tags": ["x", "y"]}, {"n": 2.5, "tags": ["y"]}, {"n": 3, "ok": True, "nums": [1, 2]}, None, {"n": -1, "ok": False, "s": "x"}])
    return notes


WHERES = ({"n": 1}, {"n": 1.0}, {"n": True}, {"ok": True}, {"ok": 1}, {"n": {"$gt": 1}}, {"n": {"$gte": 1.0}}, {"n": {"$lt": 0}}, {"n": {"$lte": 2.5}}, {"n": {"$ne": 1}}, {"s": {"$ne": "x"}},
          {"n": {"$in": [1, 3]}}, {"n": {"$in": [1, 2.5]}}, {"s": {"$nin": ["x"]}}, {"tags": {"$contains": "y"}}, {"tags": {"$not_contains": "y"}}, {"nums": {"$contains": 2}},
          {"tags": "y"}, {"tags": {"$ne": "y"}}, {"s": {"$contains": "x"}}, {"nobody": {"$ne": 1}}, {"nobody": 1}, {"nobody": {"$nin": [1]}},
          {"s": {"$gt": "a"}}, {"$and": [{"n": 1}]}, {"$and": [{"n": {"$gt": 0}}, {"ok": True}]}, {"$or": [{"n": 1}, {"$and": [{"ok": False}, {"s": "x"}]}]}, {"$or": []},
          {"n": {"$in": []}}, {"n": {"$in": [1, "x"]}}, {"n": {"$foo": 1}}, {"n": {}}, {"$not": {"n": 1}}, {"n": None}, {"n": [1]}, {"a": 1, "b": 2}, {"$contains": "x"}, {"n": {"$gt": 1, "$lt": 3}})
DOCUMENTS = ({"$contains": "the"}, {"$not_contains": "the"}, {"$contains": "THE"}, {"$regex": "^[A-Z]"}, {"$not_regex": "e"}, {"$contains": ""}, {"$contains": 1}, {"$foo": "x"},
             {"$and": [{"$contains": "the"}, {"$contains": "end"}]}, {"$or": [{"$contains": "lexer"}, {"$contains": "Trees"}]}, {"$and": [{"$contains": "the"}]}, {},
             {"$and": [{"$contains": "the"}, {"$or": [{"$contains": "end"}, {"$not_contains": "p"}]}]})
INCLUDES = ([], ["documents"], ["embeddings", "uris"], ["metadatas", "documents", "embeddings", "uris"], ["distances"], "documents", None)


def scenes():
    """(name, function of a client and a filled collection)"""
    for where in WHERES:
        yield "get where %s" % where, lambda c, n, w=where: n.get(where=w)["ids"]
        yield "query where %s" % where, lambda c, n, w=where: n.query(query_embeddings=[[1, 0, 0]], where=w)["ids"]
    for where in DOCUMENTS:
        yield "get where_document %s" % where, lambda c, n, w=where: n.get(where_document=w)["ids"]
    for include in INCLUDES:
        yield "get include %s" % include, lambda c, n, i=include: n.get(include=i)
        yield "query include %s" % include, lambda c, n, i=include: n.query(query_embeddings=[[1, 0, 0], [0, 1, 0]], n_results=2, include=i)
    for limit, offset in ((None, None), (2, None), (None, 2), (2, 4), (0, None), (2, 99), (-1, None), (2, -1)):
        yield "get limit %s offset %s" % (limit, offset), lambda c, n, l=limit, o=offset: n.get(limit=l, offset=o)["ids"]
        yield "get ids limit %s offset %s" % (limit, offset), lambda c, n, l=limit, o=offset: n.get(ids=["e", "a", "c"], limit=l, offset=o)["ids"]
    yield "get no ids", lambda c, n: n.get(ids=[])
    yield "get one id", lambda c, n: n.get(ids="c")
    yield "get ids twice", lambda c, n: n.get(ids=["c", "c"])["ids"]
    yield "get ids where", lambda c, n: n.get(ids=["a", "b"], where={"n": {"$gt": 1}})["ids"]
    yield "get everything", lambda c, n: n.get(ids=["a"], where={"n": 1}, where_document={"$contains": "parser"}, include=["metadatas"])
    yield "peek", lambda c, n: n.peek()
    yield "peek 2", lambda c, n: n.peek(2)
    yield "peek 0", lambda c, n: n.peek(0)
    for k in (1, 3, 100, 0, -1, "2", 2.5):
        yield "query n_results %r" % (k,), lambda c, n, k=k: n.query(query_embeddings=[[1, 0, 0]], n_results=k)
    yield "query one vector", lambda c, n: n.query(query_embeddings=[1, 0, 0], n_results=1)
    yield "query texts", lambda c, n: n.query(query_texts=["the parser", "zebra"], n_results=2)
    yield "query a text", lambda c, n: n.query(query_texts="the parser", n_results=2)
    yield "query ids", lambda c, n: n.query(query_embeddings=[[1, 0, 0]], ids=["b", "d"])
    yield "query nothing", lambda c, n: n.query()
    yield "query both", lambda c, n: n.query(query_embeddings=[[1, 0, 0]], query_texts=["x"])
    yield "query empty", lambda c, n: n.query(query_embeddings=[])
    yield "query no texts", lambda c, n: n.query(query_texts=[])
    yield "query other dimension", lambda c, n: n.query(query_embeddings=[[1, 0]])
    yield "query matching nothing", lambda c, n: n.query(query_embeddings=[[1, 0, 0]], where={"n": 77})
    yield "query of an empty one", lambda c, n: c.create_collection("empty", embedding_function=Function()).query(query_embeddings=[[1, 0, 0]])
    yield "get of an empty one", lambda c, n: c.create_collection("empty", embedding_function=Function()).get()

    def after(do):
        def both(c, n, do=do):
            answer = do(n)
            return answer, rounded(n.get(include=["documents", "metadatas", "embeddings", "uris"])), n.count()
        return both
    for name, do in (
            ("update of unknown ids", lambda n: n.update(ids=["nobody", "a"], documents=["x", "y"])),
            ("update of a document alone", lambda n: n.update(ids=["a"], documents=["longer than it was"])),
            ("update of metadata alone", lambda n: n.update(ids=["a", "d"], metadatas=[{"n": None, "new": 1}, {"x": "y"}])),
            ("update of a vector alone", lambda n: n.update(ids=["a"], embeddings=[[7, 7, 7]])),
            ("update of nothing", lambda n: n.update(ids=["a"])),
            ("update with another dimension", lambda n: n.update(ids=["a"], embeddings=[[7, 7]])),
            ("update with lengths that differ", lambda n: n.update(ids=["a", "b"], documents=["x"])),
            ("update with empty metadata", lambda n: n.update(ids=["a"], metadatas=[{}])),
            ("update to an empty document", lambda n: n.update(ids=["a"], documents=[""])),
            ("update of a uri", lambda n: n.update(ids=["a"], uris=["file:///a"], embeddings=[[1, 2, 3]])),
            ("upsert of metadata", lambda n: n.upsert(ids=["a", "z"], embeddings=[[1, 1, 1], [2, 2, 2]], metadatas=[{"m": 1}, {"m": 2}])),
            ("upsert of a document", lambda n: n.upsert(ids=["a"], documents=["other"])),
            ("upsert without anything", lambda n: n.upsert(ids=["a"])),
            ("upsert of metadata alone", lambda n: n.upsert(ids=["a"], metadatas=[{"m": 1}])),
            ("upsert without metadata for one", lambda n: n.upsert(ids=["a", "z"], embeddings=[[1, 1, 1], [2, 2, 2]], metadatas=[None, {"m": 2}])),
            ("add with uris", lambda n: n.add(ids=["u"], embeddings=[[1, 1, 1]], uris=["file:///u"], metadatas=[{"k": 1}])),
            ("add of an empty list", lambda n: n.add(ids=["l"], embeddings=[[1, 1, 1]], metadatas=[{"l": []}])),
            ("add of a mixed list", lambda n: n.add(ids=["l"], embeddings=[[1, 1, 1]], metadatas=[{"l": [1, "a"]}])),
            ("add of a number as key", lambda n: n.add(ids=["l"], embeddings=[[1, 1, 1]], metadatas=[{1: "x"}])),
            ("add of an object", lambda n: n.add(ids=["l"], embeddings=[[1, 1, 1]], metadatas=[{"o": {"a": 1}}])),
            ("add of the document's key", lambda n: n.add(ids=["l"], embeddings=[[1, 1, 1]], metadatas=[{"chroma:document": "x"}])),
            ("add of words for a vector", lambda n: n.add(ids=["l"], embeddings=[["x", "y", "z"]])),
            ("add of a text", lambda n: n.add(ids="t", documents="one text")),
            ("add of a number as document", lambda n: n.add(ids=["t"], documents=[5])),
            ("add of a known id", lambda n: n.add(ids=["a", "new"], embeddings=[[9, 9, 9], [8, 8, 8]], documents=["p", "q"])),
            ("add of an empty id", lambda n: n.add(ids=[""], embeddings=[[9, 9, 9]])),
            ("add of ids twice", lambda n: n.add(ids=["q", "q"], embeddings=[[9, 9, 9], [9, 9, 9]])),
            ("delete by document", lambda n: n.delete(where_document={"$contains": "the"})),
            ("delete by both", lambda n: n.delete(where={"n": {"$gt": 0}}, where_document={"$contains": "the"})),
            ("delete of ids by where", lambda n: n.delete(ids=["a", "b"], where={"n": 1})),
            ("delete of nobody", lambda n: n.delete(ids=["nobody"]) and None),
            ("delete of no ids", lambda n: n.delete(ids=[])),
            ("delete without anything", lambda n: n.delete()),
            ("delete by an empty where", lambda n: n.delete(where={})),
            ("delete with a limit", lambda n: n.delete(where={"n": {"$gt": 0}}, limit=1) and None)):
        yield name, after(do)

    yield "modify the name", lambda c, n: (n.modify(name="other"), told(c.get_collection("other", embedding_function=Function())), [x.name for x in c.list_collections()])
    yield "modify the metadata", lambda c, n: (n.modify(metadata={"k": "v"}), told(n), told(c.get_collection("notes", embedding_function=Function())))
    yield "modify to no metadata", lambda c, n: n.modify(metadata={})
    yield "modify the space", lambda c, n: n.modify(metadata={"hnsw:space": "ip"})
    yield "modify to a bad name", lambda c, n: n.modify(name="x")
    yield "modify to a taken name", lambda c, n: (c.create_collection("taken", embedding_function=Function()), n.modify(name="taken"))
    yield "modify the configuration", lambda c, n: (n.modify(configuration={"hnsw": {"ef_search": 55}}), told(c.get_collection("notes", embedding_function=Function())))
    yield "modify nothing", lambda c, n: (n.modify(), told(n))
    yield "list", lambda c, n: [told(x) for x in c.list_collections()]
    for limit, offset in ((1, None), (None, 1), (2, 1), (0, None), (5, 5)):
        yield "list limit %s offset %s" % (limit, offset), lambda c, n, l=limit, o=offset: (
            [c.create_collection("more-%d" % i, embedding_function=Function()) and None for i in range(3)], len(c.list_collections(limit=l, offset=o)))
    yield "count collections", lambda c, n: c.count_collections()
    yield "get or create: there", lambda c, n: told(c.get_or_create_collection("notes", metadata={"other": 1}, embedding_function=Function()))
    yield "get or create: new", lambda c, n: told(c.get_or_create_collection("new-one", metadata={"other": 1}, embedding_function=Function()))
    yield "get or create: another function", lambda c, n: c.get_or_create_collection("notes", embedding_function=Other()) and None
    yield "get with another function", lambda c, n: c.get_collection("notes", embedding_function=Other()) and None
    yield "get without a function", lambda c, n: told(c.get_collection("notes", embedding_function=None))
    yield "create twice", lambda c, n: c.create_collection("notes", embedding_function=Function())
    yield "create, or get", lambda c, n: told(c.create_collection("notes", embedding_function=Function(), get_or_create=True))
    yield "create with metadata", lambda c, n: told(c.create_collection("mmm", metadata={"hnsw:space": "cosine", "hnsw:M": 8, "x": 1}, embedding_function=Function()))
    yield "create with a configuration", lambda c, n: told(c.create_collection("mmm", configuration={"hnsw": {"space": "ip", "ef_search": 33}}, embedding_function=Function()))
    yield "create with another function", lambda c, n: told(c.create_collection("mmm", embedding_function=Other()))
    yield "create without a function", lambda c, n: told(c.create_collection("mmm", embedding_function=None))
    yield "create with a bad space", lambda c, n: c.create_collection("mmm", configuration={"hnsw": {"space": "far"}}, embedding_function=Function())
    yield "create with empty metadata", lambda c, n: told(c.create_collection("mmm", metadata={}, embedding_function=Function()))
    for name in ("ab", "a" * 513, "_abc", "abc_", "a..b", "a b c", "127.0.0.1", "\u00fcml", ""):
        yield "create %.20r" % name, lambda c, n, name=name: c.create_collection(name, embedding_function=Function()).name
    yield "no such collection", lambda c, n: c.get_collection("nobody")
    yield "delete no such collection", lambda c, n: c.delete_collection("nobody")
    yield "use of a deleted one", lambda c, n: (c.delete_collection("notes"), n.count())
    yield "delete and make again", lambda c, n: (c.delete_collection("notes"), told(filled(c)))
    yield "names", lambda c, n: (c.tenant if hasattr(c, "tenant") else None, c.database, n.tenant, n.database)
    yield "a tenant that is not there", lambda c, n: c.set_tenant("nobody")
    yield "a database that is not there", lambda c, n: c.set_database("nobody")
    yield "reset", lambda c, n: c.reset()
    for space in ("l2", "cosine", "ip"):
        yield "distances by %s" % space, lambda c, n, s=space: filled(c, "spaced", configuration={"hnsw": {"space": s}}).query(query_embeddings=[[1, 2, 3], [0, 0, 0]])


@unittest.skipUnless(chromadb, "chromadb is not installed here")
class Differential(unittest.TestCase):
    def test_unusual_calls(self):
        with tempfile.TemporaryDirectory() as folder:
            theirs = chromadb.PersistentClient(os.path.join(folder, "chroma"), settings=Settings(anonymized_telemetry=False))
            ours = lode.chroma.PersistentClient(os.path.join(folder, "lode"))
            for name, do in scenes():
                answers = []
                for client in (theirs, ours):
                    for collection in client.list_collections():
                        client.delete_collection(collection.name)
                    notes = filled(client)
                    try:
                        answers.append(rounded(do(client, notes)))
                    except Exception as why:
                        answers.append(("raises", kind_of(why), str(why) if os.environ.get("LODE_VERBOSE") else ""))
                if os.environ.get("LODE_VERBOSE"):
                    if rounded(answers[0]) != rounded(answers[1]) and not all(isinstance(a, tuple) and a[:2] == answers[0][:2] and a[0] == "raises" for a in answers):
                        print("%s\n   theirs %s\n   ours   %s" % (name, answers[0], answers[1]))
                    continue
                with self.subTest(name):
                    self.assertEqual(answers[0], answers[1])
            ours.close()


if __name__ == "__main__":
    unittest.main()
