"""chromadb.utils.embedding_functions.morph_embedding_function."""
from . import MorphEmbeddingFunction  # noqa: F401
