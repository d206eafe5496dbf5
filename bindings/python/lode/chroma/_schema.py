"""A collection's schema: which metadata may be filtered by, and the vector index. The classes have the names and the form that
chromadb.api.types gives them; what they mean on a store is what `lode serve` makes of them (src/app/chroma/chroma_schema.c)."""
import re
from enum import Enum

from . import _config
from ._embedding import DEFAULT, described
from ._where import Key
from .errors import InvalidArgumentError

DOCUMENT_KEY, EMBEDDING_KEY, TYPE_KEY = "#document", "#embedding", "#type"
# index -> the type it belongs to, and where it is enabled without a schema
INDEXES = {"fts_index": ("string", (DOCUMENT_KEY,)), "string_inverted_index": ("string", ("defaults",)), "vector_index": ("float_list", (EMBEDDING_KEY,)),
           "sparse_vector_index": ("sparse_vector", ()), "int_inverted_index": ("int", ("defaults",)), "float_inverted_index": ("float", ("defaults",)),
           "bool_inverted_index": ("bool", ("defaults",))}


class _Fields:
    """An object of named fields that are None unless they are given."""
    _fields, _ignored = (), ()

    def __init__(self, **given):
        unknown = [name for name in given if name not in self._fields + self._ignored]
        if unknown:
            raise ValueError("Invalid fields for %s, extra fields are not permitted: %s" % (type(self).__name__, ", ".join(unknown)))
        for name in self._fields:
            setattr(self, name, given.get(name))

    def __eq__(self, other):
        return type(other) is type(self) and self.__dict__ == other.__dict__

    __hash__ = None

    def model_dump(self):
        """The fields, as chromadb's classes give them."""
        return {name: value.model_dump() if isinstance(value, _Fields) else value for name, value in self.__dict__.items()}

    def __repr__(self):
        return "%s(%s)" % (type(self).__name__, ", ".join("%s=%r" % (n, getattr(self, n)) for n in self._fields if getattr(self, n) is not None))


class HnswIndexConfig(_Fields):
    _fields = ("ef_construction", "max_neighbors", "ef_search", "num_threads", "batch_size", "sync_threshold", "resize_factor")


class SpannIndexConfig(_Fields):
    _fields = ("search_nprobe", "write_nprobe", "ef_construction", "ef_search", "max_neighbors", "reassign_neighbor_count", "split_threshold",
               "merge_threshold")
    _ignored = ("search_rng_factor", "search_rng_epsilon", "nreplica_count", "write_rng_factor", "write_rng_epsilon", "num_samples_kmeans",
                "initial_lambda", "num_centers_to_merge_to", "quantize", "center_drift_threshold")


def _with_source_key(given):
    """A Key as its name; of the names of Chroma's own only the documents' may be a source."""
    key = given.get("source_key")
    key = key.name if isinstance(key, Key) else key
    if key is not None and not isinstance(key, str):
        raise ValueError("source_key must be str or Key, got %s" % type(key).__name__)
    if key is not None and key.startswith("#") and key != DOCUMENT_KEY:
        raise ValueError("source_key cannot begin with '#'. The only valid key starting with '#' is Key.DOCUMENT or '#document'.")
    return dict(given, source_key=key)


class VectorIndexConfig(_Fields):
    _fields = ("space", "embedding_function", "source_key", "hnsw", "spann")

    def __init__(self, **given):
        super().__init__(**_with_source_key(given))
        if "embedding_function" not in given:
            self.embedding_function = DEFAULT
        if self.space is not None and self.space not in _config.SPACES:
            raise ValueError("Expected space to be one of l2, cosine, ip, got %s" % (self.space,))
        if self.embedding_function is not None and not callable(self.embedding_function):
            raise ValueError("embedding_function must be callable")


class SparseVectorIndexConfig(_Fields):
    _fields = ("embedding_function", "source_key", "bm25", "algorithm")

    def __init__(self, **given):
        super().__init__(**_with_source_key(given))


class FtsIndexConfig(_Fields):
    pass


class StringInvertedIndexConfig(_Fields):
    pass


class IntInvertedIndexConfig(_Fields):
    pass


class FloatInvertedIndexConfig(_Fields):
    pass


class BoolInvertedIndexConfig(_Fields):
    pass


class _Index:
    def __init__(self, enabled, config):
        self.enabled, self.config = enabled, config

    def __eq__(self, other):
        return isinstance(other, _Index) and (self.enabled, self.config) == (other.enabled, other.config)

    __hash__ = None


def _index_class(name):
    return type(name, (_Index,), {})


FtsIndexType, VectorIndexType, SparseVectorIndexType, StringInvertedIndexType, IntInvertedIndexType, FloatInvertedIndexType, BoolInvertedIndexType = map(
    _index_class, ("FtsIndexType", "VectorIndexType", "SparseVectorIndexType", "StringInvertedIndexType", "IntInvertedIndexType",
                   "FloatInvertedIndexType", "BoolInvertedIndexType"))


class StringValueType(_Fields):
    _fields = ("fts_index", "string_inverted_index")


class FloatListValueType(_Fields):
    _fields = ("vector_index",)


class SparseVectorValueType(_Fields):
    _fields = ("sparse_vector_index",)


class IntValueType(_Fields):
    _fields = ("int_inverted_index",)


class FloatValueType(_Fields):
    _fields = ("float_inverted_index",)


class BoolValueType(_Fields):
    _fields = ("bool_inverted_index",)


class ValueTypes(_Fields):
    _fields = ("string", "float_list", "sparse_vector", "int_value", "float_value", "boolean")


# name on the wire -> attribute of ValueTypes, its class; and of an index -> its class, that of its config
_TYPES = {"string": ("string", StringValueType), "float_list": ("float_list", FloatListValueType), "sparse_vector": ("sparse_vector", SparseVectorValueType),
          "int": ("int_value", IntValueType), "float": ("float_value", FloatValueType), "bool": ("boolean", BoolValueType)}
_CLASSES = {"fts_index": (FtsIndexType, FtsIndexConfig), "vector_index": (VectorIndexType, VectorIndexConfig),
            "sparse_vector_index": (SparseVectorIndexType, SparseVectorIndexConfig), "string_inverted_index": (StringInvertedIndexType, StringInvertedIndexConfig),
            "int_inverted_index": (IntInvertedIndexType, IntInvertedIndexConfig), "float_inverted_index": (FloatInvertedIndexType, FloatInvertedIndexConfig),
            "bool_inverted_index": (BoolInvertedIndexType, BoolInvertedIndexConfig)}


def _put(section, index, enabled, config):
    attribute, kind = _TYPES[INDEXES[index][0]]
    if getattr(section, attribute) is None:
        setattr(section, attribute, kind())
    setattr(getattr(section, attribute), index, _CLASSES[index][0](enabled, config))


def _place_of(config, key, verb):
    """The name of the key, and the index that the configuration is of."""
    key = key.name if isinstance(key, Key) else key
    index = next((name for name, (_, kind) in _CLASSES.items() if isinstance(config, kind)), None)
    if config is not None and index is None:
        raise ValueError("Cannot %s an index: %r is no configuration of one" % (verb, config))
    return key, index


def _check_key(key, index, verb):
    """Of the names of Chroma's own only the documents' may be given, for their own index."""
    if key == DOCUMENT_KEY and index != "fts_index":
        raise ValueError("Cannot %s index on special key '%s' with this config. Only FtsIndexConfig is allowed for #document." % (verb, key))
    if key is not None and key.startswith("#") and key != DOCUMENT_KEY:
        raise ValueError("key cannot begin with '#'. Keys starting with '#' are reserved for system use.")


class CmekProvider(str, Enum):
    GCP = "gcp"


class Cmek:
    """A key of encryption in somebody's cloud. Lode has none: a collection with one is refused when it is created."""

    def __init__(self, provider, resource):
        self.provider, self.resource = provider, resource

    @classmethod
    def gcp(cls, resource):
        return cls(CmekProvider.GCP, resource)

    def validate_pattern(self):
        return re.match(r"^projects/.+/locations/.+/keyRings/.+/cryptoKeys/.+$", self.resource) is not None

    def to_dict(self):
        return {CmekProvider(self.provider).value: self.resource}

    @classmethod
    def from_dict(cls, found):
        if not isinstance(found, dict) or "gcp" not in found:
            raise ValueError("Unsupported or missing CMEK provider in data: %s" % (found,))
        return cls.gcp(found["gcp"])


class Schema:
    """chromadb.Schema: create_index() and delete_index() say what differs from the defaults."""

    def __init__(self):
        self.defaults, self.keys, self.cmek = ValueTypes(), {EMBEDDING_KEY: ValueTypes(), DOCUMENT_KEY: ValueTypes()}, None
        for index, (_, enabled) in INDEXES.items():
            _put(self.defaults, index, "defaults" in enabled, _CLASSES[index][1]())
        _put(self.keys[DOCUMENT_KEY], "fts_index", True, FtsIndexConfig())
        _put(self.keys[DOCUMENT_KEY], "string_inverted_index", False, StringInvertedIndexConfig())
        _put(self.keys[EMBEDDING_KEY], "vector_index", True, VectorIndexConfig(source_key=DOCUMENT_KEY))

    def _set(self, config, index, key, enabled):
        if index == "vector_index":
            _put(self.defaults, index, False, config)
            _put(self.keys[EMBEDDING_KEY], index, True, VectorIndexConfig(space=config.space, embedding_function=config.embedding_function, hnsw=config.hnsw,
                                                                          spann=config.spann, source_key=DOCUMENT_KEY))
        else:
            _put(self.defaults if key is None else self.keys.setdefault(key, ValueTypes()), index, enabled, config)
        return self

    def create_index(self, config=None, key=None):
        key, index = _place_of(config, key, "create")
        if config is None and key is None:
            raise ValueError("Cannot enable all index types globally. Must specify either config or key.")
        if key == EMBEDDING_KEY:
            raise ValueError("Cannot create index on special key '%s': the vector index is configured without a key" % key)
        _check_key(key, index, "create")
        if index == "vector_index" and key is not None:
            raise ValueError("Vector index cannot be enabled on specific keys. Use create_index(config=VectorIndexConfig(...)) without a key")
        if index == "fts_index" and key != DOCUMENT_KEY:
            raise ValueError("FTS index can only be enabled on #document key: create_index(config=FtsIndexConfig(), key='#document')")
        if index == "sparse_vector_index" and key is None:
            raise ValueError("Sparse vector index must be created on a specific key")
        if config is None:
            raise ValueError("Cannot enable all index types for key '%s'. Please specify a specific index configuration." % key)
        if index == "sparse_vector_index" and config.source_key is not None and config.embedding_function is None:
            raise ValueError("If source_key is provided then embedding_function must also be provided")
        return self._set(config, index, key, True)

    def delete_index(self, config=None, key=None):
        key, index = _place_of(config, key, "delete")
        if config is None and key is None:
            raise ValueError("Cannot disable all indexes. Must specify either config or key.")
        if key == EMBEDDING_KEY:
            raise ValueError("Cannot modify #embedding. Currently not supported")
        _check_key(key, index, "delete")
        if index in ("vector_index", "sparse_vector_index"):
            raise ValueError("Deleting %s is not currently supported." % index.replace("_", " "))
        if index == "fts_index" and key != DOCUMENT_KEY:
            raise ValueError("Deleting FTS index is only supported on #document key.")
        if config is None:
            raise ValueError("Cannot disable all index types for key '%s'. Please specify a specific index configuration." % key)
        return self._set(config, index, key, False)

    def set_cmek(self, cmek):
        self.cmek = cmek
        return self

    def serialize_to_json(self):
        answer = {"defaults": _section_to_json(self.defaults), "keys": {key: _section_to_json(types) for key, types in self.keys.items()}}
        if self.cmek is not None:
            answer["cmek"] = self.cmek.to_dict() if hasattr(self.cmek, "to_dict") else self.cmek
        return answer

    @classmethod
    def deserialize_from_json(cls, found):
        schema = cls()
        schema.defaults = _section_from_json(found.get("defaults") or {})
        schema.keys = {key: _section_from_json(types) for key, types in (found.get("keys") or {}).items()}
        if found.get("cmek") is not None:
            schema.cmek = Cmek.from_dict(found["cmek"])
        return schema


def _config_to_json(config):
    answer = {}
    for name in config._fields:
        value = getattr(config, name)
        if name == "embedding_function":
            value = described(value) if value is not None else ({"type": "unknown"} if isinstance(config, SparseVectorIndexConfig) else {"type": "legacy"})
        elif isinstance(value, _Fields):
            value = _config_to_json(value)
        if value is not None:
            answer[name] = value
    if isinstance(config, VectorIndexConfig) and "space" not in answer:
        answer["space"] = _config.space_of(config.embedding_function)
    return answer


def _section_to_json(section):
    answer = {}
    for name, (attribute, _) in _TYPES.items():
        indexes = getattr(section, attribute)
        if indexes is not None:
            answer[name] = {index: {"enabled": getattr(indexes, index).enabled, "config": _config_to_json(getattr(indexes, index).config)}
                            for index in indexes._fields if getattr(indexes, index) is not None}
    return answer


def _section_from_json(found):
    section = ValueTypes()
    for index, (kind, _) in INDEXES.items():
        given = (found.get(kind) or found.get("#" + kind) or {}).get(index)
        if given is None:
            continue
        config = dict(given.get("config") or {})
        for name, inner in (("hnsw", HnswIndexConfig), ("spann", SpannIndexConfig)):
            if isinstance(config.get(name), dict):
                config[name] = inner(**{k: v for k, v in config[name].items() if k in inner._fields})
        if "embedding_function" in config or index == "vector_index":
            config["embedding_function"] = _function_of(config.get("embedding_function"))
        made = _CLASSES[index][1]
        _put(section, index, given["enabled"], made(**{k: v for k, v in config.items() if k in made._fields}))
    return section


def _function_of(kept):
    from ._embedding import built
    try:
        return built(kept)
    except ValueError:
        return None


# ---- What a store makes of a schema

def _index_of(schema, section, index):
    types = schema["defaults"] if section == "defaults" else schema["keys"].get(section) or {}
    kind = types.get(INDEXES[index][0]) or types.get("#" + INDEXES[index][0]) or {}
    return kind.get(index)


def read(schema):
    """The configuration that a schema gives, and whether it says more than a collection has anyway. What cannot be honoured is refused."""
    if not isinstance(schema, dict) or not isinstance(schema.get("defaults"), dict) or not isinstance(schema.get("keys"), dict):
        raise InvalidArgumentError("Invalid schema: it must be an object with defaults and keys")
    if schema.get("cmek") is not None:
        raise InvalidArgumentError("Failed to reconcile schema: encryption with a key of one's own is not possible")
    differs = False
    for section in ["defaults"] + list(schema["keys"]):
        for index, (_, enabled) in INDEXES.items():
            given = _index_of(schema, section, index)
            if given is None:
                continue
            differs |= section not in ("defaults", EMBEDDING_KEY, DOCUMENT_KEY) or given["enabled"] != (section in enabled)
            if not given["enabled"]:
                continue
            if index == "sparse_vector_index":
                raise InvalidArgumentError("Failed to reconcile schema: Invalid schema input: Sparse vector indexing is not enabled in local")
            if (index, section) != ("vector_index", EMBEDDING_KEY) and index == "vector_index":
                raise InvalidArgumentError("Validation error: schema: Vector index can only be enabled on #embedding field")
            if index == "fts_index" and section != DOCUMENT_KEY:
                raise InvalidArgumentError("Validation error: schema: FTS index can only be enabled on #document field")
    configuration = {"hnsw": {}, "embedding_function": None}
    for section in ("defaults", EMBEDDING_KEY):
        config = (_index_of(schema, section, "vector_index") or {}).get("config") or {}
        if config.get("source_key") not in (None, DOCUMENT_KEY):
            raise InvalidArgumentError("Validation error: schema: Vector index can only source from #document")
        configuration["hnsw"].update(config.get("hnsw") or {})
        if config.get("space") is not None:
            configuration["hnsw"]["space"] = config["space"]
        configuration["embedding_function"] = config.get("embedding_function") or configuration["embedding_function"]
    if any(configuration["hnsw"].get(name, 2) < 2 for name in ("sync_threshold", "batch_size")):
        raise InvalidArgumentError("Failed to reconcile schema: Invalid HNSW configuration: sync_threshold and batch_size must be 2 or more")
    return configuration, differs or not _config.is_default(configuration)


def shown(configuration, kept):
    """The schema with what it leaves out, as Chroma's server answers."""
    kept = kept if isinstance(kept, dict) else {"defaults": {}, "keys": {}}
    hnsw = configuration["hnsw"]
    vector = {"space": hnsw["space"], "hnsw": {k: hnsw[k] for k in ("ef_construction", "max_neighbors", "ef_search", "sync_threshold", "resize_factor")}}
    vector["hnsw"].update(num_threads=hnsw.get("num_threads", 2), batch_size=hnsw.get("batch_size", 100))
    if configuration["embedding_function"] is not None:
        vector["embedding_function"] = configuration["embedding_function"]

    def section(name):
        answer = {}
        exists = {"defaults": INDEXES, EMBEDDING_KEY: ("vector_index",), DOCUMENT_KEY: ("fts_index", "string_inverted_index")}.get(name, ())
        for index, (kind, enabled) in INDEXES.items():
            given = _index_of(kept, name, index)
            if given is None and index not in exists:
                continue
            config = {}
            if index == "vector_index":
                config = dict(vector, source_key=DOCUMENT_KEY) if name == EMBEDDING_KEY else vector
            elif index == "sparse_vector_index":
                config = {"embedding_function": {"type": "unknown"}, "bm25": False}
            answer.setdefault(kind, {})[index] = {"enabled": name in enabled if given is None else given["enabled"], "config": config}
        return answer
    keys = [EMBEDDING_KEY, DOCUMENT_KEY] + [k for k in kept["keys"] if k not in (EMBEDDING_KEY, DOCUMENT_KEY)]
    return {"defaults": section("defaults"), "keys": {key: section(key) for key in keys}}


def _enabled(kept, key, index):
    given = _index_of(kept, key, index) if key in kept["keys"] else None
    if given is None and key != DOCUMENT_KEY:
        given = _index_of(kept, "defaults", index)
    return given["enabled"] if given is not None else index == "fts_index" or "defaults" in INDEXES[index][1]


def check_filters(kept, where, where_document):
    """Filters by what the schema does not index are refused."""
    if not isinstance(kept, dict):
        return
    stack, document = [where] if where else [], bool(where_document)
    while stack:
        (key, value), = stack.pop().items()
        if key in ("$and", "$or"):
            stack.extend(value)
            continue
        if key == DOCUMENT_KEY:
            document = True
            continue
        if isinstance(value, dict):
            value, = value.values()
        value = value[0] if isinstance(value, list) and value else value
        name = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "float" if isinstance(value, float) else "string"
        if not _enabled(kept, key, name + "_inverted_index"):
            raise InvalidArgumentError("Cannot filter using metadata key '%s' with type '%s' because indexing is disabled"
                                       % (key, {"string": "Str"}.get(name, name.capitalize())))
    if document and not _enabled(kept, DOCUMENT_KEY, "fts_index"):
        raise InvalidArgumentError("Cannot filter using full-text search because FTS indexing is disabled")


__all__ = [name for name in dir() if name[0].isupper()] + ["check_filters", "read", "shown"]
