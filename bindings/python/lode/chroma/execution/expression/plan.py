"""chromadb.execution.expression.plan."""
from . import Search

__all__ = ["Search"]
