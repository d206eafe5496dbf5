"""chromadb.api.types: what annotations name, and the checks that libraries call."""
import base64
import struct
from enum import Enum
from typing import Any, Dict, Generic, List, Literal, Optional, TypedDict, TypeVar, Union

from .. import _check
from .._collection import _GET, _QUERY
from .._embedding import DefaultEmbeddingFunction, EmbeddingFunction  # noqa: F401
from .._library_types import Embedding, Image, IncludeEnum
from .._schema import *  # noqa: F401,F403
from .._schema import Schema  # noqa: F401
from ..types import (SPARSE_VECTOR_TYPE_VALUE, TYPE_KEY, LiteralValue, LogicalOperator, Metadata, OperatorExpression, PyVector, SparseVector, UpdateMetadata, Vector,  # noqa: F401
                     Where, WhereDocument, WhereDocumentOperator, WhereOperator)

T = TypeVar("T")
D = TypeVar("D", contravariant=True)
OneOrMany = Union[T, List[T]]
ID = URI = Document = str
IDs = URIs = Documents = List[str]
Embeddings, PyEmbedding, PyEmbeddings = List[Embedding], PyVector, List[PyVector]
Metadatas, CollectionMetadata, UpdateCollectionMetadata = List[Metadata], Dict[str, Any], UpdateMetadata
Images, Loadable, SparseVectors = List[Image], List[Optional[Image]], List[SparseVector]
Embeddable = Union[Documents, Images]
Parameter = TypeVar("Parameter")
Include = List[Literal["documents", "embeddings", "metadatas", "distances", "uris", "data"]]
Space = Literal["cosine", "l2", "ip"]
META_KEY_CHROMA_DOCUMENT = "chroma:document"
IndexConfig = Any


class ReadLevel(str, Enum):
    INDEX_AND_WAL = "index_and_wal"
    INDEX_ONLY = "index_only"


class GetResult(TypedDict, total=False):
    ids: IDs
    embeddings: Any
    documents: Optional[List[Document]]
    uris: Optional[URIs]
    data: Any
    metadatas: Optional[List[Metadata]]
    included: Include


class QueryResult(TypedDict, total=False):
    ids: List[IDs]
    embeddings: Any
    documents: Optional[List[List[Document]]]
    uris: Optional[List[List[URI]]]
    data: Any
    metadatas: Optional[List[List[Metadata]]]
    distances: Optional[List[List[float]]]
    included: Include


class DeleteResult(TypedDict):
    deleted: int


class SearchResult(dict):
    """By columns, one list for each search."""

    def rows(self):
        """By rows: a dictionary of what is there for each record."""
        def rows_of(at, ids):
            columns = [(name, (self.get(column) or [None] * len(self["ids"]))[at] or [None] * len(ids)) for name, column in
                       (("document", "documents"), ("embedding", "embeddings"), ("metadata", "metadatas"), ("score", "scores"))]
            return [dict({"id": id}, **{name: values[n] for name, values in columns if values[n] is not None}) for n, id in enumerate(ids)]
        return [rows_of(at, ids) for at, ids in enumerate(self.get("ids", []))]


class IndexingStatus:
    def __init__(self, num_indexed_ops, num_unindexed_ops, total_ops, op_indexing_progress):
        self.num_indexed_ops, self.num_unindexed_ops = num_indexed_ops, num_unindexed_ops
        self.total_ops, self.op_indexing_progress = total_ops, op_indexing_progress


class DataLoader(Generic[T]):
    """Subclass it, or pass any function of a list of uris."""

    def __call__(self, uris):
        raise NotImplementedError


class SparseEmbeddingFunction(Generic[T]):
    """Here so that it can be named: sparse indexes are refused."""


def maybe_cast_one_to_many(target):
    return None if target is None else list(target) if isinstance(target, (list, tuple)) else [target]


def normalize_embeddings(target):
    if target is not None and len(target) == 0:
        raise ValueError("Expected Embeddings to be non-empty list or numpy array, got %s" % (target,))
    return convert_list_embeddings_to_np(_check.vectors(target))


def validate_ids(ids):
    return _check.ids(ids)


def validate_metadata(metadata):
    return _check.metadata(metadata, sparse=True)


def validate_update_metadata(metadata):
    return _check.metadata(metadata, removing=True, sparse=True)


def normalize_metadata(metadata):
    """Sparse vectors of the wire as objects."""
    def of(value):
        return SparseVector.from_dict(value) if isinstance(value, dict) and value.get(TYPE_KEY) == SPARSE_VECTOR_TYPE_VALUE else value
    return None if metadata is None else {key: of(value) for key, value in metadata.items()}


def serialize_metadata(metadata):
    return None if metadata is None else {key: value.to_dict() if isinstance(value, SparseVector) else value for key, value in metadata.items()}


deserialize_metadata = normalize_metadata


def validate_metadatas(metadatas):
    return [validate_metadata(m) for m in metadatas]


def normalize_insert_record_set(ids, embeddings, metadatas=None, documents=None, images=None, uris=None):
    many = maybe_cast_one_to_many
    return {"ids": many(ids), "embeddings": _check.vectors(embeddings), "metadatas": None if metadatas is None else [normalize_metadata(m) for m in many(metadatas)],
            "documents": many(documents), "images": many(images), "uris": many(uris)}


def validate_insert_record_set(record_set):
    _check.ids(record_set["ids"])
    for name, column in record_set.items():
        if column is not None and len(column) != len(record_set["ids"]):
            raise ValueError("Unequal lengths for fields: ids: %d, %s: %d" % (len(record_set["ids"]), name, len(column)))
    validate_metadatas(record_set["metadatas"] or [])


def validate_where(where):
    _check.where(where)


def validate_where_document(where_document):
    _check.where_document(where_document)


def validate_include(include, dissalowed=None):
    _check.include(include, [i for i in set(_GET + _QUERY + ("embeddings", "uris", "data")) if i not in (dissalowed or ())])


def validate_n_results(n_results):
    return _check.n_results(n_results)


def validate_embeddings(embeddings):
    return _check.vectors(embeddings)


def validate_embedding_function(embedding_function):
    if not callable(embedding_function):
        raise ValueError("Expected EmbeddingFunction to be callable, got %r" % (embedding_function,))


def convert_np_embeddings_to_list(embeddings):
    return [list(map(float, v)) for v in embeddings]


def convert_list_embeddings_to_np(embeddings):
    from ..._library import numpy
    if numpy is None or embeddings is None:
        return embeddings
    return [v if isinstance(v, numpy.ndarray) else numpy.array(v, dtype=numpy.float32) for v in embeddings]


def pack_embedding_safely(embedding):
    return base64.b64encode(struct.pack("<%df" % len(embedding), *embedding)).decode()
