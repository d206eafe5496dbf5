"""chromadb.utils.embedding_functions.amazon_bedrock_embedding_function."""
from . import AmazonBedrockEmbeddingFunction  # noqa: F401
