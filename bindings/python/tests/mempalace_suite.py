"""A pytest plugin for MemPalace's own tests, with MEMPALACE_BACKEND=lode or chroma: the same tests run on both.

    MEMPALACE_BACKEND=lode pytest -p mempalace_suite FOLDER_OF_MEMPALACE/tests

Chroma's model cannot be downloaded everywhere: its embedding function makes vectors of words by their hashes, so that texts that share words are
near. On Lode, a test that fills a palace with Chroma's client fills the palace of the backend: PersistentClient(PALACE) is lode.chroma's on
PALACE/lode there. MemPalace itself gets the real one, for its tests of its Chroma backend."""
import hashlib
import math
import os
import re
import sys


def _embed(texts):
    vectors = []
    for text in texts:
        vector = [0.0] * 384
        for word in re.findall(r"\w+", str(text).lower()):
            digest = hashlib.md5(word.encode()).digest()
            vector[int.from_bytes(digest[:4], "little") % 384] += 1.0 if digest[4] & 1 else -1.0
        length = math.sqrt(sum(x * x for x in vector)) or 1.0
        vectors.append([x / length for x in vector])
    return vectors


def _call(self, input):
    import numpy
    return [numpy.array(v, dtype=numpy.float32) for v in _embed(input)]


def _fill_palaces_of_lode():
    import chromadb
    import chromadb.api.types
    import lode.chroma
    from lode.chroma import _embedding
    real, own = chromadb.PersistentClient, lode.chroma.PersistentClient

    def client(path="./chroma", *arguments, **named):
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if caller.startswith("mempalace") or os.path.exists(os.path.join(str(path), "chroma.sqlite3")):
            return real(path, *arguments, **named)
        os.makedirs(str(path), exist_ok=True)
        named.pop("settings", None)
        return own(os.path.join(str(path), "lode"), *arguments, **named)

    chromadb.PersistentClient = client
    # MemPalace's tests replace what chromadb's default function does
    _embedding.DefaultEmbeddingFunction.__call__ = lambda self, input: chromadb.api.types.DefaultEmbeddingFunction()(input=list(input))


def use_hashes_of_words():
    from chromadb.utils.embedding_functions import onnx_mini_lm_l6_v2
    onnx_mini_lm_l6_v2.ONNXMiniLM_L6_V2.__call__ = _call
    onnx_mini_lm_l6_v2.ONNXMiniLM_L6_V2._download_model_if_not_exists = lambda self: None


def pytest_configure(config):
    use_hashes_of_words()
    if os.environ.get("MEMPALACE_BACKEND") == "lode":
        _fill_palaces_of_lode()
