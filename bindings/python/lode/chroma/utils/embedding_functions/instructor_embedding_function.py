"""chromadb.utils.embedding_functions.instructor_embedding_function."""
from . import InstructorEmbeddingFunction  # noqa: F401
