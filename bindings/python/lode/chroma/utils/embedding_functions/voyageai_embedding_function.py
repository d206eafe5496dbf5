"""chromadb.utils.embedding_functions.voyageai_embedding_function."""
from . import VoyageAIEmbeddingFunction  # noqa: F401
