"""chromadb.utils.embedding_functions.cohere_embedding_function."""
from . import CohereEmbeddingFunction  # noqa: F401
