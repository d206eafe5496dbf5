"""Lode: an embedded vector database that does not crash.

    import lode

    with lode.connect("notes") as store:
        notes = store.collection("notes", create=True, metric="cosine")
        notes.upsert(["a"], ["how the parser reads tokens"], [{"lang": "c"}], [[1.0, 0.0]])
        for row in notes.query([1.0, 0.1], k=5, where={"lang": "c"}):
            print(row.id, row.distance, row.document)

lode.chroma stands in for the chromadb module; lode.mempalace is a backend of MemPalace.
"""
from .errors import *  # noqa: F401,F403
from .errors import LodeError, WorkerDied
from .store import (Collection, CollectionInfo, Damage, Embedder, Page, Row, Store, Transaction, WriteResult, restore, salvage)
from ._library import library as _library

__version__ = _library.lode_version().decode()


def connect(path, *, isolate=False, **options):
    """Opens a store, making it if there is none. With isolate=True the engine runs in a process of its own: whatever kills that
    one is a WorkerDied exception here, and the next call starts another."""
    if isolate:
        from .isolate import IsolatedStore
        return IsolatedStore(path, **options)
    return Store(path, **options)


__all__ = ["Collection", "CollectionInfo", "Damage", "Embedder", "LodeError", "Page", "Row", "Store", "Transaction", "WorkerDied",
           "WriteResult", "connect", "restore", "salvage", "__version__"]
