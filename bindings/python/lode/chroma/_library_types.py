"""Types of arrays, with and without numpy."""
from enum import Enum
from typing import Any, Sequence, Union

from .._library import numpy

Embedding = Union[Sequence[float], numpy.ndarray] if numpy is not None else Sequence[float]
Image = Any


class IncludeEnum(str, Enum):
    documents = "documents"
    embeddings = "embeddings"
    metadatas = "metadatas"
    distances = "distances"
    uris = "uris"
    data = "data"
