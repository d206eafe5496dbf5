"""chromadb.utils.embedding_functions.baseten_embedding_function."""
from . import BasetenEmbeddingFunction  # noqa: F401
