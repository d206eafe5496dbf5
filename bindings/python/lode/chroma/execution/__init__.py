"""chromadb.execution."""
