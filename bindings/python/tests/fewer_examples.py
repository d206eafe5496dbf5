"""A pytest plugin for tests that hypothesis generates: LODE_CHROMA_EXAMPLES of each at the most, the same in each run."""
import os

import hypothesis

_MOST = int(os.environ.get("LODE_CHROMA_EXAMPLES", "10"))
_BOUNDS = {"max_examples": _MOST, "derandomize": True, "database": None}


def pytest_collection_modifyitems(items):
    for item in items:
        function = getattr(item.obj, "__func__", item.obj)
        given = getattr(function, "_hypothesis_internal_use_settings", None)
        if given is not None:
            function._hypothesis_internal_use_settings = hypothesis.settings(given, **dict(_BOUNDS, max_examples=min(_MOST, given.max_examples)))
    # those of state machines are made when they are run
    hypothesis.settings.register_profile("fewer", hypothesis.settings.default, stateful_step_count=20, **_BOUNDS)
    hypothesis.settings.load_profile("fewer")
