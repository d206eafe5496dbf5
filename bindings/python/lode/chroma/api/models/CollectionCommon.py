"""chromadb.api.models.CollectionCommon."""
from ..._collection import Collection as CollectionCommon

__all__ = ["CollectionCommon"]
