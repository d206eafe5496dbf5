"""chromadb.utils.embedding_functions.huggingface_embedding_function."""
from . import HuggingFaceEmbeddingFunction, HuggingFaceEmbeddingServer  # noqa: F401
