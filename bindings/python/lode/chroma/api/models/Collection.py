"""chromadb.api.models.Collection."""
from ..._collection import Collection

__all__ = ["Collection"]
