"""What MemPalace's tools say of a palace whose drawers have no wing, no room, neither, or empty ones, as JSON lines: python palace_views.py, with
MEMPALACE_BACKEND=lode or chroma. Both must say the same; test/shell/mempalace_suites.sh compares them. With Lode the folders of the palace are
the user's own alone, and filing the same drawers again changes nothing."""
import json
import os
import stat
import sys
import tempfile

import mempalace_suite

OUT = os.fdopen(os.dup(1), "w")  # MemPalace's server takes standard output for itself
HOME = tempfile.mkdtemp()
PALACE = os.path.join(HOME, "palace")
os.environ.update(HOME=HOME, MEMPALACE_PALACE_PATH=PALACE)
sys.argv = ["mempalace-mcp", "--palace", PALACE]
mempalace_suite.use_hashes_of_words()

from mempalace.palace import get_collection  # noqa: E402

PLACES = [{"wing": "w1", "room": "r1"}, {"wing": "w1"}, {"room": "r1"}, {}, {"wing": "w2", "room": "r2"}, {"wing": "", "room": ""}]
TEXTS = ["drawer %d holds text" % n for n in range(len(PLACES))]


def file_drawers():
    drawers = get_collection(PALACE, create=True)
    drawers.upsert(ids=["d%d" % n for n in range(len(PLACES))], documents=TEXTS, embeddings=mempalace_suite._embed(TEXTS),
                   metadatas=[dict(place, source_file="notes.md") for place in PLACES])
    return drawers.count()


count = file_drawers()
assert file_drawers() == count == len(PLACES)
import mempalace.mcp_server as tools  # noqa: E402

for name, arguments in (("tool_status", ()), ("tool_list_wings", ()), ("tool_get_taxonomy", ()), ("tool_list_rooms", ("w1",)), ("tool_list_rooms", ("unknown",))):
    found = getattr(tools, name)(*arguments)
    print(name, json.dumps({key: found[key] for key in ("total_drawers", "wings", "rooms", "taxonomy", "error") if key in found}, sort_keys=True), file=OUT)
OUT.close()
if os.environ["MEMPALACE_BACKEND"] == "lode":
    for folder, _, _ in os.walk(PALACE):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700, folder
