"""chromadb.utils.embedding_functions.google_embedding_function."""
from . import (GoogleGeminiEmbeddingFunction,
               GoogleGenaiEmbeddingFunction,
               GoogleGenerativeAiEmbeddingFunction,
               GooglePalmEmbeddingFunction,
               GoogleVertexEmbeddingFunction)  # noqa: F401
