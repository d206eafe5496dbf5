"""chromadb.api.configuration: older names."""
from typing import Any, Dict

CollectionConfigurationInterface = CollectionConfigurationInternal = HNSWConfigurationInterface = Dict[str, Any]
