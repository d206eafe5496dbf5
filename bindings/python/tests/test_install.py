"""`import chromadb` as lode.chroma: every module that libraries use, schemas, shared stores, clients that wait, tenants. LODE_SERVE=ADDRESS
names a running `lode serve --allow-reset`: then the same is done over HTTP."""
import asyncio
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

import lode.chroma as chromadb
from lode.chroma import Schema, VectorIndexConfig
from lode.chroma.api.types import FtsIndexConfig, IntInvertedIndexConfig, SparseVectorIndexConfig, StringInvertedIndexConfig

from lode.chroma.utils.batch_utils import create_batches

SERVER = os.environ.get("LODE_SERVE")
MODULES = """config api api.client api.async_client api.types api.models api.models.Collection api.models.AsyncCollection api.collection_configuration
    api.configuration api.shared_system_client utils utils.embedding_functions utils.embedding_functions.openai_embedding_function
    utils.embedding_functions.ollama_embedding_function utils.embedding_functions.onnx_mini_lm_l6_v2 utils.batch_utils utils.data_loaders types errors
    execution.expression execution.expression.operator execution.expression.plan""".split()


@chromadb.register_embedding_function
class Letters(chromadb.EmbeddingFunction[chromadb.Documents]):
    """Counts of a and b: a model that needs no file."""

    def __call__(self, input):
        return [[float(text.count("a")) + 0.1, float(text.count("b")) + 0.1] for text in input]

    @staticmethod
    def name():
        return "letters-of-the-test"


def python(program, *arguments, **env):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program)] + list(arguments), capture_output=True, text=True, timeout=120,
                          env=dict(os.environ, **env))


class Installed(unittest.TestCase):
    def test_all_modules_are_the_same_under_both_names(self):
        names = ["chromadb"] + ["chromadb." + name for name in MODULES]
        done = python("""
            import importlib, sys
            import lode.chroma
            lode.chroma.install()
            lode.chroma.install()   # a second time is nothing
            for name in sys.argv[1:]:
                assert importlib.import_module(name) is importlib.import_module(name.replace("chromadb", "lode.chroma", 1)), name
            import chromadb
            from chromadb.api.models.Collection import Collection
            from chromadb.config import Settings
            client = chromadb.Client(Settings(anonymized_telemetry=False))
            notes = client.create_collection("notes", embedding_function=None)
            assert isinstance(client, chromadb.ClientAPI) and isinstance(client, chromadb.api.client.Client)
            assert isinstance(notes, Collection) and isinstance(notes, chromadb.Collection)
            try:
                import chromadb.nothing
            except ModuleNotFoundError:
                print("good")
        """, *names)
        self.assertEqual(done.stdout.strip(), "good", done.stderr)

    def test_not_after_chromadb_itself(self):
        done = python("""
            import sys, types
            sys.modules["chromadb"] = types.ModuleType("chromadb")
            import lode.chroma
            lode.chroma.install()
        """)
        self.assertIn("imported already", done.stderr)

    def test_programs_are_run_with_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            with open(path, "w") as file:
                file.write("import sys, chromadb, beside\nprint(chromadb.__name__, __name__, sys.argv[1:], beside.x)\n")
            with open(os.path.join(folder, "beside.py"), "w") as file:
                file.write("x = 7\n")
            done = subprocess.run([sys.executable, "-m", "lode.chroma", path, "one", "--two"], capture_output=True, text=True, timeout=120)
            self.assertEqual(done.stdout.strip(), "lode.chroma __main__ ['one', '--two'] 7", done.stderr)
            done = subprocess.run([sys.executable, "-m", "lode.chroma", "-m", "program", "x"], capture_output=True, text=True, timeout=120, cwd=folder)
            self.assertEqual(done.stdout.strip(), "lode.chroma __main__ ['x'] 7", done.stderr)
            for wrong in ([], ["-m"], ["no-such-program"]):
                self.assertEqual(subprocess.run([sys.executable, "-m", "lode.chroma"] + wrong, capture_output=True, timeout=120).returncode, 2)


class Local(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = folder.name
        self.client = self.connect()
        self.addCleanup(self.client.close)

    def connect(self):
        return chromadb.PersistentClient(self.path)

    def admin(self):
        return chromadb.AdminClient(chromadb.Settings(is_persistent=True, persist_directory=self.path))

    def fresh(self, name, **options):
        try:
            self.client.delete_collection(name)
        except chromadb.errors.NotFoundError:
            pass
        return self.client.create_collection(name, **options)

    # ---- Schemas

    def test_a_schema_says_the_space_and_the_function(self):
        schema = Schema().create_index(config=VectorIndexConfig(space="cosine", embedding_function=Letters()))
        notes = self.fresh("by-schema", schema=schema)
        self.assertEqual(notes.configuration_json["hnsw"]["space"], "cosine")
        notes.add(ids=["a", "b"], documents=["aaaaaaaa", "b"])
        found = notes.query(query_texts=["aab"])
        self.assertEqual(found["ids"], [["a", "b"]])  # by l2 it would be b
        self.assertLess(found["distances"][0][0], 0.2)
        again = self.client.get_collection("by-schema")
        self.assertEqual(again.query(query_texts=["b"])["ids"], [["b", "a"]])
        shown = again.schema
        self.assertEqual(shown.keys["#embedding"].float_list.vector_index.config.space, "cosine")
        self.assertEqual(shown.keys["#embedding"].float_list.vector_index.config.embedding_function.name(), Letters.name())
        self.assertTrue(shown.defaults.string.string_inverted_index.enabled)
        again.modify(configuration={"hnsw": {"ef_search": 44}})
        again = self.client.get_collection("by-schema")
        self.assertEqual(again.schema.keys["#embedding"].float_list.vector_index.config.hnsw.ef_search, 44)
        self.assertEqual(again.configuration_json["hnsw"]["space"], "cosine")

    def test_the_space_of_the_function_counts_where_none_is_given(self):
        class Cosine(Letters):
            def default_space(self):
                return "cosine"
        for options in ({"embedding_function": Cosine()}, {"configuration": {"embedding_function": Cosine()}},
                        {"schema": Schema().create_index(config=VectorIndexConfig(embedding_function=Cosine()))}):
            self.assertEqual(self.fresh("by-function", **options).configuration_json["hnsw"]["space"], "cosine", options)
        said = self.fresh("by-function", embedding_function=Cosine(), configuration={"hnsw": {"space": "ip"}})
        self.assertEqual(said.configuration_json["hnsw"]["space"], "ip")

    def test_what_a_schema_does_not_index_is_no_filter(self):
        schema = Schema().delete_index(config=StringInvertedIndexConfig(), key="k").delete_index(config=IntInvertedIndexConfig())
        schema.delete_index(config=FtsIndexConfig(), key="#document")
        notes = self.fresh("unindexed", schema=schema, embedding_function=None)
        notes.add(ids=["a"], embeddings=[[1.0]], documents=["text"], metadatas=[{"k": "v", "l": "w", "n": 1}])
        self.assertEqual(notes.get(where={"l": "w"})["ids"], ["a"])
        for where in ({"k": "v"}, {"n": {"$gt": 0}}, {"$and": [{"l": "w"}, {"$or": [{"l": "x"}, {"n": {"$in": [1]}}]}]}):
            with self.assertRaisesRegex(ValueError, "indexing is disabled"):
                notes.get(where=where)
            with self.assertRaisesRegex(ValueError, "indexing is disabled"):
                notes.delete(where=where)
        with self.assertRaisesRegex(ValueError, "full-text"):
            self.client.get_collection("unindexed", embedding_function=None).query(query_embeddings=[[1.0]], where_document={"$contains": "t"})
        self.assertEqual(notes.count(), 1)

    def test_what_cannot_be_honoured_is_refused(self):
        sparse = Schema().create_index(config=SparseVectorIndexConfig(), key="s")
        cosine = Schema().create_index(config=VectorIndexConfig(space="cosine"))
        for schema, options, text in ((sparse, {}, "Sparse"), (cosine, {"configuration": {"hnsw": {"space": "ip"}}}, "both"), (Schema().set_cmek({"gcp": "x"}), {}, "encryption")):
            with self.assertRaisesRegex(ValueError, text):
                self.fresh("refused", schema=schema, **options)
            with self.assertRaises(chromadb.errors.NotFoundError):
                self.client.get_collection("refused")
        for call in (lambda: Schema().create_index(), lambda: Schema().create_index(config=VectorIndexConfig(), key="k"), lambda: VectorIndexConfig(space="x"),
                     lambda: Schema().create_index(config=FtsIndexConfig()), lambda: Schema().delete_index(config=VectorIndexConfig()),
                     lambda: Schema().create_index(config=IntInvertedIndexConfig(), key="#embedding"), lambda: VectorIndexConfig(shape=1),
                     lambda: self.fresh("refused", configuration={"hnsw": {}, "spann": {}})):
            self.assertRaises(ValueError, call)

    # ---- Clients

    def test_a_source_key_is_a_metadata_key_or_the_documents(self):
        for kind in (chromadb.VectorIndexConfig, chromadb.SparseVectorIndexConfig):
            self.assertEqual(kind(source_key=chromadb.K.DOCUMENT).source_key, "#document")
            for key in ("#embedding", chromadb.K.EMBEDDING):
                with self.assertRaisesRegex(ValueError, "source_key cannot begin with '#'"):
                    kind(source_key=key)
        with self.assertRaisesRegex(ValueError, "Cannot delete index on special key '#document'"):
            chromadb.Schema().delete_index(config=chromadb.StringInvertedIndexConfig(), key=chromadb.K.DOCUMENT)

    def test_ids_and_identity(self):
        notes = self.fresh("notes", embedding_function=None)
        self.assertEqual(self.client.get_collection_by_id(notes.id, embedding_function=None).name, "notes")
        self.assertRaises(chromadb.errors.NotFoundError, self.client.get_collection_by_id, "00000000-0000-0000-0000-000000000000")
        self.assertEqual(self.client.get_user_identity().tenant, "default_tenant")
        self.assertEqual((notes.get_model()["name"], notes.get_model()["version"]), ("notes", 0))
        notes.add(ids=["a"], embeddings=[[1.0]])
        notes.delete(ids=["a"])
        self.assertEqual(notes.get_indexing_status().total_ops, 0)

    def test_tenants_and_databases(self):
        admin, tenant = self.admin(), "tenant-%d" % os.getpid()
        self.addCleanup(admin.close)
        self.assertRaises(chromadb.errors.NotFoundError, admin.get_tenant, tenant)
        admin.create_tenant(tenant)
        self.assertRaises(chromadb.errors.UniqueConstraintError, admin.create_tenant, tenant)
        admin.create_database("base", tenant)
        self.assertEqual(admin.get_tenant(tenant), {"name": tenant})
        self.assertEqual([d["name"] for d in admin.list_databases(tenant=tenant)], ["base"])
        self.assertRaises(ValueError, admin.create_database, "a/b", tenant)
        self.assertRaises(chromadb.errors.NotFoundError, self.client.set_tenant, tenant, "nope")
        self.client.set_tenant(tenant, "base")
        inner = self.client.create_collection("inner", embedding_function=None)
        self.client.set_tenant("default_tenant", "default_database")
        inner.add(ids=["a"], embeddings=[[1.0]])  # it stays where it was made
        self.assertEqual((inner.count(), inner.tenant), (1, tenant))
        self.assertRaises(chromadb.errors.NotFoundError, self.client.get_collection, "inner")
        admin.delete_database("base", tenant)
        self.assertRaises(chromadb.errors.NotFoundError, admin.get_database, "base", tenant)


class Shared(unittest.TestCase):
    def test_closing_one_client_leaves_the_others(self):
        with tempfile.TemporaryDirectory() as folder:
            one, two = chromadb.PersistentClient(folder), chromadb.PersistentClient(folder)
            notes = one.create_collection("notes", embedding_function=None)
            same = two.get_collection("notes", embedding_function=None)
            one.close()
            one.close()
            same.add(ids=["a"], embeddings=[[1.0]])
            self.assertEqual(notes.count(), 1)
            two.close()
            self.assertEqual(notes.count(), 1)  # opened again: the store is still there
            chromadb.PersistentClient(folder).close()
        self.assertRaises(Exception, notes.count)
        self.assertFalse(os.path.exists(folder), "a closed client made its store again")

    def test_get_or_create_while_others_delete(self):
        import threading
        with tempfile.TemporaryDirectory() as folder, chromadb.PersistentClient(folder) as client:
            failures = []

            def create():
                for _ in range(40):
                    try:
                        client.get_or_create_collection("contended", embedding_function=None)
                    except Exception as why:
                        failures.append(why)

            def delete():
                for _ in range(60):
                    try:
                        client.delete_collection("contended")
                    except chromadb.errors.NotFoundError:
                        pass
            threads = [threading.Thread(target=work) for work in (create, create, delete, delete)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])
            gone = client.get_or_create_collection("contended", embedding_function=None)
            client.delete_collection("contended")
            with self.assertRaisesRegex(chromadb.errors.NotFoundError, r"Collection \[contended\] does not exist"):
                gone.count()
            for change in ({"name": "other-name"}, {"metadata": {"a": 1}}):
                with self.assertRaisesRegex(chromadb.errors.NotFoundError, "does not exist"):
                    gone.modify(**change)

    def test_settings_must_agree(self):
        with tempfile.TemporaryDirectory() as folder:
            with chromadb.PersistentClient(folder):
                self.assertRaises(ValueError, chromadb.PersistentClient, folder, chromadb.Settings(allow_reset=True))
            chromadb.PersistentClient(folder, chromadb.Settings(allow_reset=True)).close()

    def test_clients_in_memory_share_it(self):
        one, two = chromadb.EphemeralClient(), chromadb.EphemeralClient()
        one.create_collection("in-memory", embedding_function=None)
        self.assertEqual(two.get_collection("in-memory", embedding_function=None).count(), 0)
        two.delete_collection("in-memory")

    def test_what_is_not_there_says_so(self):
        self.assertRaises(ValueError, chromadb.CloudClient)
        self.assertRaises(ValueError, chromadb.embedding_functions.CohereEmbeddingFunction)
        notes = chromadb.EphemeralClient().create_collection("searched", embedding_function=None)
        self.assertRaises(NotImplementedError, notes.search, chromadb.Search().limit(3))


@unittest.skipUnless(SERVER, "LODE_SERVE names no server")
class Served(Local):
    def connect(self):
        host, port = SERVER.rsplit(":", 1)
        return chromadb.HttpClient(host, int(port))

    def admin(self):
        host, port = SERVER.rsplit(":", 1)
        return chromadb.AdminClient(chromadb.Settings(chroma_api_impl="chromadb.api.fastapi.FastAPI", chroma_server_host=host, chroma_server_http_port=int(port)))

    def test_batches_are_as_the_server_says(self):
        self.assertEqual(self.client.get_max_batch_size(), 5461)
        self.assertEqual(len(create_batches(self.client, ids=["x"] * 6000, documents=["y"] * 6000)), 2)

    def test_async(self):
        host, port = SERVER.rsplit(":", 1)

        async def work():
            client = await chromadb.AsyncHttpClient(host, int(port))
            self.assertIsInstance(client, chromadb.AsyncClientAPI)
            notes = await client.get_or_create_collection("async-notes", embedding_function=None)
            await asyncio.gather(*(notes.upsert(ids=[str(i)], embeddings=[[float(i)]]) for i in range(5)))
            self.assertEqual((await notes.count(), notes.name), (5, "async-notes"))
            self.assertEqual((await notes.query(query_embeddings=[[3.1]], n_results=1))["ids"], [["3"]])
            await client.delete_collection("async-notes")
            with self.assertRaises(chromadb.errors.NotFoundError):
                await client.get_collection("async-notes")
        asyncio.run(work())


if __name__ == "__main__":
    unittest.main()
