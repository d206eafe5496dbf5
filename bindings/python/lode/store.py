"""Stores, collections, records: the whole of lode.h.

Handles may be used by many threads; calls release the interpreter's lock. After a fork a handle opens the store anew.
"""
import ctypes
import functools
import json
import os
import struct
import threading
import weakref
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Union

from . import _abi
from ._library import (NONE, call, check, floats, floats_at, json_text, library, lode_str, matrix, memory, number, of_text, path_bytes,
                       text, texts)
from .errors import Closed, Invalid

Vector = Sequence[float]
METRICS = {"l2": _abi.LODE_L2, "cosine": _abi.LODE_COSINE, "ip": _abi.LODE_IP}
INCLUDE = {"document": _abi.LODE_DOCUMENT, "metadata": _abi.LODE_METADATA, "vector": _abi.LODE_VECTOR}
MODES = {"vector": _abi.LODE_BY_VECTOR, "text": _abi.LODE_BY_TEXT, "hybrid": _abi.LODE_HYBRID}


class Row(NamedTuple):
    """A record, as get and query give it; what was not asked for is None."""
    id: str
    document: Optional[str]
    metadata: Optional[Dict[str, Any]]
    vector: Any
    cursor: int
    distance: Optional[float] = None  # of queries with a vector
    score: float = 0.0                # of queries by text
    position: int = 0                 # in the order of insertion


class Page(NamedTuple):
    rows: List[Row]
    next: int  # pass it as `after` for the rows behind; 0 when there are none


class CollectionInfo(NamedTuple):
    name: str
    uid: int
    metric: str
    dimension: int
    metadata: Optional[Dict[str, Any]]
    embedder: Optional[str]
    embedder_dim: int
    records: int
    pending: int


class Damage(NamedTuple):
    what: str
    collection: Optional[str]
    id: Optional[str]
    detail: str


class WriteResult(NamedTuple):
    written: int
    skipped: int


Progress = Callable[[str, int, int], Optional[bool]]


def _progress(step: Optional[Progress]):
    if step is None:
        return _abi.lode_progress()
    if not callable(step):
        raise TypeError("progress is a function of (phase, done, total), not %r" % (step,))
    failed: List[BaseException] = []
    kind = dict(_abi.lode_progress._fields_)["step"]

    def forward(_ctx, phase, done, total):
        try:
            return step(phase.decode(), done, total) is not False
        except BaseException as why:  # an exception cannot cross the library: it is raised when the call returns
            failed.append(why)
            return False

    result = _abi.lode_progress(kind(forward), None)
    result.keep, result.failed = forward, failed
    return result


def _include(parts: Iterable[str]) -> int:
    return _bits(tuple(parts))


@functools.lru_cache(maxsize=64)
def _bits(parts):
    bits = 0
    for part in parts:
        if part not in INCLUDE:
            raise Invalid("there is no part %r: document, metadata and vector are" % (part,))
        bits |= INCLUDE[part]
    return bits


def _selection(ids=None, where=None, where_document=None):
    selection = _abi.lode_selection()
    if where is not None:
        selection.where = json_text(where)
    if where_document is not None:
        selection.where_document = json_text(where_document)
    if ids is not None:
        array = texts(ids, "ids")
        # an empty list selects nothing, which is not the same as no list
        selection.ids = array if len(array) else (lode_str * 1)()
        selection.n_ids = len(array)
    return selection


# A lode_row, read in one go: field by field through ctypes a row would cost more than the engine's whole answer
_ROW = struct.Struct("@PNPNPNPIQQN8xdd")  # all but the rank, which is the place in the answer
assert _ROW.size == ctypes.sizeof(_abi.lode_row)
_Result = ctypes.POINTER(_abi.lode_result)
_scan_json = json.JSONDecoder().scan_once


@functools.lru_cache(maxsize=2)
def _row_form(stride):
    """Rows of a newer library may be larger."""
    return struct.Struct("%s%dx" % (_ROW.format, stride - _ROW.size)) if stride != _ROW.size else _ROW


def _rows(result):
    """Of each row: which query it answers, and the Row."""
    n = library.lode_result_count(result)
    if not n:
        return
    new, at = tuple.__new__, memory
    first = ctypes.addressof(library.lode_result_at(result, 0).contents)
    form = _ROW if n == 1 else _row_form(ctypes.addressof(library.lode_result_at(result, 1).contents) - first)
    for (id, id_len, document, document_len, metadata, metadata_len, vector, dim, cursor, position, query, distance,
         score) in form.iter_unpack(at[first:first + n * form.size]):
        yield query, new(Row, (at[id:id + id_len].decode(),
                               at[document:document + document_len].decode() if document else None,
                               _scan_json(at[metadata:metadata + metadata_len].decode(), 0)[0] if metadata else None,
                               floats_at(vector, dim) if vector else None,
                               cursor, None if distance != distance else distance, score, position))


def _facets(pointer) -> Dict[Any, int]:
    try:
        n = library.lode_facet_list_count(pointer)
        facets = (library.lode_facet_list_at(pointer, i).contents for i in range(n))
        return {json.loads(of_text(f.value)): f.count for f in facets}
    finally:
        library.lode_facet_list_free(pointer)


class _Batch:
    """Records for one call, and everything that they point to."""

    def __init__(self, ids, documents, metadatas, vectors):
        if isinstance(ids, (str, bytes)):
            raise TypeError("ids are a list of strings, not one string: %r" % (ids,))
        ids = list(ids)
        n = len(ids)
        for name, column in (("documents", documents), ("metadatas", metadatas), ("vectors", vectors)):
            if isinstance(column, (str, bytes, Mapping)):
                raise TypeError("%s are a list, one for each id, not %r" % (name, column))
            if column is not None and len(column) != n:
                raise Invalid("there are %d ids and %d %s: as many are needed" % (n, len(column), name))
        self.n = n
        self.records = (_abi.lode_record * n)()
        for i, record in enumerate(self.records):
            record.id = self._text(ids[i])
            if documents is not None and documents[i] is not None:
                record.document = self._text(documents[i])
            if metadatas is not None and metadatas[i] is not None:
                value = metadatas[i]
                record.metadata = self._text(value if isinstance(value, (str, bytes)) else _dump(value, i))
        if vectors is not None:
            self._vectors(vectors)

    def _text(self, value):
        if not isinstance(value, (str, bytes)):
            raise Invalid("%r is not a string" % (value,))
        return text(value)

    def _vectors(self, vectors):
        if getattr(vectors, "ndim", 0) == 2:  # all rows at once, without copies
            address, _, dim, self.owner = matrix(vectors)
            for i, record in enumerate(self.records):
                record.vector, record.dimension = address + i * dim * 4, dim
            return
        self.owner = []
        for record, vector in zip(self.records, vectors):
            if vector is not None:
                record.vector, record.dimension, owner = floats(vector)
                self.owner.append(owner)


def _dump(value, i):
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as why:
        raise Invalid("the metadata of record %d is not JSON: %s" % (i, why)) from None


class Collection:
    """A collection; made by Store.collection()."""

    def __init__(self, store: "Store", handle, name: str):
        self.store, self.name, self._handle = store, name, handle
        self._lock = threading.Lock()

    def __repr__(self):
        return "<lode.Collection %r of %r>" % (self.name, self.store.path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        try:
            self.close()
        except Exception:  # the interpreter is going down
            pass

    def close(self):
        with self._lock:
            handle, self._handle = self._handle, None
        if handle and self.store._open:
            library.lode_collection_close(handle)

    @property
    def closed(self) -> bool:
        return not self._handle or not self.store._open

    @property
    def _use(self):
        if self.closed:
            raise Closed("the collection %r is closed" % self.name)
        return self._handle

    # ---- Writes

    def add(self, ids, documents=None, metadatas=None, vectors=None, *, keep_existing=False, txn=None) -> WriteResult:
        """Adds records. An id that exists is an error, or is kept and skipped with keep_existing."""
        batch, result = _Batch(ids, documents, metadatas, vectors), _abi.lode_write_result()
        how = _abi.LODE_KEEP_EXISTING if keep_existing else _abi.LODE_FAIL_EXISTING
        call("lode_add", self._use, _handle_of(txn), batch.records, batch.n, how, ctypes.byref(result))
        return WriteResult(result.written, result.skipped)

    def upsert(self, ids, documents=None, metadatas=None, vectors=None, *, txn=None) -> WriteResult:
        """Adds records, or replaces what is given of those that exist; metadata merges key by key."""
        batch, result = _Batch(ids, documents, metadatas, vectors), _abi.lode_write_result()
        call("lode_upsert", self._use, _handle_of(txn), batch.records, batch.n, ctypes.byref(result))
        return WriteResult(result.written, result.skipped)

    def update(self, ids, documents=None, metadatas=None, vectors=None, *, txn=None) -> List[str]:
        """Changes records that exist; metadata merges, None removes a key. Gives the ids that do not exist."""
        ids = list(ids)
        batch, missing = _Batch(ids, documents, metadatas, vectors), (ctypes.c_bool * max(len(ids), 1))()
        call("lode_update", self._use, _handle_of(txn), batch.records, batch.n, missing, None)
        return [id for id, gone in zip(ids, missing) if gone]

    def delete(self, ids=None, where=None, where_document=None, *, txn=None) -> int:
        """Deletes what is selected and says how many; where={} means everything."""
        deleted = ctypes.c_size_t()
        selection = _selection(ids, where, where_document)
        call("lode_delete", self._use, _handle_of(txn), ctypes.byref(selection), ctypes.byref(deleted))
        return deleted.value

    # ---- Reads

    def get_page(self, ids=None, where=None, where_document=None, *, include=("document", "metadata"), limit=0, offset=0,
                 after=0, pending=False) -> Page:
        request = _abi.lode_get_request(select=_selection(ids, where, where_document), pending_only=bool(pending),
                                        limit=number(limit, "limit"), offset=number(offset, "offset"), after=number(after, "after"),
                                        include=_include(include))
        result = _Result()
        call("lode_get", self._use, ctypes.byref(request), ctypes.byref(result))
        try:
            return Page([row for _, row in _rows(result)], library.lode_result_next(result))
        finally:
            library.lode_result_free(result)

    def get(self, ids=None, where=None, where_document=None, *, include=("document", "metadata"), limit=0, offset=0) -> List[Row]:
        """Records by ids (in the order asked) or filter (in the order of insertion)."""
        return self.get_page(ids, where, where_document, include=include, limit=limit, offset=offset).rows

    def iterate(self, where=None, where_document=None, *, include=("document", "metadata"), page=1000, pending=False) -> Iterator[Row]:
        """All that match, page by page, in linear time and bounded memory."""
        after = 0
        while True:
            found = self.get_page(None, where, where_document, include=include, limit=page, after=after, pending=pending)
            yield from found.rows
            after = found.next
            if not after:
                return

    def count(self) -> int:
        count = ctypes.c_uint64()
        call("lode_count", self._use, ctypes.byref(count))
        return count.value

    def query_many(self, vectors=None, texts_=None, *, k=10, ids=None, where=None, where_document=None,
                   include=("document", "metadata"), mode=None, exact=False, effort=0, target_recall=0.0, vector_weight=0.0,
                   text_weight=0.0, _explain=None) -> List[List[Row]]:
        """One list of hits for each query: by vectors, by texts, or (given both) by both fused."""
        if mode is None:
            mode = "hybrid" if vectors is not None and texts_ is not None else "text" if texts_ is not None else "vector"
        if mode not in MODES:
            raise Invalid("there is no mode %r: vector, text and hybrid are" % (mode,))
        n = 0
        request = _abi.lode_query_request(mode=MODES[mode], k=number(k, "k"), select=_selection(ids, where, where_document), include=_include(include),
                                          exact=bool(exact), effort=number(effort, "effort", 32), target_recall=target_recall,
                                          vector_weight=vector_weight, text_weight=text_weight, explain=_explain is not None)
        if vectors is not None and mode != "text":
            request.vectors, n, request.dimension, owner = matrix(vectors)  # noqa: F841, which keeps them alive
        if texts_ is not None and mode != "vector":
            request.texts = array = texts(texts_)
            if request.vectors and len(array) != n:
                raise Invalid("there are %d vectors and %d texts: as many are needed" % (n, len(array)))
            n = len(array)
        request.n = n
        result = _Result()
        call("lode_query", self._use, ctypes.byref(request), ctypes.byref(result))
        try:
            if _explain is not None:
                _explain.update(json.loads(of_text(library.lode_result_explain(result))))
            answers: List[List[Row]] = [[] for _ in range(n)]
            for query, row in _rows(result):
                answers[query].append(row)
            return answers
        finally:
            library.lode_result_free(result)

    def query(self, vector=None, text=None, **how) -> List[Row]:
        """The hits of one query; see query_many."""
        return self.query_many(None if vector is None else [vector], None if text is None else [text], **how)[0]

    def explain(self, vector=None, text=None, **how) -> Dict[str, Any]:
        """How query() answers the same: {"steps": [...]}, each with its method, why, what was looked at, and the time."""
        told: Dict[str, Any] = {}
        self.query(vector, text, _explain=told, **how)
        return told

    def facets(self, key: str, where=None, limit=0) -> Dict[Any, int]:
        """How many records have each value of a metadata key, largest count first."""
        pointer = ctypes.POINTER(_abi.lode_facet_list)()
        call("lode_facets", self._use, text(key), json_text(where), number(limit, "limit"), ctypes.byref(pointer))
        return _facets(pointer)

    def counters(self, key: Optional[str] = None) -> Dict[Any, int]:
        """The same for a declared key, without touching records; without a key: the declared ones."""
        pointer = ctypes.POINTER(_abi.lode_facet_list)()
        call("lode_counters", self._use, text(key), ctypes.byref(pointer))
        return _facets(pointer)

    def stats(self) -> Dict[str, int]:
        stats = _abi.lode_stats()
        call("lode_collection_stats", self._use, ctypes.byref(stats))
        return {name: getattr(stats, name) for name, _ in stats._fields_}

    def export(self, write: Callable[[bytes], Any], where=None, *, include=("document", "metadata", "vector"), progress=None) -> int:
        """Records as lines of JSON, handed to `write` in pieces."""
        failed: List[BaseException] = []

        def forward(_ctx, data, size):
            try:
                write(ctypes.string_at(data, size))
                return size
            except BaseException as why:
                failed.append(why)
                return -1

        written, function = ctypes.c_uint64(), _abi.lode_write_fn(forward)
        selection = _selection(None, where)
        try:
            call("lode_export", self._use, ctypes.byref(selection), _include(include), function, None, _progress(progress),
                 ctypes.byref(written))
        except Exception:
            if failed:
                raise failed[0] from None
            raise
        return written.value

    def import_lines(self, read: Callable[[int], bytes], *, mode="add", keep_existing=False, batch=0, progress=None) -> WriteResult:
        """Lines of JSON from `read` (a file's read, opened as binary), committed batch by batch."""
        failed: List[BaseException] = []

        def forward(_ctx, buffer, size):
            try:
                data = read(size)
                if not isinstance(data, (bytes, bytearray, memoryview)):
                    raise TypeError("read gives bytes, not %s: open the file as binary" % type(data).__name__)
                data = bytes(data)
                if len(data) > size:
                    raise ValueError("read was asked for %d bytes at most, and gave %d" % (size, len(data)))
                ctypes.memmove(buffer, data, len(data))
                return len(data)
            except BaseException as why:
                failed.append(why)
                return -1

        modes = {"add": _abi.LODE_IMPORT_ADD, "upsert": _abi.LODE_IMPORT_UPSERT, "update": _abi.LODE_IMPORT_UPDATE}
        if mode not in modes:
            raise Invalid("there is no mode %r: add, upsert and update are" % (mode,))
        request = _abi.lode_import_request(mode=modes[mode], on_existing=int(bool(keep_existing)), batch=number(batch, "batch"),
                                           read=_abi.lode_read_fn(forward))
        report = _abi.lode_import_report()
        try:
            call("lode_import", self._use, ctypes.byref(request), _progress(progress), ctypes.byref(report))
        except Exception:
            if failed:
                raise failed[0] from None
            raise
        return WriteResult(report.written, report.skipped)


def _handle_of(txn):
    if txn is None:
        return None
    if not isinstance(txn, Transaction):
        raise TypeError("txn is what store.transaction() gives, not %r" % (txn,))
    return txn._use


class Transaction:
    """Several writes as one: `with store.transaction() as txn: collection.add(..., txn=txn)`. An exception takes all back."""

    def __init__(self, store: "Store"):
        self.store, self._handle = store, ctypes.POINTER(_abi.lode_txn)()
        call("lode_begin", store._use, ctypes.byref(self._handle))
        store._transactions.add(self)

    def __del__(self):
        try:
            self.rollback()  # one that was forgotten would lock the store
        except Exception:  # the interpreter is going down
            pass

    @property
    def _use(self):
        if not self._handle:
            raise Closed("the transaction has ended")
        return self._handle

    def commit(self):
        handle, self._handle = self._use, None
        call("lode_commit", handle)

    def rollback(self):
        handle, self._handle = self._handle, None
        if handle:
            library.lode_rollback(handle)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self._handle:
            self.commit() if kind is None else self.rollback()


class Store:
    """A store: a folder, or the address of a cluster. Use it in a `with`, or close() it."""

    def __init__(self, path, *, create=True, read_only=False, memory_bytes=0, busy_ms=0, max_document_bytes=0, background=True,
                 preload=False):
        self.path = os.fsdecode(path)
        self._handle = ctypes.POINTER(_abi.lode_store)()
        self._collections: "weakref.WeakSet[Collection]" = weakref.WeakSet()
        self._transactions: "weakref.WeakSet[Transaction]" = weakref.WeakSet()
        self._lock = threading.Lock()
        options = _abi.lode_open_options(create=bool(create and not read_only), read_only=bool(read_only),
                                         memory_bytes=number(memory_bytes, "memory_bytes"), busy_ms=number(busy_ms, "busy_ms", 32),
                                         max_document_bytes=number(max_document_bytes, "max_document_bytes"),
                                         no_background=not background, preload=bool(preload))
        call("lode_open", path_bytes(path), ctypes.byref(options), ctypes.byref(self._handle))

    def __repr__(self):
        return "<lode.Store %r>" % self.path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        try:
            self.close()
        except Exception:
            pass

    @property
    def _open(self):
        return bool(getattr(self, "_handle", None))

    @property
    def _use(self):
        if not self._handle:
            raise Closed("the store %r is closed" % self.path)
        return self._handle

    def close(self):
        """Closes the store and its collections; later calls on them raise Closed. A transaction that is open is taken back."""
        if not self._open:
            return
        with self._lock:
            for transaction in list(self._transactions):
                transaction.rollback()
            for collection in list(self._collections):
                collection.close()
            handle, self._handle = self._handle, None
        if handle:
            library.lode_close(handle)

    # ---- Collections

    def collection(self, name: str, *, create=False, must_create=False, metric="l2", metadata: Optional[Mapping] = None,
                   embedder: Optional[str] = None, embedder_dim=0, counters: Sequence[str] = ()) -> Collection:
        """Opens a collection; with create it is made if it does not exist."""
        if metric not in METRICS:
            raise Invalid("there is no metric %r: l2, cosine and ip are" % (metric,))
        keys = texts(counters, "counters")
        options = _abi.lode_collection_options(create=bool(create or must_create), must_create=bool(must_create), metric=METRICS[metric],
                                               metadata=json_text(metadata), embedder=text(embedder), embedder_dim=number(embedder_dim, "embedder_dim", 32),
                                               counters=keys, n_counters=len(keys))
        handle = ctypes.POINTER(_abi.lode_collection)()
        call("lode_collection_open", self._use, text(name), ctypes.byref(options), ctypes.byref(handle))
        result = Collection(self, handle, name)
        self._collections.add(result)
        return result

    def collections(self) -> List[CollectionInfo]:
        pointer = ctypes.POINTER(_abi.lode_collection_list)()
        call("lode_collections", self._use, ctypes.byref(pointer))
        try:
            found = []
            for i in range(library.lode_collection_list_count(pointer)):
                info = library.lode_collection_list_at(pointer, i).contents
                metadata = of_text(info.metadata)
                found.append(CollectionInfo(of_text(info.name), info.uid, library.lode_metric_name(info.metric).decode(),
                                            info.dimension, json.loads(metadata) if metadata else None, of_text(info.embedder),
                                            info.embedder_dim, info.records, info.pending))
            return found
        finally:
            library.lode_collection_list_free(pointer)

    def rename(self, name: str, new_name: str):
        call("lode_collection_rename", self._use, text(name), text(new_name))

    def set_metadata(self, name: str, metadata: Optional[Mapping]):
        call("lode_collection_set_metadata", self._use, text(name), json_text(metadata))

    def drop(self, name: str):
        call("lode_collection_drop", self._use, text(name))

    def transaction(self) -> Transaction:
        return Transaction(self)

    def reembed(self, name: str, embedder: "Embedder", *, drop_vectors=False, progress: Optional[Progress] = None) -> Dict[str, int]:
        """Gives the documents of a collection the vectors of another model, while it is in use; resumes an interrupted call."""
        if not embedder._handle:
            raise Closed("the embedder %r is closed" % embedder.identity)
        steps = _progress(progress)
        request = _abi.lode_reembed_request(embedder=embedder._handle, drop_vectors=drop_vectors, progress=steps)
        report = _abi.lode_reembed_report()
        error = _abi.lode_error()
        status = library.lode_reembed_sized(self._use, text(name), ctypes.byref(request), ctypes.sizeof(request), ctypes.byref(report),
                                            ctypes.sizeof(report), ctypes.byref(error))
        if status and getattr(steps, "failed", None):
            raise steps.failed[0]
        check(status, error)
        return {field: getattr(report, field) for field, _ in report._fields_}

    # ---- Care

    def stats(self) -> Dict[str, int]:
        stats = _abi.lode_stats()
        call("lode_store_stats", self._use, ctypes.byref(stats))
        return {name: getattr(stats, name) for name, _ in stats._fields_}

    def optimize(self, progress: Optional[Progress] = None):
        """Does the pending background work now."""
        call("lode_optimize", self._use, _progress(progress))

    def compact(self, progress: Optional[Progress] = None):
        """Rewrites the store as small as it can be; deleted bytes are gone for good."""
        call("lode_compact", self._use, _progress(progress))

    def verify(self, progress: Optional[Progress] = None) -> List[Damage]:
        """Checks everything; an empty list means that all is well."""
        found, function = _damages()
        error = _abi.lode_error()
        steps = _progress(progress)
        status = library.lode_verify(self._use, function, None, steps, ctypes.byref(error))
        if status and getattr(steps, "failed", None):
            raise steps.failed[0]
        if status and not found:
            check(status, error)
        return found

    def backup(self, file, progress: Optional[Progress] = None):
        """The whole database at one moment, as one file that must not exist; the store may be in use."""
        call("lode_backup", self._use, path_bytes(file), _progress(progress))


def _damages():
    found: List[Damage] = []

    def forward(_ctx, pointer):
        d = ctypes.cast(pointer, ctypes.POINTER(_abi.lode_damage)).contents
        found.append(Damage((d.what or b"damage").decode(), of_text(d.collection), of_text(d.id), (d.detail or b"").decode()))

    return found, _abi.lode_damage_fn(forward)


def restore(file, folder, progress: Optional[Progress] = None):
    """Makes a store of a backup."""
    call("lode_restore", path_bytes(file), path_bytes(folder), _progress(progress))


def salvage(damaged, folder, progress: Optional[Progress] = None) -> Dict[str, Union[int, List[Damage]]]:
    """Reads what can be read of a damaged store into a new one; says what was lost."""
    lost, function = _damages()
    report = _abi.lode_salvage_report()
    call("lode_salvage", path_bytes(damaged), path_bytes(folder), function, None, _progress(progress), ctypes.byref(report))
    result: Dict[str, Any] = {name: getattr(report, name) for name, _ in report._fields_}
    result["losses"] = lost
    return result


class Embedder:
    """Text to vectors: Embedder("minilm"), Embedder("code"), a model folder, "openai:MODEL", "ollama:MODEL"."""

    def __init__(self, model="minilm", *, folder=None, max_tokens=0, threads=0, precision="default", url=None, key=None):
        levels = {"default": _abi.LODE_PRECISION_DEFAULT, "full": _abi.LODE_PRECISION_FULL, "int8": _abi.LODE_PRECISION_INT8}
        if precision not in levels:
            raise Invalid("there is no precision %r: default, full and int8 are" % (precision,))
        encode = lambda s: None if s is None else path_bytes(s)  # noqa: E731
        options = _abi.lode_embedder_options(folder=encode(folder), max_tokens=number(max_tokens, "max_tokens", 32),
                                             threads=number(threads, "threads", 32),
                                             precision=levels[precision], url=encode(url), key=encode(key))
        self._handle = ctypes.POINTER(_abi.lode_embedder)()
        call("lode_embedder_open", text(model), ctypes.byref(options), ctypes.byref(self._handle))
        info = library.lode_embedder_info_of(self._handle).contents
        self.identity, self.dimension, self.max_tokens = of_text(info.identity), info.dimension, info.max_tokens

    def __call__(self, values: Sequence[str]):
        """A float32 array of numpy with a row a text; lists where there is no numpy."""
        from ._library import numpy
        if not self._handle:
            raise Closed("the embedder %r is closed" % self.identity)
        array = texts(values)
        n = len(array)
        if numpy is not None:
            out = numpy.empty((n, self.dimension), dtype=numpy.float32)
            call("lode_embed", self._handle, array, n, out.ctypes.data)
            return out
        out = (ctypes.c_float * (n * self.dimension))()
        call("lode_embed", self._handle, array, n, out)
        return [out[i * self.dimension:(i + 1) * self.dimension] for i in range(n)]

    def close(self):
        handle, self._handle = self._handle, None
        if handle:
            library.lode_embedder_close(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        try:
            self.close()
        except Exception:
            pass


__all__ = ["Collection", "CollectionInfo", "Damage", "Embedder", "Page", "Row", "Store", "Transaction", "WriteResult", "restore",
           "salvage", "NONE"]
