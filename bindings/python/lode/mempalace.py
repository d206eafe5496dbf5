"""A backend of MemPalace (RFC 001): `pip install lode`, then MEMPALACE_BACKEND=lode, or --backend lode.

A palace's data are a Lode store in the folder `lode` of the palace. Several processes may use one palace at once. The package mempalace
need not be installed for this module to be imported; it finds LodeBackend by the entry point "mempalace.backends".
"""
import os
import threading
from typing import Any, Dict, List, Optional

from . import _palace_contract as _contract
from . import errors as lode_errors
from .store import Store

try:
    from mempalace.backends import base as _base
except ImportError:
    _base = _contract


def _of(name):
    """MemPalace's own class; one of ours where its version has none yet (3.4.0 lacks three)."""
    return getattr(_base, name, None) or getattr(_contract, name)


BackendClosedError, BaseBackend, BaseCollection = _of("BackendClosedError"), _of("BaseBackend"), _of("BaseCollection")
CollectionNotInitializedError, DimensionMismatchError = _of("CollectionNotInitializedError"), _of("DimensionMismatchError")
EmbedderIdentity, GetResult, QueryResult = _of("EmbedderIdentity"), _of("GetResult"), _of("QueryResult")
HealthStatus, LexicalHit, LexicalResult, MaintenanceResult = _of("HealthStatus"), _of("LexicalHit"), _of("LexicalResult"), _of("MaintenanceResult")
PalaceNotFoundError, PalaceRef, UnsupportedCapabilityError = _of("PalaceNotFoundError"), _of("PalaceRef"), _of("UnsupportedCapabilityError")
UnsupportedFilterError, UnsupportedMaintenanceKindError = _of("UnsupportedFilterError"), _of("UnsupportedMaintenanceKindError")

FOLDER = "lode"
IDENTITY = "palace:embedder"
MAGIC = b"lode store\n"
UNKNOWN = "unknown"  # MemPalace's name for a wing or room that is not given
MAX_PLACES = 100000
_PARTS = {"documents": "document", "metadatas": "metadata", "embeddings": "vector"}


class _Errors:
    """Lode's errors become the contract's."""

    def __init__(self, where=None):
        self.where = where

    def __enter__(self):
        return self

    def __exit__(self, kind, why, _trace):
        if kind is None or not issubclass(kind, lode_errors.LodeError):
            return False
        text = str(why)
        if isinstance(why, lode_errors.Mismatch):
            raise DimensionMismatchError(text) from why
        if isinstance(why, lode_errors.Closed):
            raise BackendClosedError(text) from why
        if isinstance(why, lode_errors.Invalid) and self.where:
            raise UnsupportedFilterError(text) from why
        if isinstance(why, (lode_errors.Invalid, lode_errors.Refused, lode_errors.Exists)):
            raise ValueError(text) from why
        return False


def _metadata(items, n):
    """None for nothing; values that are None are left out."""
    if items is None:
        return None
    if len(items) != n:
        raise ValueError("there are %d ids and %d metadatas" % (n, len(items)))
    return [{k: v for k, v in (m or {}).items() if v is not None} or None for m in items]


def _check_columns(ids, documents, embeddings):
    if not ids:
        raise ValueError("ids must not be empty")
    for name, column in (("documents", documents), ("embeddings", embeddings)):
        if column is not None and len(column) != len(ids):
            raise ValueError("there are %d ids and %d %s" % (len(ids), len(column), name))


class LodeCollection(BaseCollection):
    """One collection of one palace."""

    upsert_merges_metadata = True

    def __init__(self, backend, palace, collection):
        self._backend, self._palace, self._collection = backend, palace, collection

    @property
    def _use(self):
        self._backend._check_open()
        if not self._palace.open:
            raise BackendClosedError("the palace was closed")
        return self._collection

    # ---- Writes

    def add(self, *, documents, ids, metadatas=None, embeddings=None):
        _check_columns(ids, documents, embeddings)
        with _Errors():
            self._use.add(ids, documents, _metadata(metadatas, len(ids)), embeddings)

    def upsert(self, *, documents, ids, metadatas=None, embeddings=None):
        _check_columns(ids, documents, embeddings)
        with _Errors():
            self._use.upsert(ids, documents, _metadata(metadatas, len(ids)), embeddings)

    def update(self, *, ids, documents=None, metadatas=None, embeddings=None):
        if documents is None and metadatas is None and embeddings is None:
            raise ValueError("update requires at least one of documents, metadatas, embeddings")
        _check_columns(ids, documents, embeddings)
        with _Errors():
            self._use.update(ids, documents, _metadata(metadatas, len(ids)), embeddings)

    def delete(self, *, ids=None, where=None):
        if ids is None and not where:
            raise ValueError("delete needs ids or where")
        with _Errors(where):
            self._use.delete(ids, where or None)

    def rekey_row(self, *, old_id, new_id, **_):
        """Gives a record another id; False when there is none with the old one."""
        use = self._use
        with _Errors():
            rows = use.get([old_id], include=("document", "metadata", "vector"))
            if not rows:
                return False
            row = rows[0]
            with self._palace.store.transaction() as txn:
                use.delete([old_id], txn=txn)
                use.add([new_id], [row.document], [row.metadata], [row.vector], txn=txn)
        return True

    # ---- Reads

    def count(self):
        with _Errors():
            return self._use.count()

    estimated_count = count

    def get(self, *, ids=None, where=None, where_document=None, limit=None, offset=None, include=None):
        wanted = ["documents", "metadatas"] if include is None else list(include)
        parts = [_PARTS[i] for i in wanted if i in _PARTS]
        if limit is not None and limit <= 0:
            return GetResult(ids=[], documents=[], metadatas=[], embeddings=None)
        with _Errors(where or where_document):
            rows = self._use.get(ids, where or None, where_document or None, include=parts, limit=limit or 0, offset=offset or 0)
        return self._get_result(rows, wanted)

    @staticmethod
    def _get_result(rows, wanted):
        return GetResult(ids=[r.id for r in rows],
                         documents=[r.document if r.document is not None else "" for r in rows] if "documents" in wanted else [],
                         metadatas=[r.metadata or {} for r in rows] if "metadatas" in wanted else [],
                         embeddings=[_list(r.vector) for r in rows] if "embeddings" in wanted else None)

    def get_all_metadata(self, where=None):
        with _Errors(where):
            return [row.metadata or {} for row in self._use.iterate(where or None, include=("metadata",))]

    def get_all_rows(self, where=None, include=None):
        wanted = list(include) if include else ["metadatas"]
        with _Errors(where):
            rows = list(self._use.iterate(where or None, include=[_PARTS[i] for i in wanted if i in _PARTS]))
        result = self._get_result(rows, wanted)
        return GetResult(ids=result.ids, documents=result.documents, metadatas=result.metadatas, embeddings=None)

    def query(self, *, query_texts=None, query_embeddings=None, n_results=10, where=None, where_document=None, include=None):
        if (query_texts is None) == (query_embeddings is None):
            raise ValueError("query needs query_texts or query_embeddings, and not both")
        given = query_texts if query_embeddings is None else query_embeddings
        if len(given) == 0:
            raise ValueError("query input must not be empty")
        if query_embeddings is None:
            raise UnsupportedCapabilityError("texts are embedded by MemPalace (requires_explicit_embeddings): pass query_embeddings")
        wanted = ["documents", "metadatas", "distances"] if include is None else list(include)
        parts = [_PARTS[i] for i in wanted if i in _PARTS]
        with _Errors(where or where_document):
            answers = self._use.query_many(query_embeddings, k=n_results, where=where or None, where_document=where_document or None,
                                           include=parts)
        column = lambda name, value: [[value(r) for r in rows] if name in wanted else [] for rows in answers]  # noqa: E731
        return QueryResult(ids=[[r.id for r in rows] for rows in answers],
                           documents=column("documents", lambda r: r.document if r.document is not None else ""),
                           metadatas=column("metadatas", lambda r: r.metadata or {}),
                           distances=column("distances", lambda r: r.distance),
                           embeddings=column("embeddings", lambda r: _list(r.vector)) if "embeddings" in wanted else None)

    def lexical_search(self, *, query, n_results=10, where=None):
        with _Errors(where):
            rows = self._use.query(text=query, k=n_results, where=where or None)
        return LexicalResult(hits=[LexicalHit(r.id, r.document or "", r.metadata or {}, r.score) for r in rows])

    def _without(self, field):
        """A filter for the records that have no such field, or UNKNOWN in it; None: all of them."""
        known = [value for value in self._use.facets(field, None, MAX_PLACES) if value != UNKNOWN]
        return {field: {"$nin": known}} if known else None

    def facet_counts(self, field, where=None, limit=1000) -> Dict[str, int]:
        """Drawers without a wing or room are counted as UNKNOWN, and found by it, as MemPalace shows them on Chroma."""
        with _Errors(where):
            if where in ({"wing": UNKNOWN}, {"room": UNKNOWN}):
                where = self._without(next(iter(where)))
            found = {value if isinstance(value, str) else _spell(value): n for value, n in self._use.facets(field, where or None, limit).items()}
            if field in ("wing", "room") and len(found) < limit:
                total = self._use.count() if not where else sum(1 for _ in self._use.iterate(where, include=()))
                missing = total - sum(found.values())
                if missing > 0:
                    found[UNKNOWN] = found.get(UNKNOWN, 0) + missing
        return found

    # ---- Identity, health, care

    @property
    def distance_metric(self):
        info = self._info()
        return info.metric if info else "cosine"

    def _info(self):
        with _Errors():
            return next((i for i in self._palace.store.collections() if i.name == self._collection.name), None)

    def get_stored_embedder_identity(self):
        self._use
        kept = ((self._info() or _Nothing).metadata or {}).get(IDENTITY)
        return EmbedderIdentity(kept["model_name"], kept.get("dimension", 0)) if kept else None

    def set_embedder_identity(self, identity):
        self._use
        info = self._info()
        kept = dict((info.metadata if info else None) or {})
        kept[IDENTITY] = {"model_name": identity.model_name, "dimension": identity.dimension}
        with _Errors():
            self._palace.store.set_metadata(self._collection.name, kept)

    def effective_embedder_identity(self):
        return None

    def health(self):
        try:
            self.count()
            return HealthStatus.healthy()
        except Exception as why:  # a health check reports, whatever it is
            return HealthStatus.unhealthy(str(why))

    def close(self):
        self._collection.close()

    def maintenance_state(self):
        stats = self._use.stats()
        return {"rows": stats["records"], "indexed": stats.get("indexed", 0), "tail": stats.get("tail", 0),
                "unerased": stats["unerased"], "consistency_token": stats["cursor"]}

    def run_maintenance(self, kind):
        if kind not in LodeBackend.maintenance_kinds:
            raise UnsupportedMaintenanceKindError("lode has no maintenance %r; it has %s" % (kind, ", ".join(sorted(LodeBackend.maintenance_kinds))))
        self._use
        lock = self._palace.work.setdefault(kind, threading.Lock())
        if not lock.acquire(blocking=False):
            return MaintenanceResult(kind, "already_running")
        try:
            before = self._palace.store.stats()
            (self._palace.store.compact if kind == "compact" else self._palace.store.optimize)()
            after = self._palace.store.stats()
            return MaintenanceResult(kind, "ran", {"bytes_before": before["bytes"], "bytes": after["bytes"]})
        except lode_errors.Busy:
            return MaintenanceResult(kind, "already_running")
        finally:
            lock.release()


class _Nothing:
    metadata: Optional[dict] = None


def _list(vector):
    return None if vector is None else [float(x) for x in vector]


def _spell(value):
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


class _Palace:
    def __init__(self, store):
        self.store, self.open, self.collections, self.work = store, True, {}, {}  # type: Store, bool, Dict[str, Any], Dict[str, Any]

    def close(self):
        self.open = False
        self.store.close()


def _keep_private(*folders):
    """Memories are for their owner. A folder of somebody else's stays as it is."""
    for folder in folders:
        try:
            if os.stat(folder).st_mode & 0o077:
                os.chmod(folder, 0o700)
        except OSError:
            pass


class LodeBackend(BaseBackend):
    """The factory: one for many palaces."""

    name = "lode"
    spec_version = "1.0"
    distance_metric = "cosine"
    capabilities = frozenset({"requires_explicit_embeddings", "supports_embeddings_in", "supports_embeddings_passthrough",
                              "supports_embeddings_out", "supports_update", "supports_lexical_search", "supports_metadata_facets",
                              "supports_metadata_filters", "supports_contains_fast", "local_mode"})
    maintenance_kinds = frozenset({"compact", "reindex"})

    def __init__(self):
        self._palaces: Dict[str, _Palace] = {}
        self._lock = threading.RLock()
        self._closed = False

    def _check_open(self):
        if self._closed:
            raise BackendClosedError("the backend was closed")

    @staticmethod
    def _folder(palace):
        path = palace if isinstance(palace, (str, os.PathLike)) else palace.local_path
        if path is None:
            raise PalaceNotFoundError("a palace of lode needs a local path")
        return os.path.join(str(path), FOLDER)

    def _open_palace(self, palace, create) -> _Palace:
        folder = self._folder(palace)
        key = os.path.realpath(folder)
        with self._lock:
            found = self._palaces.get(key)
            if found is not None and found.open:
                return found
            parent = os.path.dirname(folder)
            if not os.path.isdir(parent):
                if not create:
                    raise PalaceNotFoundError("there is no palace at %s" % parent)
                os.makedirs(parent, mode=0o700, exist_ok=True)
            if not create and not self.detect(parent):
                raise CollectionNotInitializedError("the palace at %s has no data yet" % parent)
            with _Errors():
                found = self._palaces[key] = _Palace(Store(folder, create=create))
            if create:
                _keep_private(parent, folder)
            return found

    def get_collection(self, palace=None, collection_name=None, create=False, options=None, **legacy):
        self._check_open()
        palace = palace if palace is not None else legacy.get("palace_path") or legacy.get("path")
        collection_name = collection_name or legacy.get("name")
        if isinstance(palace, (str, os.PathLike)):
            palace = PalaceRef(id=str(palace), local_path=str(palace))
        if palace.namespace is not None:
            raise UnsupportedCapabilityError("lode does not isolate by namespace: leave PalaceRef.namespace as None (got %r)" % palace.namespace)
        opened = self._open_palace(palace, create)
        with self._lock:
            known = opened.collections.get(collection_name)
            if known is not None:
                return known
            try:
                handle = opened.store.collection(collection_name)  # of whatever metric: a rescued one keeps its own
            except lode_errors.NotFound:
                if not create:
                    raise CollectionNotInitializedError("the palace has no collection %r yet" % collection_name) from None
                with _Errors():
                    handle = opened.store.collection(collection_name, create=True, metric="cosine")
            made = opened.collections[collection_name] = LodeCollection(self, opened, handle)
            return made

    def create_collection(self, palace_path, name, **_):
        return self.get_collection(palace_path, name, create=True)

    get_or_create_collection = create_collection

    def delete_collection(self, palace_path, name):
        opened = self._open_palace(PalaceRef(id=str(palace_path), local_path=str(palace_path)), False)
        with self._lock:
            opened.collections.pop(name, None)
        try:
            opened.store.drop(name)
        except lode_errors.NotFound:
            raise CollectionNotInitializedError("the palace has no collection %r" % name) from None

    def close_palace(self, palace):
        with self._lock:
            found = self._palaces.pop(os.path.realpath(self._folder(palace)), None)
        if found is not None:
            found.close()

    def close(self):
        with self._lock:
            palaces, self._palaces, self._closed = list(self._palaces.values()), {}, True
        for palace in palaces:
            palace.close()

    def health(self, palace=None):
        if self._closed:
            return HealthStatus.unhealthy("the backend was closed")
        if palace is None:
            return HealthStatus.healthy()
        try:
            stats = self._open_palace(palace, False).store.stats()
        except Exception as why:
            return HealthStatus.unhealthy(str(why))
        if stats["damaged_pages"]:
            return HealthStatus.unhealthy("%d damaged pages were seen: run `lode db verify --store %s`" % (stats["damaged_pages"], self._folder(palace)))
        return HealthStatus.healthy("%d records" % stats["records"])

    @classmethod
    def detect(cls, path) -> bool:
        """By the mark that every complete store bears. Reading it disturbs no lock: Lode's belong to open files, not to processes."""
        try:
            with open(os.path.join(str(path), FOLDER, "lode.lock"), "rb") as file:
                return file.read(len(MAGIC)) == MAGIC
        except OSError:
            return False


__all__: List[str] = ["LodeBackend", "LodeCollection"]
