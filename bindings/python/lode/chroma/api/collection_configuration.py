"""chromadb.api.collection_configuration."""
from typing import Any, Dict, Literal, TypedDict

HNSWConfiguration = SpannConfiguration = CreateHNSWConfiguration = CreateSpannConfiguration = Dict[str, Any]
UpdateHNSWConfiguration = UpdateSpannConfiguration = Dict[str, Any]
Space = Literal["l2", "cosine", "ip"]


class CreateCollectionConfiguration(TypedDict, total=False):
    hnsw: Any
    spann: Any
    embedding_function: Any


class UpdateCollectionConfiguration(TypedDict, total=False):
    hnsw: Any
    spann: Any
    embedding_function: Any


CollectionConfiguration = CreateCollectionConfiguration
