"""chromadb.api.rust."""
from .._client import Client


class _InProcess(type(Client)):
    def __instancecheck__(cls, found):
        return isinstance(found, Client) and not found._system.is_http


class RustBindingsAPI(Client, metaclass=_InProcess):
    """A client of a store in this process."""


__all__ = ["RustBindingsAPI"]
