"""chromadb.utils.embedding_functions.jina_embedding_function."""
from . import JinaEmbeddingFunction  # noqa: F401
