"""chromadb.utils.embedding_functions.chroma_bm25_embedding_function."""
from . import ChromaBm25EmbeddingFunction  # noqa: F401
