"""MemPalace's storage contract (RFC 001), as far as a backend needs it, for where the mempalace package is not installed: the same names
and shapes as its mempalace.backends.base."""
from dataclasses import dataclass, field
from typing import Dict, List, Optional


class BackendError(Exception):
    pass


class PalaceNotFoundError(BackendError, FileNotFoundError):
    pass


class CollectionNotInitializedError(PalaceNotFoundError):
    pass


class BackendClosedError(BackendError):
    pass


class UnsupportedFilterError(BackendError):
    pass


class UnsupportedCapabilityError(BackendError):
    pass


class UnsupportedMaintenanceKindError(BackendError):
    pass


class DimensionMismatchError(BackendError):
    pass


@dataclass(frozen=True)
class PalaceRef:
    id: str
    local_path: Optional[str] = None
    namespace: Optional[str] = None


@dataclass(frozen=True)
class EmbedderIdentity:
    model_name: str
    dimension: int = 0


@dataclass(frozen=True)
class MaintenanceResult:
    kind: str
    status: str
    stats: Dict = field(default_factory=dict)


@dataclass(frozen=True)
class HealthStatus:
    ok: bool
    detail: str = ""

    @classmethod
    def healthy(cls, detail=""):
        return cls(True, detail)

    @classmethod
    def unhealthy(cls, detail):
        return cls(False, detail)


class _Fields:
    def __getitem__(self, key):
        return getattr(self, key)

    def get(self, key, default=None):
        value = getattr(self, key, default)
        return default if value is None else value


@dataclass(frozen=True)
class QueryResult(_Fields):
    ids: List[List[str]]
    documents: List[List[str]]
    metadatas: List[List[dict]]
    distances: List[List[float]]
    embeddings: Optional[List] = None


@dataclass(frozen=True)
class GetResult(_Fields):
    ids: List[str]
    documents: List[str]
    metadatas: List[dict]
    embeddings: Optional[List] = None


@dataclass(frozen=True)
class LexicalHit:
    id: str
    document: str
    metadata: dict
    score: float


@dataclass(frozen=True)
class LexicalResult:
    hits: List[LexicalHit]


class BaseCollection:
    pass


class BaseBackend:
    name = ""
    spec_version = "1.0"
    capabilities = frozenset()
    distance_metric = "cosine"
    maintenance_kinds = frozenset()
