"""chromadb.utils.embedding_functions. Lode's own models, and those that Ollama and OpenAI serve, embed here; the others need Chroma's package."""
from ..._embedding import (DefaultEmbeddingFunction, EmbeddingFunction, LodeEmbeddingFunction, ONNXMiniLM_L6_V2, known_embedding_functions,
                           register_embedding_function)


@register_embedding_function
class OllamaEmbeddingFunction(LodeEmbeddingFunction):
    def __init__(self, url="http://localhost:11434", model_name="nomic-embed-text", timeout=60):
        self.url, self.model_name, self.timeout = url, model_name, timeout
        super().__init__("ollama:" + model_name, url=url)

    @staticmethod
    def name():
        return "ollama"

    def get_config(self):
        return {"url": self.url, "model_name": self.model_name, "timeout": self.timeout}


@register_embedding_function
class OpenAIEmbeddingFunction(LodeEmbeddingFunction):
    """The key comes from the environment (OPENAI_API_KEY, or what api_key_env_var names)."""

    def __init__(self, api_key=None, model_name="text-embedding-3-small", api_base=None, api_key_env_var="OPENAI_API_KEY", **_):
        import os
        self.model_name, self.api_base, self.api_key_env_var = model_name, api_base, api_key_env_var
        options = {"url": api_base} if api_base else {}
        super().__init__("openai:" + model_name, key=api_key or os.environ.get(api_key_env_var), **options)

    @staticmethod
    def name():
        return "openai"

    def get_config(self):
        return {"api_key_env_var": self.api_key_env_var, "model_name": self.model_name, "api_base": self.api_base}


def _absent(name):
    def __init__(self, *args, **kwargs):
        raise ValueError("%s is not part of lode.chroma: pass a function of your own, or a model of Lode's (LodeEmbeddingFunction)" % name)
    return type(name, (EmbeddingFunction,), {"__init__": __init__})


_NAMES = ("AmazonBedrock", "Baseten", "ChromaBm25", "CloudflareWorkersAI", "Cohere", "GoogleGenerativeAi", "GooglePalm", "GoogleVertex", "GoogleGemini",
          "GoogleGenai", "HuggingFace", "HuggingFaceSparse", "Instructor", "Jina", "Mistral", "Morph", "Nomic", "OpenCLIP", "Roboflow",
          "SentenceTransformer", "Text2Vec", "TogetherAI", "VoyageAI")
for _name in _NAMES:
    globals()[_name + "EmbeddingFunction"] = _absent(_name + "EmbeddingFunction")
HuggingFaceEmbeddingServer = _absent("HuggingFaceEmbeddingServer")


def get_builtins():
    return {name for name in globals() if name.endswith("EmbeddingFunction")}


def config_to_embedding_function(config):
    from ..._embedding import built
    return built(dict(config, type="known"))


__all__ = [name for name in dir() if name.endswith(("EmbeddingFunction", "Server", "V2"))] + [
    "config_to_embedding_function", "get_builtins", "known_embedding_functions", "register_embedding_function"]
