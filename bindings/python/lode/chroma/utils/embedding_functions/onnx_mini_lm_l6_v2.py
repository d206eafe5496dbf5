"""chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2."""
from . import ONNXMiniLM_L6_V2  # noqa: F401
