"""lode.chroma.embedding_functions: the same as lode.chroma.utils.embedding_functions."""
from .utils.embedding_functions import *  # noqa: F401,F403
from .utils.embedding_functions import LodeEmbeddingFunction, known_embedding_functions, register_embedding_function  # noqa: F401
