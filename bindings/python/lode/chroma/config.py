"""chromadb.config: settings, and the systems that clients share."""
import atexit
import os
import shutil
import tempfile
import threading

from .errors import InvalidArgumentError

DEFAULT_TENANT, DEFAULT_DATABASE = "default_tenant", "default_database"
_HTTP = ("chromadb.api.fastapi.FastAPI", "chromadb.api.async_fastapi.AsyncFastAPI", "rest")


class Typed:
    """Libraries name these classes in models of pydantic, which then checks the class only."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source, handler):
        from pydantic_core import core_schema
        return core_schema.is_instance_schema(cls)


class Settings(Typed):
    """All of Chroma's settings are taken and kept; those of addresses, paths, headers, allow_reset, tenant and database mean something."""
    _known = {"environment": "", "chroma_api_impl": "chromadb.api.rust.RustBindingsAPI", "is_persistent": False, "persist_directory": "./chroma",
              "chroma_server_host": None, "chroma_server_http_port": None, "chroma_server_ssl_enabled": False, "chroma_server_ssl_verify": None,
              "chroma_server_headers": None, "chroma_server_api_default_path": "/api/v2", "allow_reset": False, "anonymized_telemetry": True,
              "tenant_id": "default", "topic_namespace": "default", "chroma_client_auth_provider": None, "chroma_client_auth_credentials": None,
              "chroma_auth_token_transport_header": None, "chroma_overwrite_singleton_tenant_database_access_from_auth": False}

    def __init__(self, **values):
        self.__dict__.update(self._known)
        for name in self._known:
            if name.upper() in os.environ:
                found = os.environ[name.upper()]
                self.__dict__[name] = found.lower() in ("1", "true", "yes") if isinstance(self._known[name], bool) else \
                    int(found) if name.endswith("_port") else found
        self.__dict__.update(values)

    def require(self, name):
        if getattr(self, name, None) is None:
            raise ValueError("Missing required config value '%s'" % name)
        return getattr(self, name)

    def __getitem__(self, name):
        return getattr(self, name)

    def __eq__(self, other):
        return isinstance(other, Settings) and self.__dict__ == other.__dict__

    __hash__ = None

    def __repr__(self):
        return "Settings(%s)" % ", ".join("%s=%r" % item for item in sorted(self.__dict__.items()) if self._known.get(item[0]) != item[1])

    def model_copy(self, **_):
        return Settings(**self.__dict__)

    copy = model_copy


class System(Typed):
    """What the clients of one path, or all in-memory ones, share: an open store, closed with the last of them."""
    _lock, _shared = threading.RLock(), {}

    def __init__(self, settings):
        self.settings, self._store, self._users, self._folder = settings, None, 0, None
        self.is_http = settings.chroma_api_impl in _HTTP

    @property
    def identifier(self):
        if self.is_http:
            return "%s:%s" % (self.settings.chroma_server_host, self.settings.chroma_server_http_port)
        return os.path.realpath(self.settings.persist_directory) if self.settings.is_persistent else "ephemeral"

    @classmethod
    def shared(cls, settings):
        made = cls(settings)
        if made.is_http:
            return made
        with cls._lock:
            found = cls._shared.get(made.identifier)
            if found is not None and found._users and settings != found.settings:
                raise ValueError("An instance of Chroma already exists for %s with different settings" % made.identifier)
            if found is None or (found._users == 0 and not found._folder):
                found = cls._shared[made.identifier] = made
            return found

    def share(self):
        """Later clients of the same settings use this one."""
        if not self.is_http:
            with self._lock:
                self._shared[self.identifier] = self
        return self

    @classmethod
    def forget(cls):
        """Later clients open their stores anew; those that are open stay so."""
        with cls._lock:
            cls._shared.clear()

    def start(self):
        self.acquire()

    def stop(self):
        self.release()

    def reset_state(self):
        from ._local import LocalBackend
        LocalBackend(self, DEFAULT_TENANT, DEFAULT_DATABASE).reset()

    def instance(self, kind):
        from ._client import Client
        return Client.from_system(self)

    def acquire(self):
        with self._lock:
            self._users += 1
            try:
                self.store()
            except BaseException:
                self._users -= 1
                raise
        return self

    _running = property(lambda self: self._users > 0)

    def release(self):
        with self._lock:
            self._users -= 1
            if self._users <= 0 and self._store is not None:
                self._store.close()
                self._store = None
                if self._folder is not None:  # what is in memory ends with its last client
                    shutil.rmtree(self._folder, ignore_errors=True)
                    self._folder = None

    def store(self):
        """The open store. After the last client was closed it is opened again for a collection that is still in use, if it still exists."""
        from ..store import Store
        from ._local import Translate
        with self._lock:
            if self._store is None:
                if self._users <= 0 and not self.settings.is_persistent:
                    raise InvalidArgumentError("the client is closed, and what it held in memory is gone")
                path = self._path()
                if self._users <= 0 and not os.path.exists(os.path.join(path, "lode.db")):
                    raise InvalidArgumentError("the client is closed, and %s is not a store any more" % path)
                with Translate():
                    self._store = Store(path)
            return self._store

    def _path(self):
        if self.settings.is_persistent:
            return _not_chromas(str(self.settings.persist_directory))
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="lode-chroma-")
            atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder


def _not_chromas(path):
    """A directory that Chroma made is refused, untouched: it must be rescued first. Then the rescued one beside it is meant."""
    if not os.path.exists(os.path.join(path, "chroma.sqlite3")) or os.path.exists(os.path.join(path, "lode.db")):
        return path
    rescued = path.rstrip(os.sep) + "-lode"
    if not os.path.exists(os.path.join(rescued, "lode.db")):
        raise InvalidArgumentError(
            "%s is a directory of Chroma's, which Lode never writes into. Bring its data over with\n"
            "    lode rescue chroma %s --to %s\nand open that." % (path, path, rescued))
    return rescued
