"""Chroma's things on a store of this machine. They are kept as `lode serve` keeps them, so that both can use one store: a collection
by its own name, its configuration under "$chroma" of its metadata, a record's uri under "chroma:uri", a collection's id made of its
number."""
import uuid

from .. import errors as lode_errors
from . import _config, _schema, errors

KEY, URI, REGISTRY = "$chroma", "chroma:uri", ".chroma"


def _seal(uid):
    mask = (1 << 64) - 1
    x = uid ^ 0x6C6F64652D756964
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & mask
    x = (x ^ x >> 27) * 0x94D049BB133111EB & mask
    return (x ^ x >> 31) & 0xFFFFFFFFFFFF


def uuid_of(uid):
    return uuid.UUID("%08x-%04x-8%03x-800%x-%012x" % (uid >> 32, uid >> 16 & 0xFFFF, uid >> 4 & 0xFFF, uid & 0xF, _seal(uid)))


def _part(text):
    if not isinstance(text, str):
        raise ValueError("the name of a tenant or database is a string, not %r" % (text,))
    return text.replace("%", "%25").replace("/", "%2F")


class Translate:
    """Lode's errors become Chroma's. `name`: of the collection, which is what is not there then."""

    def __init__(self, name=None):
        self.name = name

    def __enter__(self):
        return self

    def __exit__(self, kind, why, _trace):
        if kind is None or not issubclass(kind, lode_errors.LodeError):
            return False
        text = str(why)
        if isinstance(why, lode_errors.NotFound):
            raise errors.NotFoundError("Collection [%s] does not exist" % self.name if self.name else text) from why
        if isinstance(why, lode_errors.Mismatch):
            raise errors.InvalidDimensionException(text) from why
        if isinstance(why, lode_errors.Exists):
            raise errors.UniqueConstraintError(text) from why
        if isinstance(why, (lode_errors.Invalid, lode_errors.Refused, lode_errors.Limit)):
            raise errors.InvalidArgumentError(text) from why
        raise errors.InternalError(text) from why


class LocalBackend:
    """A tenant and a database of a store that several clients share (config.System)."""

    def __init__(self, system, tenant, database):
        self.system, self.tenant, self.database = system, tenant, database

    store = property(lambda self: self.system.store())

    def copy(self):
        return LocalBackend(self.system, self.tenant, self.database)

    def close(self):
        pass

    def max_batch_size(self):
        return None

    def full_name(self, name):
        if (self.tenant, self.database) == ("default_tenant", "default_database"):
            return name
        return "%s/%s/%s" % (_part(self.tenant), _part(self.database), name)

    def _short_name(self, full):
        if (self.tenant, self.database) == ("default_tenant", "default_database"):
            return full if "/" not in full and full != REGISTRY else None
        head = self.full_name("")
        return full[len(head):] if full.startswith(head) else None

    def use(self, tenant, database):
        """Another tenant and database from now on; they must exist, as `lode serve` and rescues make them."""
        self.get_tenant(tenant)
        self.get_database(database, tenant)
        self.tenant, self.database = tenant, database

    # ---- Tenants and databases: records of the registry

    def _registered(self, id=None, where=None):
        try:
            with Translate(), self.store.collection(REGISTRY) as registry:
                return registry.get(None if id is None else [id], where, include=("metadata",))
        except errors.NotFoundError:
            return []

    def _register(self, id, metadata, what):
        with Translate(), self.store.collection(REGISTRY, create=True) as registry:
            try:
                registry.add([id], None, [metadata], None)
            except lode_errors.Exists:
                raise errors.UniqueConstraintError("%s already exists" % what) from None

    def create_tenant(self, name):
        if name == "default_tenant":
            raise errors.UniqueConstraintError("Tenant [%s] already exists" % name)
        self._register("t:" + _part(name), {"kind": "tenant", "name": name}, "Tenant [%s]" % name)

    def get_tenant(self, name):
        if name != "default_tenant" and not self._registered("t:" + _part(name)):
            raise errors.NotFoundError("Tenant [%s] not found" % name)
        return {"name": name}

    def create_database(self, name, tenant):
        what = "Database [%s]" % name
        if (tenant, name) == ("default_tenant", "default_database"):
            raise errors.UniqueConstraintError("%s already exists" % what)
        self._register("d:%s/%s" % (_part(tenant), _part(name)), {"kind": "database", "tenant": tenant, "name": name, "id": str(uuid.uuid4())}, what)

    def get_database(self, name, tenant):
        if (tenant, name) == ("default_tenant", "default_database"):
            return {"id": uuid.UUID(int=0), "name": name, "tenant": tenant}
        found = self._registered("d:%s/%s" % (_part(tenant), _part(name)))
        if not found:
            raise errors.NotFoundError("Database [%s] not found. Are you sure it exists?" % name)
        return {"id": uuid.UUID(found[0].metadata["id"]), "name": name, "tenant": tenant}

    def delete_database(self, name, tenant):
        self.get_database(name, tenant)
        inner = LocalBackend(self.system, tenant, name)
        for item in inner.list():
            inner.delete(item["name"])
        if (tenant, name) != ("default_tenant", "default_database"):
            with Translate(), self.store.collection(REGISTRY) as registry:
                registry.delete(["d:%s/%s" % (_part(tenant), _part(name))])

    def list_databases(self, tenant):
        first = [self.get_database("default_database", tenant)] if tenant == "default_tenant" else []
        found = self._registered(where={"$and": [{"kind": "database"}, {"tenant": tenant}]})
        return first + [{"id": uuid.UUID(row.metadata["id"]), "name": row.metadata["name"], "tenant": tenant} for row in found]

    # ---- Collections

    def _describe(self, info):
        metadata = dict(info.metadata or {})
        kept = metadata.pop(KEY, None) or {}
        configuration = kept.get("configuration") if isinstance(kept, dict) else None
        schema = kept.get("schema") if isinstance(kept, dict) else None
        shown = _config.shown(info.metric, configuration)
        return {"id": uuid_of(info.uid), "name": self._short_name(info.name), "metadata": metadata or None, "full": info.name,
                "dimension": info.dimension or None, "configuration": shown, "schema": _schema.shown(shown, schema), "kept_schema": schema}

    def list(self):
        with Translate():
            infos = self.store.collections()
        # NAME~reembed is what Store.reembed() makes aside
        return [self._describe(i) for i in infos if self._short_name(i.name) is not None and not i.name.endswith("~reembed")]

    def find(self, name):
        for item in self.list():
            if item["name"] == name:
                return item
        raise errors.NotFoundError("Collection [%s] does not exist" % name)

    def find_id(self, id):
        for item in self.list():
            if str(item["id"]) == id:
                return item
        raise errors.NotFoundError("Collection [%s] does not exist" % id)

    def create(self, name, metadata, configuration, get_or_create, schema=None):
        kept = dict(metadata or {})
        kept[KEY] = {"configuration": configuration}
        if schema is not None:
            kept[KEY]["schema"] = schema
        for _ in range(100):  # others may delete it before it is found
            try:
                if get_or_create:
                    return self.find(name)
            except errors.NotFoundError:
                pass
            try:
                with Translate():
                    self.store.collection(self.full_name(name), create=True, must_create=not get_or_create, metric=configuration["hnsw"]["space"],
                                          metadata=kept).close()
            except errors.UniqueConstraintError:
                raise errors.UniqueConstraintError("Collection [%s] already exists" % name) from None
            if not get_or_create:
                break
        return self.find(name)

    def delete(self, name):
        with Translate():
            try:
                self.store.drop(self.full_name(name))
                try:
                    self.store.drop(self.full_name(name) + "~reembed")
                except lode_errors.NotFound:
                    pass
            except lode_errors.NotFound:
                raise errors.NotFoundError("Collection [%s] does not exist" % name) from None

    def modify(self, item, name, metadata, configuration):
        with Translate(item["name"]):
            full = item["full"]
            if name is not None and name != item["name"]:
                self.store.rename(full, self.full_name(name))
                full = self.full_name(name)
            if metadata is not None or configuration is not None:
                info = next((i for i in self.store.collections() if i.name == full), None)
                if info is None:
                    raise errors.NotFoundError("Collection [%s] does not exist" % item["name"])
                old = dict(info.metadata or {})
                kept = dict(metadata) if metadata is not None else {k: v for k, v in old.items() if k != KEY}
                own = dict(old.get(KEY) or {})
                if configuration is not None:
                    own["configuration"] = configuration
                if own:
                    kept[KEY] = own
                self.store.set_metadata(full, kept)
        return self.find(name if name is not None else item["name"])

    def reset(self):
        with Translate():
            for info in self.store.collections():
                self.store.drop(info.name)
        self.tenant, self.database = "default_tenant", "default_database"
        return True

    def open(self, item):
        with Translate():
            return LocalRecords(self.store.collection(item["full"]))


class LocalRecords:
    """The records of one collection."""

    def __init__(self, collection):
        self.collection = collection

    closed = property(lambda self: self.collection.closed)

    def indexing_status(self):
        from .api.types import IndexingStatus
        with Translate(self.collection.name):
            stats = self.collection.stats()
        left = min(stats["records"], max(stats["unindexed"], stats["untexted"]))
        return IndexingStatus(stats["records"] - left, left, stats["records"], 1.0 - left / stats["records"] if stats["records"] else 1.0)

    def count(self):
        with Translate(self.collection.name):
            return self.collection.count()

    def write(self, verb, ids, embeddings, documents, metadatas, uris):
        if uris is not None:
            metadatas = [dict(m or {}, **({URI: u} if u is not None else {})) for m, u in zip(metadatas or [None] * len(ids), uris)]
        if metadatas is not None:
            metadatas = [m if m else None for m in metadatas]
        with Translate(self.collection.name):
            if verb == "add":
                self.collection.add(ids, documents, metadatas, embeddings, keep_existing=True)
            elif verb == "upsert":
                self.collection.upsert(ids, documents, metadatas, embeddings)
            else:
                self.collection.update(ids, documents, metadatas, embeddings)

    def delete(self, ids, where, where_document):
        with Translate(self.collection.name):
            return self.collection.delete(ids, where, where_document)

    def get(self, ids, where, where_document, limit, offset, parts):
        with Translate(self.collection.name):
            if ids is None:
                return self.collection.get(None, where, where_document, include=parts, limit=limit or 0, offset=offset or 0)
            rows = {row.id: row for row in self.collection.get(ids, where, where_document, include=parts)}
            # Chroma gives rows in the order of insertion, whatever order the ids were in
            return sorted(rows.values(), key=lambda row: row.position)[offset or 0:][: limit or None]

    def query(self, embeddings, k, ids, where, where_document, parts):
        with Translate(self.collection.name):
            return self.collection.query_many(embeddings, k=k, ids=ids, where=where, where_document=where_document, include=parts)
