"""chromadb.api.async_client: the same clients, whose calls run on a thread while the event loop goes on."""
import asyncio
import functools

from .._client import AdminClient, Client
from .._collection import Collection
from ..config import DEFAULT_DATABASE, DEFAULT_TENANT
from . import AsyncAdminAPI, AsyncClientAPI


async def _call(function, *args, **kwargs):
    return await asyncio.get_running_loop().run_in_executor(None, functools.partial(function, *args, **kwargs))


class _Async:
    """Methods of `_sync` become coroutines; collections that they return become AsyncCollection."""

    def __init__(self, sync):
        self._sync = sync

    def __getattr__(self, name):
        found = getattr(self._sync, name)
        if not callable(found) or name in self._plain:
            return found

        async def method(*args, **kwargs):
            return _wrapped(await _call(found, *args, **kwargs))
        return method

    _plain = ()


class AsyncCollection(_Async):
    _plain = ("get_model",)

    def __eq__(self, other):
        return isinstance(other, AsyncCollection) and self._sync == other._sync

    def __hash__(self):
        return hash(self._sync)


def _wrapped(value):
    if isinstance(value, Collection):
        return AsyncCollection(value)
    if isinstance(value, list) and value and isinstance(value[0], Collection):
        return [AsyncCollection(item) for item in value]
    return value


class _Unvalidated(Client):
    """Its tenant and database are looked up by the client that it is for."""

    def _validate_tenant_database(self, tenant, database):
        pass


class AsyncClient(_Async, AsyncClientAPI):
    _plain = ("get_settings", "clear_system_cache")

    @classmethod
    async def create(cls, tenant=DEFAULT_TENANT, database=DEFAULT_DATABASE, settings=None):
        client = cls(await _call(_Unvalidated, tenant, database, settings))
        await client._validate_tenant_database(tenant, database)
        return client

    async def _validate_tenant_database(self, tenant, database):
        await _call(self._sync._backend.use, tenant, database)

    async def get_user_identity(self):
        return await _call(self._sync.get_user_identity)

    @classmethod
    async def from_system_async(cls, system, tenant=DEFAULT_TENANT, database=DEFAULT_DATABASE):
        return cls(await _call(Client.from_system, system, tenant, database))

    @classmethod
    def from_system(cls, system, tenant=DEFAULT_TENANT, database=DEFAULT_DATABASE):
        return cls(Client.from_system(system, tenant, database))

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()


class AsyncAdminClient(_Async, AsyncAdminAPI):
    def __init__(self, settings=None, sync=None):
        super().__init__(sync or AdminClient(settings))

    @classmethod
    def from_system(cls, system):
        return cls(sync=AdminClient.from_system(system))
