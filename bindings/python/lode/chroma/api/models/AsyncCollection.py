"""chromadb.api.models.AsyncCollection."""
from ..async_client import AsyncCollection

__all__ = ["AsyncCollection"]
