"""A stand-in for the chromadb module, over Lode: `import lode.chroma as chromadb` is the whole migration.

    client = chromadb.PersistentClient("palace")
    notes = client.get_or_create_collection("notes", metadata={"hnsw:space": "cosine"})
    notes.add(ids=["a"], documents=["how the parser reads tokens"])     # embedded by MiniLM, offline
    notes.query(query_texts=["parsers"], n_results=3)

A store that this made can be served by `lode serve` at the same time, and read by `lode db`. A directory that Chroma made is never
written to: `lode rescue chroma DIR --to NEW` brings its data over first.
"""
import os
import time
from typing import Any, Dict, Optional, Sequence

from .. import __version__  # noqa: F401
from .._library import numpy
from . import _check, _config, embedding_functions, errors
from ._http import HttpBackend
from ._local import URI, LocalBackend
from .embedding_functions import DefaultEmbeddingFunction, EmbeddingFunction, register_embedding_function
from .errors import AuthorizationError, InvalidArgumentError

DEFAULT_TENANT, DEFAULT_DATABASE = "default_tenant", "default_database"
MAX_BATCH = 100000
_PARTS = {"documents": "document", "metadatas": "metadata", "embeddings": "vector"}
_GET = ("metadatas", "documents")
_QUERY = ("metadatas", "documents", "distances")
_FIELDS = ("ids", "embeddings", "documents", "uris", "included", "data", "metadatas")


class Settings:
    """Accepted and kept; only allow_reset and anonymized_telemetry (there is none) mean something."""

    def __init__(self, **values):
        self.allow_reset = False
        self.anonymized_telemetry = False
        self.__dict__.update(values)


# ---- Collections

class Collection:
    """Of a client; see Client.get_collection."""

    def __init__(self, client, item, embedding_function):
        self._client, self._item, self._embed = client, item, embedding_function
        self._records = client._backend.open(item)

    id = property(lambda self: self._item["id"])
    name = property(lambda self: self._item["name"])
    metadata = property(lambda self: self._item["metadata"])
    tenant = property(lambda self: self._client._backend.tenant)
    database = property(lambda self: self._client._backend.database)

    @property
    def configuration_json(self):
        return self._item["configuration"]

    configuration = configuration_json

    def __repr__(self):
        return "Collection(name=%s)" % self.name

    def __eq__(self, other):
        return isinstance(other, Collection) and self.id == other.id and self.name == other.name

    def __hash__(self):
        return hash(self.id)

    def count(self) -> int:
        return self._records.count()

    def _embeddings(self, texts, query=False):
        function = self._embed
        kept = self._item["configuration"]["embedding_function"]
        if function is None or function is _DEFAULT:  # none was given: the one that the collection was made with
            function = embedding_functions.built(kept) or function
        if function is None:
            raise ValueError("You must provide an embedding function to compute embeddings")
        if query and hasattr(function, "embed_query"):
            return _check.vectors(function.embed_query(texts))
        return _check.vectors(function(texts))

    def _write(self, verb, ids, embeddings, metadatas, documents, images, uris):
        ids = _check.ids(ids)
        if images is not None:
            raise ValueError("images are not supported: embed them and pass embeddings")
        embeddings = _check.vectors(embeddings)
        documents = None if documents is None else _check.many(documents)
        metadatas = None if metadatas is None else _check.many(metadatas)
        uris = None if uris is None else _check.many(uris)
        if verb != "update" and embeddings is None and documents is None and uris is None:
            raise ValueError("You must provide one of embeddings, documents, images, uris")
        for what, column in (("embeddings", embeddings), ("documents", documents), ("metadatas", metadatas), ("uris", uris)):
            if column is not None and len(column) != len(ids):
                raise ValueError("Unequal lengths for fields: ids: %d, %s: %d" % (len(ids), what, len(column)))
        if metadatas is not None:
            metadatas = [_check.metadata(m, removing=verb != "add") for m in metadatas]
        for document in documents or ():
            if document is not None and not isinstance(document, str):
                raise ValueError("Expected document to be a str, got %s" % type(document).__name__)
        if embeddings is None and documents is not None:
            if verb == "update" and any(d is None for d in documents):
                known = [d for d in documents if d is not None]
                made = iter(self._embeddings(known) if known else [])
                embeddings = [None if d is None else next(made) for d in documents]
            else:
                embeddings = self._embeddings(documents)
        if verb != "update" and embeddings is None:
            raise ValueError("You must provide embeddings, or documents to make them of")
        self._records.write(verb, ids, embeddings, documents, metadatas, uris)

    def add(self, ids, embeddings=None, metadatas=None, documents=None, images=None, uris=None) -> None:
        """Adds records; ids that exist are left as they are, as Chroma does."""
        self._write("add", ids, embeddings, metadatas, documents, images, uris)

    def upsert(self, ids, embeddings=None, metadatas=None, documents=None, images=None, uris=None) -> None:
        self._write("upsert", ids, embeddings, metadatas, documents, images, uris)

    def update(self, ids, embeddings=None, metadatas=None, documents=None, images=None, uris=None) -> None:
        self._write("update", ids, embeddings, metadatas, documents, images, uris)

    def delete(self, ids=None, where=None, where_document=None, limit=None) -> Dict[str, int]:
        if ids is None and where is None and where_document is None:
            raise ValueError("You must provide either ids, where, or where_document to delete.")
        if ids is not None:
            ids = _check.ids(ids)
        if where is not None:
            _check.where(where)
        if where_document is not None:
            _check.where_document(where_document)
        if limit is not None:
            _check.page(limit, None)
            if ids is not None:
                raise ValueError("limit can only be specified when a where or where_document clause is provided")
            ids, where, where_document = self.get(where=where, where_document=where_document, limit=limit, include=[])["ids"], None, None
        return {"deleted": self._records.delete(ids, where, where_document) if ids != [] else 0}

    def get(self, ids=None, where=None, limit=None, offset=None, where_document=None, include=_GET) -> Dict[str, Any]:
        include = _check.include(include, ("documents", "metadatas", "embeddings", "uris", "data"))
        if where is not None:
            _check.where(where)
        if where_document is not None:
            _check.where_document(where_document)
        if ids is not None:
            ids = _check.ids(ids)
        _check.page(limit, offset)
        parts = [_PARTS[i] for i in include if i in _PARTS]
        if "uris" in include and "metadata" not in parts:
            parts.append("metadata")
        rows = [] if limit == 0 else self._records.get(ids, where, where_document, limit, offset, parts)
        return self._shape(rows, include)

    @staticmethod
    def _metadata(row):
        if row.metadata is None:
            return None
        kept = {k: v for k, v in row.metadata.items() if k != URI}
        return kept or None

    def _shape(self, rows, include):
        embeddings = [row.vector for row in rows]
        if numpy is not None:
            embeddings = numpy.array(embeddings, dtype=numpy.float32) if rows else numpy.empty((0,), dtype=numpy.float32)
        return {
            "ids": [row.id for row in rows],
            "embeddings": embeddings if "embeddings" in include else None,
            "documents": [row.document for row in rows] if "documents" in include else None,
            "uris": [(row.metadata or {}).get(URI) for row in rows] if "uris" in include else None,
            "included": include,
            "data": None,
            "metadatas": [self._metadata(row) for row in rows] if "metadatas" in include else None,
        }

    def peek(self, limit=10) -> Dict[str, Any]:
        return self.get(limit=limit, include=["metadatas", "documents", "embeddings"])

    def query(self, query_embeddings=None, query_texts=None, query_images=None, query_uris=None, ids=None, n_results=10, where=None,
              where_document=None, include=_QUERY) -> Dict[str, Any]:
        include = _check.include(include, ("documents", "metadatas", "embeddings", "distances", "uris", "data"))
        if query_embeddings is None and query_texts is None:
            if query_images is not None or query_uris is not None:
                raise ValueError("images and uris cannot be embedded: pass query_embeddings or query_texts")
            raise ValueError("You must provide one of query_embeddings, query_texts, query_images, or query_uris")
        _check.n_results(n_results)
        if where is not None:
            _check.where(where)
        if where_document is not None:
            _check.where_document(where_document)
        if ids is not None:
            ids = _check.ids(ids)
        if query_embeddings is not None:  # texts beside them are not looked at
            vectors = _check.vectors(query_embeddings, "query_embeddings")
        else:
            vectors = self._embeddings(_check.many(query_texts), query=True) if len(_check.many(query_texts)) else []
        if not vectors:
            raise ValueError("Expected query_embeddings or query_texts to be a non-empty list")
        parts = [_PARTS[i] for i in include if i in _PARTS]
        answers = self._records.query(vectors, n_results, ids, where, where_document, parts)
        one = [self._shape(rows, include) for rows in answers]
        result: Dict[str, Any] = {"ids": [a["ids"] for a in one]}
        for name in ("embeddings", "documents", "uris", "metadatas"):
            result[name] = [a[name] for a in one] if name in include else None
        result["included"], result["data"] = include, None
        result["distances"] = [[row.distance for row in rows] for rows in answers] if "distances" in include else None
        return result

    def modify(self, name: Optional[str] = None, metadata: Optional[Dict] = None, configuration=None) -> None:
        if name is not None:
            _check.name(name)
        metadata = _check.metadata(metadata)
        if metadata is not None and "hnsw:space" in metadata:
            raise ValueError("Changing the distance function of a collection once it is created is not supported currently.")
        changed = None if configuration is None else _config.changed(self._item["configuration"], configuration)
        self._item = self._client._backend.modify(self._item, name, metadata, changed)

    def fork(self, new_name):
        raise NotImplementedError("fork is not possible on a local store")


# ---- Clients

_DEFAULT = embedding_functions.DEFAULT


class Client:
    """What chromadb's clients are; made by PersistentClient, EphemeralClient and HttpClient."""

    def __init__(self, backend, settings=None):
        self._backend, self._settings = backend, settings or Settings()

    tenant = property(lambda self: self._backend.tenant)
    database = property(lambda self: self._backend.database)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._backend.close()

    def heartbeat(self) -> int:
        return time.time_ns()

    def get_version(self) -> str:
        return "1.0.0"

    def get_settings(self):
        return self._settings

    def get_max_batch_size(self) -> int:
        return MAX_BATCH

    max_batch_size = property(get_max_batch_size)

    def set_tenant(self, tenant, database=DEFAULT_DATABASE):
        self._backend.use(tenant, database)

    def set_database(self, database):
        self._backend.use(self._backend.tenant, database)

    def list_collections(self, limit=None, offset=None) -> Sequence[Collection]:
        items = sorted(self._backend.list(), key=lambda i: i["name"])[offset or 0:]
        return [Collection(self, i, _DEFAULT) for i in (items if limit is None else items[:limit])]

    def count_collections(self) -> int:
        return len(self._backend.list())

    def create_collection(self, name, schema=None, configuration=None, metadata=None, embedding_function=_DEFAULT, data_loader=None,
                          get_or_create=False) -> Collection:
        _check.name(name)
        metadata = _check.metadata(metadata)
        kept = _config.new(configuration, metadata, embedding_function)
        item = self._backend.create(name, metadata, kept, get_or_create)
        if get_or_create:
            _config.check_function(embedding_function, item["configuration"]["embedding_function"])
        given = (configuration or {}).get("embedding_function")
        return Collection(self, item, embedding_function if given is None else given)

    def get_or_create_collection(self, name, schema=None, configuration=None, metadata=None, embedding_function=_DEFAULT,
                                 data_loader=None) -> Collection:
        return self.create_collection(name, schema, configuration, metadata, embedding_function, data_loader, get_or_create=True)

    def get_collection(self, name, embedding_function=_DEFAULT, data_loader=None) -> Collection:
        item = self._backend.find(name)
        _config.check_function(embedding_function, item["configuration"]["embedding_function"])
        return Collection(self, item, embedding_function)

    def delete_collection(self, name) -> None:
        self._backend.delete(name)

    def reset(self) -> bool:
        if not getattr(self._settings, "allow_reset", False) and isinstance(self._backend, LocalBackend):
            raise AuthorizationError("Resetting is not allowed by this configuration; set allow_reset=True in Settings")
        return self._backend.reset()

    def clear_system_cache(self):
        pass


def PersistentClient(path="./lode", settings=None, tenant=DEFAULT_TENANT, database=DEFAULT_DATABASE) -> Client:
    """A store on this machine. A directory that Chroma made is refused, untouched: rescue it first."""
    path = str(path)
    if os.path.exists(os.path.join(path, "chroma.sqlite3")) and not os.path.exists(os.path.join(path, "lode.db")):
        rescued = path.rstrip(os.sep) + "-lode"
        if not os.path.exists(os.path.join(rescued, "lode.db")):
            raise InvalidArgumentError(
                "%s is a directory of Chroma's, which Lode never writes into. Bring its data over with\n"
                "    lode rescue chroma %s --to %s\nand open that." % (path, path, rescued))
        path = rescued
    return Client(LocalBackend(path, tenant, database), settings)


def EphemeralClient(settings=None, tenant=DEFAULT_TENANT, database=DEFAULT_DATABASE) -> Client:
    """A store in a temporary folder, gone when the client is closed."""
    return Client(LocalBackend(None, tenant, database), settings)


def HttpClient(host="localhost", port=8000, ssl=False, headers=None, settings=None, tenant=DEFAULT_TENANT,
               database=DEFAULT_DATABASE) -> Client:
    """A client of `lode serve` (or of Chroma's own server)."""
    return Client(HttpBackend(host, port, ssl, headers, tenant, database), settings)


ClientAPI = Client
__all__ = ["Client", "ClientAPI", "Collection", "EmbeddingFunction", "EphemeralClient", "HttpClient", "PersistentClient", "Settings",
           "embedding_functions", "errors", "register_embedding_function"]
