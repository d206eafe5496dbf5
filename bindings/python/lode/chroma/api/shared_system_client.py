"""chromadb.api.shared_system_client: what the clients of one path share."""
from ..config import System


class SharedSystemClient:
    _identifier_to_system = System._shared

    @staticmethod
    def clear_system_cache():
        System.forget()
