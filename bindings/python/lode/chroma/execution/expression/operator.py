"""chromadb.execution.expression.operator."""
from . import K, Key, Knn, Rrf

__all__ = ["K", "Key", "Knn", "Rrf"]
