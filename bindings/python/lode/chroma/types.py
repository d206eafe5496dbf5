"""chromadb.types: names that annotations use."""
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Dict, List, Literal, Mapping, Optional, Sequence, TypedDict, Union

from .config import DEFAULT_DATABASE, DEFAULT_TENANT  # noqa: F401

Vector = Any
PyVector = Union[Sequence[float], Sequence[int]]
Metadata = Mapping[str, Any]
UpdateMetadata = Mapping[str, Any]
LiteralValue = Union[str, int, float, bool]
LogicalOperator = Literal["$and", "$or"]
WhereOperator = Literal["$gt", "$gte", "$lt", "$lte", "$ne", "$eq"]
InclusionExclusionOperator = Literal["$in", "$nin"]
WhereDocumentOperator = Literal["$contains", "$not_contains", "$regex", "$not_regex", "$and", "$or"]
OperatorExpression = Dict[str, Any]
Where = Dict[str, Any]
WhereDocument = Dict[str, Any]
SeqId = int
CloudClientArg = Any


class ScalarEncoding(Enum):
    FLOAT32 = "FLOAT32"
    INT32 = "INT32"


class Database(TypedDict):
    id: Any
    name: str
    tenant: str


class Tenant(TypedDict):
    name: str


@dataclass
class UserIdentity:
    user_id: str
    tenant: Optional[str] = None
    databases: Optional[List[str]] = None
    attributes: Optional[Dict[str, Any]] = field(default=None)


TYPE_KEY, SPARSE_VECTOR_TYPE_VALUE = "#type", "sparse_vector"


@dataclass
class SparseVector:
    """Values at ascending indices. Lode keeps none: metadata that holds one is refused."""
    indices: List[int]
    values: List[float]
    labels: Optional[List[str]] = None

    def __post_init__(self):
        for name, column in (("indices", self.indices), ("values", self.values), ("labels", self.labels)):
            if not isinstance(column, list) and not (name == "labels" and column is None):
                raise ValueError("Expected SparseVector %s to be a list, got %s" % (name, type(column).__name__))
        if len(self.indices) != len(self.values):
            raise ValueError("SparseVector indices and values must have the same length, got %d indices and %d values" % (len(self.indices), len(self.values)))
        if self.labels is not None and len(self.labels) != len(self.indices):
            raise ValueError("SparseVector labels must have the same length as indices and values, got %d labels, %d indices"
                             % (len(self.labels), len(self.indices)))
        for at, index in enumerate(self.indices):
            if not isinstance(index, int):
                raise ValueError("SparseVector indices must be integers, got %s at position %d" % (type(index).__name__, at))
            if index < 0:
                raise ValueError("SparseVector indices must be non-negative, got %d at position %d" % (index, at))
        for at, value in enumerate(self.values):
            if not isinstance(value, (int, float)):
                raise ValueError("SparseVector values must be numbers, got %s at position %d" % (type(value).__name__, at))
        for at in range(1, len(self.indices)):
            if self.indices[at] <= self.indices[at - 1]:
                raise ValueError("SparseVector indices must be sorted in strictly ascending order, found %d after %d" % (self.indices[at], self.indices[at - 1]))

    def to_dict(self):
        found = {TYPE_KEY: SPARSE_VECTOR_TYPE_VALUE, "indices": self.indices, "values": self.values}
        return found if self.labels is None else dict(found, tokens=self.labels)

    @classmethod
    def from_dict(cls, found):
        if found.get(TYPE_KEY) != SPARSE_VECTOR_TYPE_VALUE:
            raise ValueError("Expected %s='%s', got %s" % (TYPE_KEY, SPARSE_VECTOR_TYPE_VALUE, found.get(TYPE_KEY)))
        return cls(found["indices"], found["values"], found.get("tokens"))
