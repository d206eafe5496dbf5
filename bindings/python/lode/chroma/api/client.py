"""chromadb.api.client."""
from .._client import AdminClient, Client
from .shared_system_client import SharedSystemClient

__all__ = ["AdminClient", "Client", "SharedSystemClient"]
