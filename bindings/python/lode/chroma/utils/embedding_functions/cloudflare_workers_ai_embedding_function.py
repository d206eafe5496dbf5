"""chromadb.utils.embedding_functions.cloudflare_workers_ai_embedding_function."""
from . import CloudflareWorkersAIEmbeddingFunction  # noqa: F401
