"""Libraries on chromadb's interface, unchanged, on lode.chroma: python libraries.py [ADDRESS of a `lode serve`]. Prints "N passed, N failed"; a
library that is not installed is left out, and named."""
import asyncio
import os
import sys
import tempfile
import traceback

import lode.chroma

lode.chroma.install()
os.environ.update(MEM0_TELEMETRY="False", CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", ANONYMIZED_TELEMETRY="False")
HOST, PORT = sys.argv[1].rsplit(":", 1) if len(sys.argv) > 1 else (None, None)


def client():
    import chromadb
    return chromadb.HttpClient(HOST, int(PORT)) if HOST else chromadb.PersistentClient(tempfile.mkdtemp(dir=FOLDER))


def langchain():
    from langchain_chroma import Chroma
    from langchain_core.embeddings import DeterministicFakeEmbedding
    store = Chroma("langchain-notes", DeterministicFakeEmbedding(size=8), client=client())
    ids = store.add_texts(["foo", "bar", "baz"], metadatas=[{"n": 1}, {"n": 2}, {"n": 3}])
    found = store.similarity_search_with_score("foo", k=2)
    assert found[0][0].page_content == "foo" and found[0][1] < 1e-3, found
    assert [d.page_content for d in store.similarity_search("foo", k=5, filter={"n": 2})] == ["bar"]
    assert len(store.max_marginal_relevance_search("foo", k=2)) == 2
    store.update_document(ids[1], found[0][0])
    store.delete([ids[0]])
    assert len(store.get()["ids"]) == 2
    store.reset_collection()
    store.delete_collection()


def llama_index():
    from llama_index.core.schema import TextNode
    from llama_index.core.vector_stores.types import ExactMatchFilter, MetadataFilters, VectorStoreQuery
    from llama_index.vector_stores.chroma import ChromaVectorStore
    collection = client().get_or_create_collection("llama-notes")
    store = ChromaVectorStore(chroma_collection=collection)
    store.add([TextNode(text="hello", id_="n1", embedding=[1.0, 0, 0], metadata={"k": "v"}), TextNode(text="world", id_="n2", embedding=[0, 1.0, 0])])
    assert store.query(VectorStoreQuery(query_embedding=[1.0, 0.1, 0], similarity_top_k=1)).ids == ["n1"]
    filters = MetadataFilters(filters=[ExactMatchFilter(key="k", value="v")])
    assert store.query(VectorStoreQuery(query_embedding=[0, 1.0, 0], similarity_top_k=2, filters=filters)).ids == ["n1"]
    store.delete_nodes(["n1"])
    assert collection.count() == 1
    store.clear()
    assert collection.count() == 0


def mem0():
    from mem0.vector_stores.chroma import ChromaDB
    store = ChromaDB("mem0-notes", client=client())
    store.insert([[1.0, 0, 0], [0, 1.0, 0]], [{"n": 1}, {"n": 2}], ["x", "y"])
    assert store.search("q", [[1.0, 0, 0]], top_k=1)[0].id == "x"
    store.update("x", [0.5, 0.5, 0], {"n": 5})
    assert store.get("x").payload["n"] == 5
    store.delete("y")
    assert len(store.list()[0]) == 1 and store.list_cols()
    store.delete_col()


def autogen():
    from autogen_core.memory import MemoryContent, MemoryMimeType
    from autogen_ext.memory.chromadb import ChromaDBVectorMemory, HttpChromaDBVectorMemoryConfig, PersistentChromaDBVectorMemoryConfig
    config = HttpChromaDBVectorMemoryConfig(collection_name="autogen-notes", host=HOST, port=int(PORT)) if HOST else \
        PersistentChromaDBVectorMemoryConfig(collection_name="autogen-notes", persistence_path=tempfile.mkdtemp(dir=FOLDER))

    async def work():
        memory = ChromaDBVectorMemory(config=config)
        await memory.add(MemoryContent(content="the sky is blue", mime_type=MemoryMimeType.TEXT, metadata={"t": "x"}))
        assert len((await memory.query("the colour of the sky")).results) == 1
        await memory.clear()
        await memory.close()
    asyncio.run(work())


def crewai():
    from crewai.rag.chromadb.client import ChromaDBClient
    from crewai.rag.chromadb.config import ChromaDBConfig
    from chromadb.utils.embedding_functions import DefaultEmbeddingFunction
    ChromaDBConfig()
    store = ChromaDBClient(client=client(), embedding_function=DefaultEmbeddingFunction())
    store.get_or_create_collection(collection_name="crewai-notes")
    store.add_documents(collection_name="crewai-notes", documents=[{"content": "hello world", "metadata": {"a": "b"}}])
    assert len(store.search(collection_name="crewai-notes", query="hello", limit=2, score_threshold=0.0)) == 1
    store.delete_collection(collection_name="crewai-notes")


passed = failed = 0
with tempfile.TemporaryDirectory() as FOLDER:
    for name, work in (("langchain_chroma", langchain), ("llama_index.vector_stores.chroma", llama_index), ("mem0", mem0), ("autogen_ext", autogen),
                       ("crewai", crewai)):
        try:
            __import__(name)
        except ImportError as why:
            print("skipped: %s (%s)" % (name, why))
            continue
        try:
            work()
            passed += 1
        except Exception:
            failed += 1
            print("FAIL: %s" % name)
            traceback.print_exc(limit=-6)
print("%d passed, %d failed" % (passed, failed))
sys.exit(failed > 0)
