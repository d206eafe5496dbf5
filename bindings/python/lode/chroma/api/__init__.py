"""chromadb.api: the classes that libraries name in annotations and isinstance checks."""
import abc

from .. import _client
from .collection_configuration import CreateCollectionConfiguration, UpdateCollectionConfiguration  # noqa: F401

BaseAPI = ServerAPI = ClientAPI = _client.Client


class AdminAPI(abc.ABC):
    """Whatever manages tenants and databases."""


class AsyncClientAPI(abc.ABC):
    """Whatever is a client with async methods."""


class AsyncAdminAPI(abc.ABC):
    """The same of tenants and databases."""


AsyncBaseAPI = AsyncServerAPI = AsyncClientAPI
AdminAPI.register(_client.AdminClient)
