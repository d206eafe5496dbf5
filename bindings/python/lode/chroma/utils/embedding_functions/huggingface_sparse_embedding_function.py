"""chromadb.utils.embedding_functions.huggingface_sparse_embedding_function."""
from . import HuggingFaceSparseEmbeddingFunction  # noqa: F401
