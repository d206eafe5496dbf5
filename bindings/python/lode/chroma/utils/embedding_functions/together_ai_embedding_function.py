"""chromadb.utils.embedding_functions.together_ai_embedding_function."""
from . import TogetherAIEmbeddingFunction  # noqa: F401
