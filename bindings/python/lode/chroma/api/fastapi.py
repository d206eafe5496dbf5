"""chromadb.api.fastapi."""
from .._client import Client


class _OfServer(type(Client)):
    def __instancecheck__(cls, found):
        return isinstance(found, Client) and found._system.is_http


class FastAPI(Client, metaclass=_OfServer):
    """A client of a server. There is one class of clients: isinstance() tells which it is."""


__all__ = ["FastAPI"]
