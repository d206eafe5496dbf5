"""chromadb.utils.embedding_functions.mistral_embedding_function."""
from . import MistralEmbeddingFunction  # noqa: F401
