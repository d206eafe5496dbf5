"""chromadb.utils.embedding_functions.nomic_embedding_function."""
from . import NomicEmbeddingFunction  # noqa: F401
