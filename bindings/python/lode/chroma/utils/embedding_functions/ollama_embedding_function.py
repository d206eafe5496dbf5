"""chromadb.utils.embedding_functions.ollama_embedding_function."""
from . import OllamaEmbeddingFunction  # noqa: F401
