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


@dataclass
class SparseVector:
    indices: List[int]
    values: List[float]
    labels: Optional[List[str]] = None
