"""Collections of chromadb's form, over a backend (_local.py, _http.py)."""
from typing import Any, Dict, Optional

from .._library import numpy
from . import _check, _config, _embedding, _schema
from ._local import URI

_PARTS = {"documents": "document", "metadatas": "metadata", "embeddings": "vector"}
_GET = ("metadatas", "documents")
_QUERY = ("metadatas", "documents", "distances")
_DEFAULT = _embedding.DEFAULT


class Collection:
    """Of a client; see Client.get_collection."""

    def __init__(self, client, item, embedding_function, data_loader=None):
        self._client, self._item, self._embedding_function, self._data_loader = client, item, embedding_function, data_loader
        self._backend = client._backend.copy()  # of the tenant and database of now
        self._open = self._backend.open(item)

    @property
    def _records(self):
        if self._open.closed:  # its client was closed; the store is still there
            self._open = self._backend.open(self._item)
        return self._open

    id = property(lambda self: self._item["id"])
    name = property(lambda self: self._item["name"])
    metadata = property(lambda self: self._item["metadata"])
    tenant = property(lambda self: self._backend.tenant)
    database = property(lambda self: self._backend.database)
    configuration_json = property(lambda self: self._item["configuration"])
    dimension = property(lambda self: self._item["dimension"])

    @property
    def configuration(self):
        """As create_collection() takes it: the embedding function is one again."""
        try:
            function = self._function()
        except ValueError:  # it is not known here
            function = None
        return dict(self._item["configuration"], embedding_function=function)

    @property
    def schema(self):
        return _schema.Schema.deserialize_from_json(self._item["schema"])

    def get_model(self):
        return self

    _model = property(get_model)

    def __getitem__(self, field):
        """As chromadb's model of a collection is asked."""
        if field in ("version", "log_position"):
            return 0
        if field in ("id", "name", "metadata", "tenant", "database", "configuration_json", "dimension"):
            return getattr(self, field)
        raise KeyError(field)

    def __repr__(self):
        return "Collection(name=%s)" % self.name

    def __eq__(self, other):
        return isinstance(other, Collection) and self.id == other.id and self.name == other.name

    def __hash__(self):
        return hash(self.id)

    def count(self) -> int:
        return self._records.count()

    def _function(self):
        """The function that was given, or the one that the collection was made with."""
        function = self._embedding_function
        if function is None or function is _DEFAULT or type(function) is type(_DEFAULT):
            function = _embedding.built(self._item["configuration"]["embedding_function"]) or function
        return function

    def _embed(self, input, is_query=False):
        return self._embeddings(input, is_query)

    def _embeddings(self, texts, query=False):
        function = self._function()
        if function is None:
            raise ValueError("You must provide an embedding function to compute embeddings. https://docs.trychroma.com/guides/embeddings")
        if query and hasattr(function, "embed_query"):
            return _check.vectors(function.embed_query(input=texts))
        return _check.vectors(function(input=texts))

    def _loaded(self, uris):
        if self._data_loader is None:
            raise ValueError("You must set a data loader on the collection if loading from URIs.")
        return self._data_loader(uris)

    def _write(self, verb, ids, embeddings, metadatas, documents, images, uris):
        ids = _check.ids(ids)
        embeddings = _check.vectors(embeddings)
        documents = None if documents is None else _check.many(documents)
        metadatas = None if metadatas is None else _check.many(metadatas)
        uris = None if uris is None else _check.many(uris)
        images = None if images is None else _check.many(images)
        if documents is not None and images is not None:
            raise ValueError("You can only provide documents or images, not both.")
        if verb != "update" and embeddings is None and documents is None and images is None and uris is None:
            raise ValueError("You must provide one of embeddings, documents, images, uris")
        for what, column in (("embeddings", embeddings), ("documents", documents), ("metadatas", metadatas), ("uris", uris),
                             ("images", images)):
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
        elif embeddings is None and (images is not None or (uris is not None and verb != "update")):
            embeddings = self._embeddings(images if images is not None else self._loaded(uris))
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

    def _selected(self, ids, where, where_document):
        if where is not None:
            _check.where(where)
        if where_document is not None:
            _check.where_document(where_document)
        if where or where_document:
            _schema.check_filters(self._item["kept_schema"], where, where_document)
        return None if ids is None else _check.ids(ids)

    def delete(self, ids=None, where=None, where_document=None, limit=None) -> Dict[str, int]:
        if ids is None and where is None and where_document is None:
            raise ValueError("You must provide either ids, where, or where_document to delete.")
        ids = self._selected(ids, where, where_document)
        if limit is not None:
            _check.page(limit, None)
            if ids is not None:
                raise ValueError("limit can only be specified when a where or where_document clause is provided")
            ids, where, where_document = self.get(where=where, where_document=where_document, limit=limit, include=[])["ids"], None, None
        return {"deleted": self._records.delete(ids, where, where_document) if ids != [] else 0}

    def get(self, ids=None, where=None, limit=None, offset=None, where_document=None, include=_GET) -> Dict[str, Any]:
        include = _check.include(include, ("documents", "metadatas", "embeddings", "uris", "data"))
        ids = self._selected(ids, where, where_document)
        _check.page(limit, offset)
        parts = self._parts(include)
        rows = [] if limit == 0 else self._records.get(ids, where, where_document, limit, offset, parts)
        return self._shape(rows, include)

    @staticmethod
    def _parts(include):
        parts = [_PARTS[i] for i in include if i in _PARTS]
        return parts + ["metadata"] if ("uris" in include or "data" in include) and "metadata" not in parts else parts

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
        uris = [(row.metadata or {}).get(URI) for row in rows] if "uris" in include or "data" in include else None
        return {
            "ids": [row.id for row in rows],
            "embeddings": embeddings if "embeddings" in include else None,
            "documents": [row.document for row in rows] if "documents" in include else None,
            "uris": uris if "uris" in include else None,
            "included": include,
            "data": self._loaded(uris) if "data" in include else None,
            "metadatas": [self._metadata(row) for row in rows] if "metadatas" in include else None,
        }

    def peek(self, limit=10) -> Dict[str, Any]:
        return self.get(limit=limit, include=["metadatas", "documents", "embeddings"])

    def query(self, query_embeddings=None, query_texts=None, query_images=None, query_uris=None, ids=None, n_results=10, where=None,
              where_document=None, include=_QUERY) -> Dict[str, Any]:
        include = _check.include(include, ("documents", "metadatas", "embeddings", "distances", "uris", "data"))
        if query_embeddings is None and query_texts is None and query_images is None and query_uris is None:
            raise ValueError("You must provide one of query_embeddings, query_texts, query_images, or query_uris")
        _check.n_results(n_results)
        ids = self._selected(ids, where, where_document)
        if query_embeddings is not None:  # texts beside them are not looked at
            vectors = _check.vectors(query_embeddings, "query_embeddings")
        elif query_texts is not None:
            vectors = self._embeddings(_check.many(query_texts), query=True) if len(_check.many(query_texts)) else []
        else:
            vectors = self._embeddings(_check.many(query_images) if query_images is not None else self._loaded(_check.many(query_uris)), query=True)
        if not vectors:
            raise ValueError("Expected query_embeddings or query_texts to be a non-empty list")
        parts = self._parts(include)
        answers = self._records.query(vectors, n_results, ids, where, where_document, parts)
        one = [self._shape(rows, include) for rows in answers]
        result: Dict[str, Any] = {"ids": [a["ids"] for a in one]}
        for name in ("embeddings", "documents", "uris", "metadatas", "data"):
            result[name] = [a[name] for a in one] if name in include else None
        result["included"] = include
        result["distances"] = [[row.distance for row in rows] for rows in answers] if "distances" in include else None
        return result

    def modify(self, name: Optional[str] = None, metadata: Optional[Dict] = None, configuration=None) -> None:
        if name is not None:
            _check.name(name)
        metadata = _check.metadata(metadata)
        if metadata is not None and "hnsw:space" in metadata:
            raise ValueError("Changing the distance function of a collection once it is created is not supported currently.")
        changed = None if configuration is None else _config.changed(self._item["configuration"], configuration)
        self._item = self._backend.modify(self._item, name, metadata, changed)

    def fork(self, new_name):
        raise NotImplementedError("Collection forking is not implemented for Local Chroma")

    def fork_count(self):
        raise NotImplementedError("Fork count is not implemented for Local Chroma")

    def search(self, searches, read_level=None):
        raise NotImplementedError("Search is not implemented for Local Chroma")

    def get_indexing_status(self):
        return self._records.indexing_status()

    def attach_function(self, *args, **kwargs):
        raise NotImplementedError("Attached functions are only supported in the Chroma server")

    get_attached_function = detach_function = attach_function
