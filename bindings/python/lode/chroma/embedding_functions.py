"""Embedding functions: anything that takes a list of texts and gives a list of vectors. The default is MiniLM, as Chroma's is."""
import threading

from ..errors import NotFound
from ..store import Embedder


class EmbeddingFunction:
    """Subclass it, or pass any function."""

    def __call__(self, input):
        raise NotImplementedError

    @staticmethod
    def name():
        return "unknown"


class LodeEmbeddingFunction(EmbeddingFunction):
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


class DefaultEmbeddingFunction(LodeEmbeddingFunction):
    """all-MiniLM-L6-v2, 384 dimensions, offline: `lode model install minilm` once."""

    def __init__(self):
        super().__init__("minilm")

    @staticmethod
    def name():
        return "default"


ONNXMiniLM_L6_V2 = DefaultEmbeddingFunction
