"""chromadb.api.rust: the name that tests compare with."""
from .._client import Client as RustBindingsAPI

__all__ = ["RustBindingsAPI"]
