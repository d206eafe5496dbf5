"""chromadb.utils."""
