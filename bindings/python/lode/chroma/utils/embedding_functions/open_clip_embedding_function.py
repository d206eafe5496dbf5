"""chromadb.utils.embedding_functions.open_clip_embedding_function."""
from . import OpenCLIPEmbeddingFunction  # noqa: F401
