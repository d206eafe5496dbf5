"""chromadb.api.fastapi."""
from .._client import Client as FastAPI

__all__ = ["FastAPI"]
