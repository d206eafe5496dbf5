"""Clients of chromadb's form. What they share is in config.System: two clients of one path use one open store."""
import time
from typing import Sequence

from . import _check, _config, _embedding, _schema
from ._collection import Collection
from ._http import HttpBackend
from ._local import LocalBackend
from .config import DEFAULT_DATABASE, DEFAULT_TENANT, Settings, System, Typed
from .errors import AuthorizationError, NotFoundError

MAX_BATCH = 100000
_DEFAULT = _embedding.DEFAULT


def _backend_of(system, tenant, database):
    if system.is_http:
        return HttpBackend(system.settings, tenant, database)
    return LocalBackend(system.acquire(), tenant, database)


class _Handle(Typed):
    """What clients and admin clients have in common: a system, shared with others, until close()."""

    def __init__(self, system, tenant, database):
        self._system, self._settings = system, system.settings
        self._backend = _backend_of(system, tenant, database)
        self._closed = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Other clients of the same path, and their collections, go on."""
        if not self._closed:
            self._closed = True
            self._backend.close()
            self._system.release()

    stop = close  # what chromadb calls it in its inner classes

    @staticmethod
    def clear_system_cache():
        System.forget()


class Client(_Handle):
    """What chromadb's clients are; made by PersistentClient, EphemeralClient and HttpClient, or of settings."""

    def __init__(self, tenant=DEFAULT_TENANT, database=DEFAULT_DATABASE, settings=None, system=None):
        super().__init__(system or System.shared(settings or Settings()), tenant, database)
        try:
            self._validate_tenant_database(tenant, database)
        except Exception:
            self.close()
            raise

    def _validate_tenant_database(self, tenant, database):
        """Both must exist. Programs replace this to make a client where no server is yet."""
        self._backend.use(tenant, database)

    @classmethod
    def from_system(cls, system, tenant=DEFAULT_TENANT, database=DEFAULT_DATABASE):
        return cls(tenant, database, system=system.share())

    @property
    def _server(self):
        return self

    tenant = property(lambda self: self._backend.tenant)
    database = property(lambda self: self._backend.database)

    def heartbeat(self) -> int:
        return time.time_ns()

    def get_version(self) -> str:
        return "1.0.0"

    def get_settings(self):
        return self._settings

    def get_max_batch_size(self) -> int:
        return self._backend.max_batch_size() or MAX_BATCH

    def get_user_identity(self):
        from .types import UserIdentity
        return UserIdentity(user_id="", tenant=self.tenant, databases=[self.database])

    max_batch_size = property(get_max_batch_size)

    def set_tenant(self, tenant, database=DEFAULT_DATABASE):
        self._backend.use(tenant, database)

    def set_database(self, database):
        self._backend.use(self._backend.tenant, database)

    def list_collections(self, limit=None, offset=None) -> Sequence[Collection]:
        _check.page(limit, offset)
        items = self._backend.list()[offset or 0:]
        return [Collection(self, i, _DEFAULT) for i in (items if limit is None else items[:limit])]

    def count_collections(self) -> int:
        return len(self._backend.list())

    def create_collection(self, name, schema=None, configuration=None, metadata=None, embedding_function=_DEFAULT, data_loader=None,
                          get_or_create=False) -> Collection:
        _check.name(name)
        metadata = _check.metadata(metadata)
        configuration = dict(configuration or {})
        given = configuration.get("embedding_function")
        if given is not None and embedding_function not in (None, _DEFAULT) and not _config.same_function(given, embedding_function):
            raise ValueError("Multiple embedding functions provided. Please provide only one. Embedding function conflict: %s vs %s"
                             % (embedding_function, given))
        kept, wire = _config.new(configuration, metadata, embedding_function), None
        if schema is not None:
            wire = schema.serialize_to_json() if hasattr(schema, "serialize_to_json") else schema
            of_schema, differs = _schema.read(wire)
            if differs and not _config.is_default(kept):
                raise ValueError("Failed to reconcile schema: Cannot set both collection config and schema simultaneously")
            if differs:
                kept = {"hnsw": dict(kept["hnsw"], **of_schema["hnsw"]), "embedding_function": of_schema["embedding_function"]}
            else:
                wire = None  # it says nothing that the configuration does not say
            if given is None and hasattr(schema, "keys") and differs:
                given = schema.keys["#embedding"].float_list.vector_index.config.embedding_function
        for attempt in range(100):
            item = self._backend.create(name, metadata, kept, get_or_create, wire)
            if get_or_create:
                _config.check_function(embedding_function, item["configuration"]["embedding_function"])
            try:
                return Collection(self, item, embedding_function if given is None else given, data_loader)
            except NotFoundError:  # somebody has deleted it already
                if not get_or_create or attempt == 99:
                    raise

    def get_or_create_collection(self, name, schema=None, configuration=None, metadata=None, embedding_function=_DEFAULT,
                                 data_loader=None) -> Collection:
        return self.create_collection(name, schema, configuration, metadata, embedding_function, data_loader, get_or_create=True)

    def _found(self, item, embedding_function, data_loader):
        _config.check_function(embedding_function, item["configuration"]["embedding_function"])
        return Collection(self, item, embedding_function, data_loader)

    def get_collection(self, name, embedding_function=_DEFAULT, data_loader=None) -> Collection:
        return self._found(self._backend.find(name), embedding_function, data_loader)

    def get_collection_by_id(self, collection_id, embedding_function=_DEFAULT, data_loader=None) -> Collection:
        return self._found(self._backend.find_id(str(collection_id)), embedding_function, data_loader)

    def delete_collection(self, name) -> None:
        self._backend.delete(name)

    def reset(self) -> bool:
        if not getattr(self._settings, "allow_reset", False) and isinstance(self._backend, LocalBackend):
            raise AuthorizationError("Resetting is not allowed by this configuration; set allow_reset=True in Settings")
        return self._backend.reset()


class AdminClient(_Handle):
    """Tenants and databases."""

    def __init__(self, settings=None, system=None):
        super().__init__(system or System.shared(settings or Settings()), DEFAULT_TENANT, DEFAULT_DATABASE)

    @classmethod
    def from_system(cls, system):
        return cls(system=system.share())

    def create_tenant(self, name) -> None:
        if len(name) < 3:
            raise ValueError("Tenant name must be at least 3 characters long")
        self._backend.create_tenant(name)

    def get_tenant(self, name):
        return self._backend.get_tenant(name)

    def create_database(self, name, tenant=DEFAULT_TENANT) -> None:
        _check.name(name)
        self._backend.create_database(name, tenant)

    def get_database(self, name, tenant=DEFAULT_TENANT):
        return self._backend.get_database(name, tenant)

    def delete_database(self, name, tenant=DEFAULT_TENANT) -> None:
        self._backend.delete_database(name, tenant)

    def list_databases(self, limit=None, offset=None, tenant=DEFAULT_TENANT):
        found = self._backend.list_databases(tenant)[offset or 0:]
        return found if limit is None else found[:limit]
