"""A collection's configuration, as Chroma's clients give it and see it. Only the space and the embedding function mean something here; the
figures of Chroma's index are kept and shown."""
import warnings

from ._embedding import described
from .errors import InvalidArgumentError

SPACES = ("l2", "cosine", "ip")
FIGURES = {"ef_construction": 100, "ef_search": 100, "max_neighbors": 16, "resize_factor": 1.2, "sync_threshold": 1000}
_OLD = {"hnsw:construction_ef": "ef_construction", "hnsw:search_ef": "ef_search", "hnsw:M": "max_neighbors", "hnsw:resize_factor": "resize_factor",
        "hnsw:sync_threshold": "sync_threshold"}
_KNOWN = set(FIGURES) | {"space", "num_threads", "batch_size"}


def _hnsw(given):
    hnsw = {}
    for key, value in given.items():
        if key not in _KNOWN:
            raise ValueError("Unknown field in hnsw: %s" % key)
        if key == "space":
            if value not in SPACES:
                raise InvalidArgumentError("Expected space to be one of l2, cosine, ip, got %s" % (value,))
        elif isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            raise ValueError("Expected %s to be a number that is not negative, got %r" % (key, value))
        hnsw[key] = value
    return hnsw


def is_default(configuration):
    """Does it say what every collection has anyway?"""
    hnsw, function = configuration.get("hnsw") or {}, configuration.get("embedding_function")
    known = function is None or function.get("type") == "unknown" or function.get("name") == "default"
    return known and all(hnsw.get(k, v) == v for k, v in dict(FIGURES, space="l2", batch_size=100).items())


def one_index(configuration):
    if configuration.get("hnsw") is not None and configuration.get("spann") is not None:
        raise ValueError("Multiple vector index configurations provided: hnsw and spann cannot both be provided")


def _given(configuration):
    """The hnsw of a configuration; of spann only the space means something here."""
    one_index(configuration)
    hnsw, spann = configuration.get("hnsw"), configuration.get("spann")
    for name, value in (("hnsw", hnsw), ("spann", spann)):
        if value is not None and not isinstance(value, dict):
            raise ValueError("Expected %s to be a dict, got %r" % (name, value))
    if spann is not None:
        return {"space": spann["space"]} if spann.get("space") is not None else {}
    return {k: v for k, v in (hnsw or {}).items() if v is not None}


def space_of(function):
    """The space that an embedding function is made for; it counts where nobody says another."""
    default = getattr(function, "default_space", None)
    space = default() if callable(default) else None
    return space if space in SPACES else "l2"


def new(configuration, metadata, function):
    """What a new collection gets: {"hnsw":..., "embedding_function":...}."""
    configuration = dict(configuration or {})
    old = {_OLD.get(k, "space"): v for k, v in (metadata or {}).items() if k in _OLD or k == "hnsw:space"}
    given = configuration.get("embedding_function")
    hnsw = dict(FIGURES, space=space_of(given if given is not None else function))
    hnsw.update(_hnsw(old))
    hnsw.update(_hnsw(_given(configuration)))
    _warn_of_space(hnsw["space"], given if given is not None else function)
    return {"hnsw": hnsw, "embedding_function": described(given if given is not None else function)}


def _warn_of_space(space, function):
    """The space is the caller's to choose, also one that the function is not made for."""
    supported = getattr(function, "supported_spaces", None)
    if callable(supported) and space not in supported():
        named = getattr(function, "name", None)
        warnings.warn("space %s is not supported by %s. Supported spaces: %s" % (space, named() if callable(named) else function, supported()), stacklevel=4)


def same_function(one, two):
    """Do both embed alike, as far as their names say?"""
    names = [getattr(function, "name", None) for function in (one, two)]
    return one is two or all(callable(name) for name in names) and names[0]() == names[1]()


def changed(old, configuration):
    """The figures of `configuration` over the old ones; the space stays."""
    if not isinstance(configuration, dict):
        raise ValueError("Expected configuration to be a dict, got %s" % type(configuration).__name__)
    hnsw = _hnsw(_given(configuration))
    if hnsw.get("space", old["hnsw"]["space"]) != old["hnsw"]["space"]:
        raise ValueError("Changing the distance function of a collection once it is created is not supported currently.")
    function = configuration.get("embedding_function")
    return {"hnsw": dict(old["hnsw"], **hnsw), "embedding_function": described(function) if function is not None else old["embedding_function"]}


def shown(space, kept):
    """What is kept, whoever kept it, as Chroma shows it."""
    kept = kept if isinstance(kept, dict) else {}
    hnsw = dict(FIGURES, **{k: v for k, v in (kept.get("hnsw") or {}).items() if k in FIGURES})
    ordered = {"space": space, "ef_construction": hnsw["ef_construction"], "ef_search": hnsw["ef_search"], "max_neighbors": hnsw["max_neighbors"],
               "resize_factor": hnsw["resize_factor"], "sync_threshold": hnsw["sync_threshold"]}
    return {"hnsw": ordered, "spann": None, "embedding_function": kept.get("embedding_function")}


def check_function(function, kept):
    """Another embedding function than the one that a collection was made with is refused, unless it is the default one."""
    named = getattr(function, "name", None)
    if function is None or not isinstance(kept, dict) or kept.get("type") != "known" or not callable(named):
        return
    if named() not in ("default", kept.get("name")):
        raise ValueError("An embedding function already exists in the collection configuration, and a new one is provided. If this is "
                         "intentional, please embed documents separately. Embedding function conflict: new: %s vs persisted: %s"
                         % (named(), kept.get("name")))


__all__ = ["FIGURES", "SPACES", "changed", "check_function", "described", "new", "one_index", "same_function", "shown"]
