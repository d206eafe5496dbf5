"""Chroma's HTTP interface (v2), as `lode serve` and Chroma's own server speak it."""
import base64
import json
import selectors
import struct
import threading
import urllib.parse
import uuid
from http.client import HTTPConnection, HTTPException, HTTPSConnection

from ..store import Row
from . import _config, _schema, errors

_ERRORS = {"NotFoundError": errors.NotFoundError, "InvalidArgumentError": errors.InvalidArgumentError,
           "InvalidDimension": errors.InvalidDimensionException, "UniqueConstraintError": errors.UniqueConstraintError}


def _error(status, body):
    try:
        answer = json.loads(body)
        name, text = answer.get("error", ""), answer.get("message", "")
    except (ValueError, AttributeError):
        name, text = "", body.decode("utf-8", "replace")
    if status in (401, 403):
        return errors.AuthorizationError(text or "the server refuses the token")
    if name in _ERRORS:
        return _ERRORS[name](text)
    if status == 409:
        return errors.UniqueConstraintError(text)
    if status == 404:
        return errors.NotFoundError(text or "no such thing there")
    if status in (400, 422):
        return errors.InvalidArgumentError(text)
    return errors.InternalError("the server answered %d: %s" % (status, text))


def _base64(vector):
    return base64.b64encode(struct.pack("<%df" % len(vector), *vector)).decode()


def _is_closed(sock):
    """No answer is awaited: what can be read is the end that the server has sent."""
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))


def address(host, port, ssl, headers, settings=None):
    """As settings. The host may be a whole address, http://HOST:PORT. `settings` that say something else are refused, as Chroma does."""
    host = str(host)
    for what, name, given in (("host", "chroma_server_host", host), ("http port", "chroma_server_http_port", port)):
        found = getattr(settings, name, None)
        if found and str(found) != str(given):
            raise ValueError("Chroma server %s provided in settings[%s] is different to the one provided in HttpClient: [%s]" % (what, found, given))
    if "://" in host:
        parts = urllib.parse.urlsplit(host)
        host, port, ssl = parts.hostname, parts.port or (443 if parts.scheme == "https" else port), parts.scheme == "https"
    return {"chroma_server_host": host, "chroma_server_http_port": int(port), "chroma_server_ssl_enabled": bool(ssl), "chroma_server_headers": headers}


def _token(settings):
    """The header of Chroma's own settings for a token."""
    credentials = settings.chroma_client_auth_credentials
    if not credentials:
        return {}
    if str(settings.chroma_client_auth_provider or "").endswith("BasicAuthClientProvider"):
        return {"Authorization": "Basic " + base64.b64encode(credentials.encode()).decode()}
    if str(settings.chroma_auth_token_transport_header or "").lower().endswith("x-chroma-token"):
        return {"X-Chroma-Token": credentials}
    return {"Authorization": "Bearer " + credentials}


class HttpBackend:
    closed = False

    def __init__(self, settings, tenant, database, timeout=60):
        found = address(settings.chroma_server_host or "localhost", settings.chroma_server_http_port or 8000, settings.chroma_server_ssl_enabled, None)
        self.host, self.port, self.ssl, self.timeout = found["chroma_server_host"], found["chroma_server_http_port"], found["chroma_server_ssl_enabled"], timeout
        self.headers = dict(_token(settings), **dict(settings.chroma_server_headers or {}, **{"Content-Type": "application/json"}))
        self.tenant, self.database = tenant, database
        self.threads = threading.local()

    def copy(self):
        made = object.__new__(HttpBackend)
        made.__dict__.update(self.__dict__)
        return made

    def max_batch_size(self):
        return self.request("GET", "/api/v2/pre-flight-checks").get("max_batch_size")

    def close(self):
        connection = getattr(self.threads, "connection", None)
        if connection is not None:
            connection.close()
            self.threads.connection = None

    def _connection(self):
        """The thread's connection, and whether it is an open one that served before."""
        connection = getattr(self.threads, "connection", None)
        if connection is not None and connection.sock is not None and not _is_closed(connection.sock):
            return connection, True
        self.close()
        kind = HTTPSConnection if self.ssl else HTTPConnection
        connection = self.threads.connection = kind(self.host, self.port, timeout=self.timeout)
        return connection, False

    def request(self, method, path, body=None, reads=False):
        """`reads`: a POST that changes nothing. Only what changes nothing is sent again, once, if a connection that served
        before ends without a byte of the answer: the server may have done what it was asked for."""
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        while True:
            connection, reused = self._connection()
            response = None
            try:
                connection.request(method, path, data, self.headers)
                response = connection.getresponse()
                answer = response.read()
                break
            except (HTTPException, OSError) as why:
                self.close()
                if reused and response is None and isinstance(why, ConnectionError) and (reads or method == "GET"):
                    continue
                raise ValueError("Could not connect to a Chroma server at %s:%s: %s. Is `lode serve` running?"
                                 % (self.host, self.port, why)) from None
        if response.status >= 400:
            raise _error(response.status, answer)
        return json.loads(answer) if answer else None

    def path(self, *parts):
        quoted = [urllib.parse.quote(str(p), safe="") for p in (self.tenant, "databases", self.database) + parts]
        return "/api/v2/tenants/" + "/".join(quoted)

    @staticmethod
    def _describe(found):
        configuration = found.get("configuration_json") or {}
        return {"id": uuid.UUID(found["id"]), "name": found["name"], "metadata": found.get("metadata"), "full": found["name"],
                "dimension": found.get("dimension"), "schema": found.get("schema") or _schema.shown(_config.shown("l2", configuration), None),
                "kept_schema": None,  # the server checks filters
                "configuration": _config.shown((configuration.get("hnsw") or {}).get("space", "l2"), configuration)}

    def use(self, tenant, database):
        quoted = [urllib.parse.quote(str(p), safe="") for p in (tenant, database)]
        self.request("GET", "/api/v2/tenants/" + quoted[0])
        self.request("GET", "/api/v2/tenants/%s/databases/%s" % tuple(quoted))
        self.tenant, self.database = tenant, database

    def list(self):
        return [self._describe(c) for c in self.request("GET", self.path("collections"))]

    def find(self, name):
        return self._describe(self.request("GET", self.path("collections", name)))

    def find_id(self, id):
        return self._describe(self.request("GET", self.path("collections", "by-id", id)))

    def create_tenant(self, name):
        self.request("POST", "/api/v2/tenants", {"name": name})

    def get_tenant(self, name):
        return {"name": self.request("GET", "/api/v2/tenants/" + urllib.parse.quote(name, safe=""))["name"]}

    def _databases(self, tenant, *name):
        return "/".join(["/api/v2/tenants", urllib.parse.quote(tenant, safe=""), "databases"] + [urllib.parse.quote(n, safe="") for n in name])

    def create_database(self, name, tenant):
        self.request("POST", self._databases(tenant), {"name": name})

    def get_database(self, name, tenant):
        found = self.request("GET", self._databases(tenant, name))
        return {"id": uuid.UUID(found["id"]), "name": found["name"], "tenant": found["tenant"]}

    def delete_database(self, name, tenant):
        self.request("DELETE", self._databases(tenant, name))

    def list_databases(self, tenant):
        return [{"id": uuid.UUID(d["id"]), "name": d["name"], "tenant": d["tenant"]} for d in self.request("GET", self._databases(tenant))]

    def create(self, name, metadata, configuration, get_or_create, schema=None):
        body = {"name": name, "metadata": metadata, "get_or_create": get_or_create, "configuration": None if schema else configuration, "schema": schema}
        return self._describe(self.request("POST", self.path("collections"), body))

    def delete(self, name):
        self.request("DELETE", self.path("collections", name))

    def modify(self, item, name, metadata, configuration):
        body = {"new_name": name, "new_metadata": metadata}
        if configuration is not None:
            hnsw = {k: v for k, v in configuration["hnsw"].items() if k != "space"}
            body["new_configuration"] = {"hnsw": hnsw, "embedding_function": configuration["embedding_function"]}
        self.request("PUT", self.path("collections", item["id"]), body)
        return self.find(name if name is not None else item["name"])

    def reset(self):
        return self.request("POST", "/api/v2/reset")

    def open(self, item):
        return HttpRecords(self, item["id"])


class HttpRecords:
    def __init__(self, backend, id):
        self.backend, self.id = backend, id

    def _send(self, verb, body):
        return self.backend.request("POST", self.backend.path("collections", self.id, verb), body, verb in ("get", "query"))

    def count(self):
        return self.backend.request("GET", self.backend.path("collections", self.id, "count"))

    closed = False

    def indexing_status(self):
        from .api.types import IndexingStatus
        return IndexingStatus(**self.backend.request("GET", self.backend.path("collections", self.id, "indexing_status")))

    def write(self, verb, ids, embeddings, documents, metadatas, uris):
        vectors = None if embeddings is None else [None if v is None else _base64(v) for v in embeddings]
        self._send(verb, {"ids": list(ids), "embeddings": vectors, "documents": documents, "metadatas": metadatas, "uris": uris})

    def delete(self, ids, where, where_document):
        answer = self._send("delete", {"ids": ids, "where": where, "where_document": where_document})
        return (answer or {}).get("deleted", 0)

    @staticmethod
    def _include(parts):
        names = {"document": "documents", "metadata": "metadatas", "vector": "embeddings"}
        return [names[p] for p in parts]

    @staticmethod
    def _rows(answer, at=None):
        pick = (lambda name: answer.get(name)) if at is None else (lambda name: (answer.get(name) or [None] * (at + 1))[at])  # noqa: E731
        ids = pick("ids")
        columns = [pick(name) or [None] * len(ids) for name in ("documents", "metadatas", "embeddings", "distances", "uris")]
        rows = []
        for i, (id, document, metadata, vector, distance, uri) in enumerate(zip(ids, *columns)):
            if uri is not None:
                metadata = dict(metadata or {}, **{"chroma:uri": uri})
            rows.append(Row(id, document, metadata, vector, 0, distance, None, i))
        return rows

    def get(self, ids, where, where_document, limit, offset, parts):
        return self._rows(self._send("get", {"ids": ids, "where": where, "where_document": where_document, "limit": limit,
                                             "offset": offset or 0, "include": self._include(parts) + ["uris"]}))

    def query(self, embeddings, k, ids, where, where_document, parts):
        answer = self._send("query", {"query_embeddings": [list(map(float, v)) for v in embeddings], "n_results": k, "ids": ids,
                                      "where": where, "where_document": where_document,
                                      "include": self._include(parts) + ["distances", "uris"]})
        return [self._rows(answer, i) for i in range(len(answer["ids"]))]
