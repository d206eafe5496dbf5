"""chromadb.execution.expression: the search expressions of Chroma's cloud. They can be made and passed on; local Chroma and Lode answer that
search() is not implemented."""
from ..._schema import Key

K = Key


class _Expression:
    def __init__(self, *args, **kwargs):
        self.args, self.kwargs = args, kwargs


class Search(_Expression):
    def _with(self, **more):
        return Search(*self.args, **dict(self.kwargs, **more))

    def where(self, where):
        return self._with(where=where)

    def rank(self, rank):
        return self._with(rank=rank)

    def limit(self, limit, offset=0):
        return self._with(limit=limit, offset=offset)

    def select(self, *keys):
        return self._with(select=keys)


class Knn(_Expression):
    pass


class Rrf(_Expression):
    pass
