"""chromadb.utils.embedding_functions.roboflow_embedding_function."""
from . import RoboflowEmbeddingFunction  # noqa: F401
