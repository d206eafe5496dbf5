"""`import chromadb` becomes this package, for libraries that import it themselves."""
import importlib
import pkgutil
import sys

_NAME = "chromadb"


def install():
    """From now on `import chromadb`, and any of its modules that is known here, is lode.chroma, whether chromadb is installed or not.
    Call it before chromadb is imported: classes of both would be mixed otherwise."""
    package = sys.modules[__package__]
    if sys.modules.get(_NAME) is package:
        return package
    if _NAME in sys.modules:
        raise RuntimeError("chromadb is imported already: call lode.chroma.install() first, or run the program with `python -m lode.chroma`")
    sys.modules[_NAME] = package
    for found in pkgutil.walk_packages(package.__path__, __package__ + "."):
        inner = found.name[len(__package__) + 1:]
        if not inner.startswith("_"):
            sys.modules["%s.%s" % (_NAME, inner)] = importlib.import_module(found.name)
    return package
