"""chromadb.utils.embedding_functions.text2vec_embedding_function."""
from . import Text2VecEmbeddingFunction  # noqa: F401
