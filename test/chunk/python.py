#!/usr/bin/env python3
"""Module docstring."""
import os
import sys

LIMIT = 10
NAMES = [
    "a",
    "b",
]


class Store(Base):
    """Keeps records."""

    size = 0

    def __init__(self, path, *, create=False):
        """Opens."""
        self.path = path
        self.create = create
        if create:
            os.makedirs(path)

    @property
    def name(self):
        return os.path.basename(self.path)

    # Adds a record
    # to the store.
    @lock(timeout=3)
    async def add(self, record):
        for x in record:
            await self.put(x)
        return len(record)

    class Inner:
        def deep(self):
            a = 1
            b = 2
            return a + b


def main(argv=None):
    def helper():
        pass
    return helper


if __name__ == "__main__":
    sys.exit(main())
