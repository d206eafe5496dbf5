"""chromadb.utils.embedding_functions.openai_embedding_function."""
from . import OpenAIEmbeddingFunction  # noqa: F401
