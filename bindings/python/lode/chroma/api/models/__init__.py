"""chromadb.api.models."""
