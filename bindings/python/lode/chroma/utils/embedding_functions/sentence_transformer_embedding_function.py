"""chromadb.utils.embedding_functions.sentence_transformer_embedding_function."""
from . import SentenceTransformerEmbeddingFunction  # noqa: F401
