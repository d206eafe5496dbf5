"""A pytest plugin that runs the tests inside the chromadb package against lode.chroma in its place, in process:

    CHROMA_RUST_BINDINGS_TEST_ONLY=1 pytest -p chromadb_suite FOLDER_OF_CHROMADB/test/test_api.py

Names of chromadb that its tests import and lode.chroma does not have (its server, its SQLite tables, its search expressions) are there but
empty: what tests those fails, and is not about a store."""
import ast
import importlib.util
import os
import sys
import types

import lode.chroma

lode.chroma.install()
_SITE = next(path for path in sys.path if os.path.isfile(os.path.join(path, "chromadb", "test", "conftest.py")))


def _stub(name, **members):
    module = sys.modules.get(name) or types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], last, module)


class _Absent:
    pass


def _real(name, *path):
    """A module of the real one that needs nothing else of it: its tests, and what they compute with."""
    file = os.path.join(_SITE, "chromadb", *path)
    inside = [os.path.dirname(file)] if path[-1] == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=inside)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    parent, _, last = name.rpartition(".")
    setattr(sys.modules[parent], last, module)
    spec.loader.exec_module(module)


def _imported(folder):
    """(module, name) of all that the tests import from chromadb itself."""
    for path, _, files in os.walk(folder):
        for file in files:
            if file.endswith(".py"):
                with open(os.path.join(path, file), encoding="utf-8") as source:
                    tree = ast.parse(source.read())
                for node in ast.walk(tree):
                    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("chromadb") and not node.module.startswith("chromadb.test"):
                        yield from ((node.module, alias.name) for alias in node.names)
                    elif isinstance(node, ast.Import):
                        yield from ((alias.name, None) for alias in node.names
                                   if alias.name.startswith("chromadb.") and not alias.name.startswith("chromadb.test"))


_real("chromadb.utils.distance_functions", "utils", "distance_functions.py")
for _module, _member in sorted(set(_imported(os.path.join(_SITE, "chromadb", "test"))), key=str):
    parts = _module.split(".")
    for _n in range(2, len(parts) + 1):
        if ".".join(parts[:_n]) not in sys.modules:
            _stub(".".join(parts[:_n]))
    if _member and not hasattr(sys.modules[_module], _member) and "%s.%s" % (_module, _member) not in sys.modules:
        setattr(sys.modules[_module], _member, (lambda kind: kind) if _member.startswith("register_") else type(_member, (_Absent,), {}))
_stub("chromadb.utils.async_to_sync", async_class_to_sync=lambda kind: kind)
_real("chromadb.test", "test", "__init__.py")
