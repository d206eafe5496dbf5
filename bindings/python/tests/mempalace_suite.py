"""A pytest plugin for MemPalace's own tests where Chroma's model cannot be downloaded: its embedding function makes vectors of words by their
hashes, so that texts that share words are near. With MEMPALACE_BACKEND=lode or chroma the same tests run on both."""
import hashlib
import math
import re


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


def pytest_configure(config):
    from chromadb.utils.embedding_functions import onnx_mini_lm_l6_v2
    onnx_mini_lm_l6_v2.ONNXMiniLM_L6_V2.__call__ = _call
    onnx_mini_lm_l6_v2.ONNXMiniLM_L6_V2._download_model_if_not_exists = lambda self: None
