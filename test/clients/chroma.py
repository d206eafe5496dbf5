"""chroma.py - Python's `chromadb` HttpClient, unchanged, against `lode serve`. Expected values are what the real server answers.

    python chroma.py HOST PORT [TOKEN]        ends with "N passed, N failed"
"""
import sys
import time
import traceback

import chromadb
from chromadb.errors import ChromaError, InvalidArgumentError, NotFoundError

host, port = sys.argv[1], int(sys.argv[2])
headers = {"Authorization": "Bearer " + sys.argv[3]} if len(sys.argv) > 3 else None
settings = chromadb.Settings(anonymized_telemetry=False)
client = chromadb.HttpClient(host=host, port=port, headers=headers, settings=settings)
tests = []


def test(body):
    tests.append(body)


def fails(kind, call):
    try:
        call()
    except kind:
        return
    raise AssertionError("nothing was raised")


def fresh(name, **more):
    try:
        client.delete_collection(name)
    except ChromaError:
        pass
    return client.create_collection(name, embedding_function=None, **more)


def records():
    c = fresh("py-records")
    c.add(
        ids=["i1", "i2", "i3"],
        embeddings=[[11, 1, 2], [12, 1, 2], [11, 1, 2]],
        documents=["hello world", "goodbye moon", "Hello there"],
        metadatas=[{"k": 1, "s": "a", "f": 0.5, "b": True}, {"k": 2, "s": "b"}, None],
    )
    return c


@test
def server_is_alive():
    assert client.heartbeat() > 10**18
    assert client.get_version() == "1.0.0"
    assert client.get_max_batch_size() >= 5461


@test
def collections():
    before = client.count_collections()
    c = fresh("py-one", metadata={"a": 1, "t": True})
    assert c.metadata == {"a": 1, "t": True}
    fails(ChromaError, lambda: client.create_collection("py-one", embedding_function=None))
    assert client.get_or_create_collection("py-one", embedding_function=None).id == c.id
    assert client.get_collection("py-one", embedding_function=None).id == c.id
    assert client.count_collections() == before + 1
    assert "py-one" in [x.name for x in client.list_collections()]
    client.delete_collection("py-one")
    fails(NotFoundError, lambda: client.get_collection("py-one", embedding_function=None))
    fails(NotFoundError, lambda: client.delete_collection("py-one"))


@test
def configuration():
    c = fresh("py-config", configuration={"hnsw": {"space": "cosine", "ef_construction": 50}})
    assert c.configuration["hnsw"]["space"] == "cosine"
    assert c.configuration["hnsw"]["ef_construction"] == 50
    old = fresh("py-config-old", metadata={"hnsw:space": "ip"})
    old.add(ids=["a"], embeddings=[[1, 2]])
    assert old.query(query_embeddings=[[1, 2]])["distances"] == [[-4.0]]
    c.modify(configuration={"hnsw": {"ef_search": 200}})
    assert client.get_collection("py-config", embedding_function=None).configuration["hnsw"]["ef_search"] == 200


@test
def adding_and_getting():
    c = records()
    c.add(ids=["i1"], embeddings=[[1, 1, 1]])  # ignored
    fails(InvalidArgumentError, lambda: c.add(ids=["i9"], embeddings=[[1, 2]]))
    assert c.count() == 3
    got = c.get(include=["embeddings", "documents", "metadatas", "uris"])
    assert got["ids"] == ["i1", "i2", "i3"]
    assert got["embeddings"].tolist() == [[11, 1, 2], [12, 1, 2], [11, 1, 2]]
    assert got["metadatas"] == [{"k": 1, "s": "a", "f": 0.5, "b": True}, {"k": 2, "s": "b"}, None]
    assert got["uris"] == [None, None, None]
    assert c.get(ids=["i3", "zz", "i1"])["ids"] == ["i1", "i3"]
    assert c.get(limit=1, offset=1)["ids"] == ["i2"]
    assert c.peek(1)["ids"] == ["i1"]


@test
def filters():
    c = records()
    assert c.get(where={"k": {"$gte": 2}})["ids"] == ["i2"]
    assert c.get(where={"k": {"$ne": 1}})["ids"] == ["i2", "i3"]
    assert c.get(where={"$or": [{"k": 1}, {"s": {"$in": ["b", "c"]}}]})["ids"] == ["i1", "i2"]
    assert c.get(where_document={"$contains": "hello"})["ids"] == ["i1"]
    assert c.get(where_document={"$not_contains": "hello"})["ids"] == ["i2", "i3"]
    assert c.get(where_document={"$regex": "(?i)HELLO"})["ids"] == ["i1", "i3"]


@test
def queries():
    c = records()
    got = c.query(query_embeddings=[[5, 1, 2]], n_results=2)
    assert got["ids"] == [["i1", "i3"]] and got["distances"] == [[36.0, 36.0]]
    got = c.query(query_embeddings=[[1, 2, 3], [9, 9, 9]], n_results=5, where={"k": {"$gt": 0}})
    assert got["ids"] == [["i1", "i2"], ["i1", "i2"]] and got["distances"] == [[102.0, 123.0], [117.0, 122.0]]
    assert c.query(query_embeddings=[[1, 2, 3]], ids=["i2", "nobody"], n_results=10)["ids"] == [["i2"]]
    fails(InvalidArgumentError, lambda: c.query(query_embeddings=[[1, 2]]))
    assert fresh("py-empty").query(query_embeddings=[[1, 2]])["ids"] == [[]]


@test
def changing_and_deleting():
    c = records()
    c.update(ids=["i1", "nope"], metadatas=[{"k": 10, "s": None}, {"a": 1}])
    assert c.get(ids=["i1"])["metadatas"] == [{"k": 10, "f": 0.5, "b": True}]
    c.upsert(ids=["i2", "i4"], embeddings=[[7, 1, 2], [3, 1, 2]], documents=["up", "ups"])
    assert c.get()["documents"] == ["hello world", "up", "Hello there", "ups"]
    c.delete(ids=["i1"])
    c.delete(where={"k": 2})
    c.delete(where_document={"$contains": "ups"})
    assert c.get()["ids"] == ["i3"]


@test
def renaming():
    try:
        client.delete_collection("py-renamed")
    except ChromaError:
        pass
    c = fresh("py-rename")
    c.modify(name="py-renamed", metadata={"z": 1})
    again = client.get_collection("py-renamed", embedding_function=None)
    assert again.id == c.id and again.metadata == {"z": 1}


@test
def tenants_and_databases():
    admin = chromadb.AdminClient(chromadb.Settings(
        chroma_api_impl="chromadb.api.fastapi.FastAPI", chroma_server_host=host, chroma_server_http_port=port,
        chroma_server_headers=headers, anonymized_telemetry=False))
    tenant, database = "tenant-%d" % time.time_ns(), "database"
    fails(ChromaError, lambda: admin.get_tenant(tenant))
    admin.create_tenant(tenant)
    admin.create_database(database, tenant)
    fails(ChromaError, lambda: admin.create_database(database, tenant))
    other = chromadb.HttpClient(host=host, port=port, headers=headers, settings=settings, tenant=tenant, database=database)
    c = other.create_collection("py-records", embedding_function=None)
    c.add(ids=["only"], embeddings=[[1]])
    assert other.count_collections() == 1 and c.count() == 1
    admin.delete_database(database, tenant)


passed = failed = 0
for body in tests:
    try:
        body()
        passed += 1
    except Exception:  # a test program: whatever it is, it is a failure
        failed += 1
        print("FAILED " + body.__name__)
        traceback.print_exc(file=sys.stdout)
print("%d passed, %d failed" % (passed, failed))
sys.exit(failed != 0)
