"""chromadb.api.async_api."""
from . import AsyncAdminAPI, AsyncClientAPI, AsyncServerAPI

__all__ = ["AsyncAdminAPI", "AsyncClientAPI", "AsyncServerAPI"]
