"""Embedding functions: anything that takes a list of texts and gives a list of vectors. The default is MiniLM, as Chroma's is."""
import threading
from typing import Protocol, TypeVar, runtime_checkable

from ..errors import NotFound
from ..store import Embedder



_Input = TypeVar("_Input", contravariant=True)


@runtime_checkable
class EmbeddingFunction(Protocol[_Input]):
    """Subclass it, or pass any function. EmbeddingFunction[Documents] is the same."""

    def __call__(self, input):
        raise NotImplementedError

    @staticmethod
    def name():
        return NotImplemented

    def embed_query(self, input):
        return self(input)

    def default_space(self):
        return "l2"

    def supported_spaces(self):
        return ["cosine", "l2", "ip"]

    def get_config(self):
        """What build_from_config() needs to make it again; kept with the collection."""
        return {}

    @classmethod
    def build_from_config(cls, config):
        return cls(**config)

    def validate_config_update(self, old_config, new_config):
        return None

    @staticmethod
    def validate_config(config):
        return None

    def is_legacy(self):
        return False


class LodeEmbeddingFunction(EmbeddingFunction[list]):
    """A model of Lode's: "minilm", "code", a folder, "openai:MODEL", "ollama:MODEL". Loaded at the first use."""

    def __init__(self, model="minilm", **options):
        self.model, self.options = model, options
        self._lock, self._embedder = threading.Lock(), None

    def _load(self):
        with self._lock:
            if self._embedder is None:
                self._embedder = Embedder(self.model, **self.options)
            return self._embedder

    @property
    def identity(self):
        return self._load().identity

    @property
    def dimension(self):
        return self._load().dimension

    def __call__(self, input):
        try:
            return self._load()(list(input))
        except NotFound as why:
            raise ValueError("texts cannot be embedded: %s (or pass embeddings, or an embedding_function)" % why) from None

    @staticmethod
    def name():
        return "lode"

    def get_config(self):
        return {"model": self.model}  # keys and addresses are not written down


class DefaultEmbeddingFunction(LodeEmbeddingFunction):
    """all-MiniLM-L6-v2, 384 dimensions, offline: `lode model install minilm` once."""

    def __init__(self):
        super().__init__("minilm")

    @staticmethod
    def name():
        return "default"

    def get_config(self):
        return {}


ONNXMiniLM_L6_V2 = DefaultEmbeddingFunction

known_embedding_functions = {}


def register_embedding_function(function):
    """A class decorator: collections that were made with such a function find it again by its name()."""
    known_embedding_functions[function.name()] = function
    return function


for _class in (LodeEmbeddingFunction, DefaultEmbeddingFunction):
    register_embedding_function(_class)
known_embedding_functions["onnx_mini_lm_l6_v2"] = DefaultEmbeddingFunction  # Chroma's other name for the same model


def described(function):
    """An embedding function, as it is kept with a collection."""
    if function is None:
        return None
    named = getattr(function, "name", None)
    try:
        name = named() if callable(named) else None
    except TypeError:
        name = None
    if not isinstance(name, str):
        return {"type": "legacy"}
    try:
        config = function.get_config()
    except (AttributeError, NotImplementedError):
        config = {}
    return {"type": "known", "name": name, "config": config or {}}


def built(kept):
    """The function that a collection was made with, of what is kept of it; None: it says nothing. Texts must not be embedded by another."""
    if not isinstance(kept, dict) or kept.get("type") != "known":
        return None
    name = kept.get("name")
    if name not in known_embedding_functions:
        raise ValueError("the collection was made with the embedding function %r, which is not known here: pass it as embedding_function, or "
                         "register its class (register_embedding_function)" % name)
    if name in ("default", "onnx_mini_lm_l6_v2"):
        return DEFAULT
    try:
        return known_embedding_functions[name].build_from_config(kept.get("config") or {})
    except (KeyError, TypeError) as why:
        raise ValueError("the embedding function %r cannot be made of its configuration %s: %r" % (name, kept.get("config"), why)) from None


DEFAULT = DefaultEmbeddingFunction()
