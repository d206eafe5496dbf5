"""A stand-in for the chromadb module, over Lode: `import lode.chroma as chromadb` is the whole migration.

    client = chromadb.PersistentClient("palace")
    notes = client.get_or_create_collection("notes", metadata={"hnsw:space": "cosine"})
    notes.add(ids=["a"], documents=["how the parser reads tokens"])     # embedded by MiniLM, offline
    notes.query(query_texts=["parsers"], n_results=3)

Libraries that import chromadb themselves get this after `lode.chroma.install()`, or in programs run by `python -m lode.chroma PROGRAM`.
A store that this made can be served by `lode serve` at the same time, and read by `lode db`. A directory that Chroma made is never
written to: `lode rescue chroma DIR --to NEW` brings its data over first.
"""
from .. import __version__ as _lode_version  # noqa: F401
from . import config, errors
from ._client import AdminClient as _AdminClient
from ._client import Client as _Client
from ._collection import Collection
from ._embedding import DefaultEmbeddingFunction, EmbeddingFunction, register_embedding_function
from ._http import address as _address
from ._install import install
from ._schema import Schema
from .api import AdminAPI, AsyncClientAPI, ClientAPI
from .api.async_client import AsyncClient as _AsyncClient
from .api.types import (BoolInvertedIndexConfig, Cmek, CollectionMetadata, Documents, Embeddings, FloatInvertedIndexConfig, FtsIndexConfig, GetResult,
                        HnswIndexConfig, IDs, Include, IntInvertedIndexConfig, Metadata, Metadatas, QueryResult, ReadLevel, SparseEmbeddingFunction,
                        SparseVector, SparseVectorIndexConfig, SparseVectors, SpannIndexConfig, StringInvertedIndexConfig, URI, URIs,
                        UpdateCollectionMetadata, UpdateMetadata, VectorIndexConfig, Where, WhereDocument)
from .config import DEFAULT_DATABASE, DEFAULT_TENANT, Settings
from .execution.expression import K, Key, Knn, Rrf, Search
from .utils import embedding_functions

__version__ = "1.5.9"  # the interface; lode.__version__ is Lode's own
_settings = Settings()


def configure(**values):
    """Settings of the clients that Client() makes."""
    global _settings
    _settings = Settings(**values)


def get_settings():
    return _settings


def _with(settings, **values):
    made = Settings(**(settings.__dict__ if settings is not None else {}))
    made.__dict__.update(values)
    return made


def Client(settings=None, tenant=DEFAULT_TENANT, database=DEFAULT_DATABASE):
    """A client as the settings say: of a path, of a server, or in memory."""
    return _Client(tenant, database, settings if settings is not None else _settings)


def PersistentClient(path="./chroma", settings=None, tenant=DEFAULT_TENANT, database=DEFAULT_DATABASE):
    """A store on this machine. A directory that Chroma made is refused, untouched: rescue it first."""
    return _Client(tenant, database, _with(settings, persist_directory=str(path), is_persistent=True))


def EphemeralClient(settings=None, tenant=DEFAULT_TENANT, database=DEFAULT_DATABASE):
    """A store in a temporary folder, shared by all of these in a process and gone when it ends."""
    return _Client(tenant, database, _with(settings, is_persistent=False))


RustClient = EphemeralClient


def HttpClient(host="localhost", port=8000, ssl=False, headers=None, settings=None, tenant=DEFAULT_TENANT, database=DEFAULT_DATABASE):
    """A client of `lode serve` (or of Chroma's own server)."""
    return _Client(tenant, database, _with(settings, chroma_api_impl="chromadb.api.fastapi.FastAPI", **_address(host, port, ssl, headers, settings)))


async def AsyncHttpClient(host="localhost", port=8000, ssl=False, headers=None, settings=None, tenant=DEFAULT_TENANT, database=DEFAULT_DATABASE):
    return await _AsyncClient.create(tenant, database, _with(settings, chroma_api_impl="chromadb.api.async_fastapi.AsyncFastAPI",
                                                             **_address(host, port, ssl, headers, settings)))


def AdminClient(settings=None):
    return _AdminClient(settings)


def CloudClient(*args, **kwargs):
    raise ValueError("lode.chroma has no cloud: use HttpClient with the address of a `lode serve`")


ClientCreator, AdminClientCreator, AsyncClientCreator = _Client, _AdminClient, _AsyncClient
AdminAPI.register(_AdminClient)
__all__ = [name for name in dir() if not name.startswith("_")]
