"""chromadb.api.collection_configuration: configurations of collections, as dictionaries, and the JSON that is kept of them."""
import json
from typing import Any, Dict, Literal, TypedDict

from .. import _config
from .._embedding import built, described

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


def load_collection_configuration_from_json(found):
    """With the embedding function made again; None where it says nothing of one."""
    _config.one_index(found)
    return {"hnsw": found.get("hnsw"), "spann": found.get("spann"), "embedding_function": built(found.get("embedding_function"))}


def load_collection_configuration_from_json_str(text):
    return load_collection_configuration_from_json(json.loads(text))


def collection_configuration_to_json(configuration):
    return {"hnsw": configuration.get("hnsw"), "spann": configuration.get("spann"), "embedding_function": described(configuration.get("embedding_function"))}


def collection_configuration_to_json_str(configuration):
    return json.dumps(collection_configuration_to_json(configuration))


def _over(old, new, names):
    return dict(old, **{name: new[name] for name in names if name in new})


def overwrite_hnsw_configuration(existing_hnsw_config, update_hnsw_config):
    return _over(existing_hnsw_config, update_hnsw_config, ("ef_search", "num_threads", "batch_size", "sync_threshold", "resize_factor"))


def overwrite_spann_configuration(existing_spann_config, update_spann_config):
    return _over(existing_spann_config, update_spann_config, ("search_nprobe", "ef_search"))
