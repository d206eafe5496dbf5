"""chromadb.base_types."""
from .types import *  # noqa: F401,F403
