"""liblode from Python: a store, a few records, the nearest of them, a filter. Usage: notes.py FOLDER"""
import sys

import lode

with lode.connect(sys.argv[1]) as store:
    notes = store.collection("notes", create=True, metric="cosine")
    notes.upsert(
        ["n", "e", "ne"],
        ["due north", "due east", "in between"],
        [{"year": 2024}, {"year": 2025}, {"year": 2026}],
        [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]],
    )
    for row in notes.query([1.0, 0.0], k=2, where={"year": {"$gte": 2025}}):
        print(row.id, f"{row.distance:.3f}", row.document)
