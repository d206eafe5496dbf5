"""A stand-in for the chromadb module, over Lode: `import lode.chroma as chromadb` is the whole migration.

    client = chromadb.PersistentClient("palace")
    notes = client.get_or_create_collection("notes", metadata={"hnsw:space": "cosine"})
    notes.add(ids=["a"], documents=["how the parser reads tokens"])     # embedded by MiniLM, offline
    notes.query(query_texts=["parsers"], n_results=3)

A store that this made can be served by `lode serve` at the same time, and read by `lode db`. A directory that Chroma made is never
written to: `lode rescue chroma DIR --to NEW` brings its data over first.
"""
import os
import re
import time
from typing import Any, Dict, Optional, Sequence

from .. import __version__  # noqa: F401
from .._library import numpy
from . import embedding_functions, errors
from ._http import HttpBackend
from ._local import URI, LocalBackend
from .embedding_functions import DefaultEmbeddingFunction, EmbeddingFunction
from .errors import DuplicateIDError, InvalidArgumentError

DEFAULT_TENANT, DEFAULT_DATABASE = "default_tenant", "default_database"
MAX_BATCH = 100000
_NAME = re.compile(r"^[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]$")
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


# ---- What the caller gives

def _is_sequence(value):
    return isinstance(value, (list, tuple)) or (numpy is not None and isinstance(value, numpy.ndarray))


def _many(value):
    return list(value) if _is_sequence(value) else [value]


def _vectors(value, what="embeddings"):
    """A list of vectors; one vector is a list of one."""
    if value is None:
        return None
    if not _is_sequence(value):
        raise ValueError("Expected %s to be a list of vectors, got %s" % (what, type(value).__name__))
    if numpy is not None and isinstance(value, numpy.ndarray):
        return list(value.reshape(1, -1) if value.ndim == 1 else value)
    value = list(value)
    if value and not _is_sequence(value[0]) and value[0] is not None:
        value = [value]
    for vector in value:
        if vector is not None and (not _is_sequence(vector) or len(vector) == 0):
            raise ValueError("Expected each of the %s to be a list of numbers that is not empty" % what)
    return value


def _check_ids(ids):
    ids = _many(ids)
    if not ids:
        raise ValueError("Expected IDs to be a non-empty list, got %d IDs" % len(ids))
    for id in ids:
        if not isinstance(id, str):
            raise ValueError("Expected ID to be a str, got %r" % (id,))
    if len(set(ids)) != len(ids):
        twice = sorted({id for id in ids if ids.count(id) > 1} if len(ids) < 1000 else set())
        raise DuplicateIDError("Expected IDs to be unique, found duplicates of: %s" % ", ".join(twice[:10]))
    return ids


def _check_metadata(metadata, removing=False):
    if metadata is None:
        return None
    if not isinstance(metadata, dict):
        raise ValueError("Expected metadata to be a dict or None, got %s" % type(metadata).__name__)
    if not metadata:
        raise ValueError("Expected metadata to be a non-empty dict, got 0 metadata attributes")
    kept = {}
    for key, value in metadata.items():
        if not isinstance(key, str):
            raise TypeError("Expected metadata key to be a str, got %r" % (key,))
        if key == "chroma:document":
            raise ValueError("Expected metadata to not contain the reserved key chroma:document")
        scalar = isinstance(value, (str, int, float, bool))
        listed = isinstance(value, list) and all(isinstance(x, (str, int, float, bool)) for x in value)
        if value is None:
            if removing:
                kept[key] = None
            continue
        if not scalar and not listed:
            raise ValueError("Expected metadata value to be a str, int, float, bool, or None, got %r which is a %s"
                             % (value, type(value).__name__))
        kept[key] = value
    return kept


def _check_include(include, allowed):
    if not isinstance(include, (list, tuple)):
        raise ValueError("Expected include to be a list, got %s" % include)
    for item in include:
        if item not in allowed:
            raise ValueError("Expected include item to be one of %s, got %s" % (", ".join(allowed), item))
    return list(include)


_OPERATORS = {"$gt", "$gte", "$lt", "$lte", "$ne", "$eq", "$in", "$nin", "$contains", "$not_contains"}


def _check_where(where):
    """Chroma's rules where they are stricter than ours; without recursion."""
    stack = [where]
    while stack:
        clause = stack.pop()
        if not isinstance(clause, dict):
            raise ValueError("Expected where to be a dict, got %s" % (clause,))
        if len(clause) != 1:
            raise ValueError("Expected where to have exactly one operator, got %s" % (clause,))
        (key, value), = clause.items()
        if key in ("$and", "$or"):
            if not isinstance(value, list) or not value:
                raise ValueError("Expected where value for %s to be a list of where expressions, got %s" % (key, value))
            stack.extend(value)
        elif isinstance(value, dict) and key != "#document":
            if len(value) != 1:
                raise ValueError("Expected operator expression to have exactly one operator, got %s" % (value,))
            (operator, operand), = value.items()
            if operator not in _OPERATORS:
                raise ValueError("Expected where operator to be one of %s, got %s" % (", ".join(sorted(_OPERATORS)), operator))
            if operator in ("$in", "$nin") and (not isinstance(operand, list) or not operand):
                raise ValueError("Expected where operand value to be a non-empty list for operator %s, got %s" % (operator, operand))
    return where


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
        return {"hnsw": {"space": self._item["space"]}, "embedding_function": self._item["embedding_function"]}

    configuration = configuration_json

    def __repr__(self):
        return "Collection(name=%s)" % self.name

    def __eq__(self, other):
        return isinstance(other, Collection) and self.id == other.id and self.name == other.name

    def __hash__(self):
        return hash(self.id)

    def count(self) -> int:
        return self._records.count()

    def _embeddings(self, texts):
        if self._embed is None:
            raise ValueError("You must provide an embedding function to compute embeddings")
        return _vectors(self._embed(texts))

    def _write(self, verb, ids, embeddings, metadatas, documents, images, uris):
        ids = _check_ids(ids)
        if images is not None:
            raise ValueError("images are not supported: embed them and pass embeddings")
        embeddings = _vectors(embeddings)
        documents = None if documents is None else _many(documents)
        metadatas = None if metadatas is None else _many(metadatas)
        uris = None if uris is None else _many(uris)
        if verb != "update" and embeddings is None and documents is None and uris is None:
            raise ValueError("You must provide one of embeddings, documents, images, uris")
        for what, column in (("embeddings", embeddings), ("documents", documents), ("metadatas", metadatas), ("uris", uris)):
            if column is not None and len(column) != len(ids):
                raise ValueError("Unequal lengths for fields: ids: %d, %s: %d" % (len(ids), what, len(column)))
        if metadatas is not None:
            metadatas = [_check_metadata(m, removing=verb != "add") for m in metadatas]
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

    def delete(self, ids=None, where=None, where_document=None) -> None:
        if ids is None and where is None and where_document is None:
            raise ValueError("You must provide either ids, where, or where_document to delete.")
        if ids is not None:
            ids = _many(ids)
        if where is not None:
            _check_where(where)
        self._records.delete(ids, where, where_document)

    def get(self, ids=None, where=None, limit=None, offset=None, where_document=None, include=_GET) -> Dict[str, Any]:
        include = _check_include(include, ("documents", "metadatas", "embeddings", "uris", "data"))
        if where is not None:
            _check_where(where)
        parts = [_PARTS[i] for i in include if i in _PARTS]
        if "uris" in include and "metadata" not in parts:
            parts.append("metadata")
        if ids is not None:
            ids = _many(ids)
            if not ids:
                return self._shape([], include)
        rows = self._records.get(ids, where, where_document, limit, offset, parts)
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
        return self.get(limit=limit, include=["embeddings", "documents", "metadatas"])

    def query(self, query_embeddings=None, query_texts=None, query_images=None, query_uris=None, ids=None, n_results=10, where=None,
              where_document=None, include=_QUERY) -> Dict[str, Any]:
        include = _check_include(include, ("documents", "metadatas", "embeddings", "distances", "uris", "data"))
        given = [x for x in (query_embeddings, query_texts, query_images, query_uris) if x is not None]
        if len(given) != 1:
            raise ValueError("You must provide exactly one of query_embeddings, query_texts, query_images, or query_uris")
        if query_images is not None or query_uris is not None:
            raise ValueError("images and uris cannot be embedded: pass query_embeddings or query_texts")
        if not isinstance(n_results, int) or isinstance(n_results, bool):
            raise ValueError("Expected requested number of results to be a int, got %r" % (n_results,))
        if n_results <= 0:
            raise TypeError("Number of requested results %d, cannot be negative, or zero." % n_results)
        if where is not None:
            _check_where(where)
        vectors = _vectors(query_embeddings, "query_embeddings") if query_embeddings is not None else self._embeddings(_many(query_texts))
        if not vectors:
            raise ValueError("Expected query_embeddings or query_texts to be a non-empty list")
        parts = [_PARTS[i] for i in include if i in _PARTS]
        answers = self._records.query(vectors, n_results, None if ids is None else _many(ids), where, where_document, parts)
        one = [self._shape(rows, include) for rows in answers]
        result: Dict[str, Any] = {"ids": [a["ids"] for a in one]}
        for name in ("embeddings", "documents", "uris", "metadatas"):
            result[name] = [a[name] for a in one] if name in include else None
        result["included"], result["data"] = include, None
        result["distances"] = [[row.distance for row in rows] for rows in answers] if "distances" in include else None
        return result

    def modify(self, name: Optional[str] = None, metadata: Optional[Dict] = None, configuration=None) -> None:
        if name is not None:
            _check_name(name)
        self._item = self._client._backend.modify(self._item, name, metadata)

    def fork(self, new_name):
        raise NotImplementedError("fork is not possible on a local store")


# ---- Clients

def _check_name(name):
    if not isinstance(name, str) or not _NAME.match(name):
        raise ValueError("Expected a name containing 3-512 characters from [a-zA-Z0-9._-], starting and ending with a character in "
                         "[a-zA-Z0-9]. Got: %s" % (name,))
    return name


def _space_of(metadata, configuration):
    space = None
    for source in (metadata, (configuration or {}).get("hnsw") if isinstance(configuration, dict) else None):
        if isinstance(source, dict):
            space = source.get("hnsw:space") or source.get("space") or space
    if space is None:
        return "l2"
    if space not in ("l2", "cosine", "ip"):
        raise ValueError("Expected space to be one of l2, cosine, ip, got %s" % space)
    return space


_DEFAULT = DefaultEmbeddingFunction()


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
        self._backend.tenant, self._backend.database = tenant, database

    def set_database(self, database):
        self._backend.database = database

    def list_collections(self, limit=None, offset=None) -> Sequence[Collection]:
        items = sorted(self._backend.list(), key=lambda i: i["name"])[offset or 0:]
        return [Collection(self, i, _DEFAULT) for i in (items if limit is None else items[:limit])]

    def count_collections(self) -> int:
        return len(self._backend.list())

    def create_collection(self, name, schema=None, configuration=None, metadata=None, embedding_function=_DEFAULT, data_loader=None,
                          get_or_create=False) -> Collection:
        _check_name(name)
        metadata = _check_metadata(metadata)
        named = getattr(embedding_function, "name", None)
        described = None
        if embedding_function is not None:
            known = callable(named)
            described = {"type": "known", "name": named(), "config": {}} if known else {"type": "unknown"}
        item = self._backend.create(name, _space_of(metadata, configuration), metadata, described, get_or_create)
        return Collection(self, item, embedding_function)

    def get_or_create_collection(self, name, schema=None, configuration=None, metadata=None, embedding_function=_DEFAULT,
                                 data_loader=None) -> Collection:
        return self.create_collection(name, schema, configuration, metadata, embedding_function, data_loader, get_or_create=True)

    def get_collection(self, name, embedding_function=_DEFAULT, data_loader=None) -> Collection:
        return Collection(self, self._backend.find(name), embedding_function)

    def delete_collection(self, name) -> None:
        self._backend.delete(name)

    def reset(self) -> bool:
        if not getattr(self._settings, "allow_reset", False) and isinstance(self._backend, LocalBackend):
            raise ValueError("Resetting is not allowed by this configuration; set allow_reset=True in Settings")
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
           "embedding_functions", "errors"]
