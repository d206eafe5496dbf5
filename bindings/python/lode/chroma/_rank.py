"""Ranks of a search: Knn(query=[...]) * 0.8 + 0.2. They can be made, combined and passed on; a local Chroma ranks by none of them, nor does Lode."""
from dataclasses import dataclass
from typing import Any, List, Optional, Union

from . import _check
from ._where import Key, flat, one_of
from .types import SparseVector


def _rank(value):
    return Val(value) if isinstance(value, (int, float)) else value


class Rank:
    """Ranks are added, multiplied and so on like numbers, also with numbers."""

    def to_dict(self):
        raise NotImplementedError("Subclasses must implement to_dict()")

    @staticmethod
    def from_dict(data):
        operator, given = one_of(data, "Rank")
        if operator not in _READERS:
            raise ValueError("Unknown rank operator: %s" % operator)
        return _READERS[operator](operator, given)

    def __add__(self, other):
        return flat(Sum, self, _rank(other))

    def __radd__(self, other):
        return _rank(other) + self

    def __sub__(self, other):
        return Sub(self, _rank(other))

    def __rsub__(self, other):
        return Sub(_rank(other), self)

    def __mul__(self, other):
        return flat(Mul, self, _rank(other))

    def __rmul__(self, other):
        return _rank(other) * self

    def __truediv__(self, other):
        return Div(self, _rank(other))

    def __rtruediv__(self, other):
        return Div(_rank(other), self)

    def __neg__(self):
        return Mul([Val(-1), self])

    def __abs__(self):
        return Abs(self)

    def abs(self):
        return Abs(self)

    def exp(self):
        return Exp(self)

    def log(self):
        return Log(self)

    def max(self, other):
        return flat(Max, self, _rank(other))

    def min(self, other):
        return flat(Min, self, _rank(other))


def _made(name, fields, content):
    """A class of ranks: its dictionary is {operator: content}."""
    def to_dict(self):
        return {"$" + name.lower(): content(self)}
    return dataclass(type(name, (Rank,), {"__annotations__": fields, "to_dict": to_dict, "part": next(iter(fields)), "__module__": __name__}))


def _of_several(name):
    return _made(name, {"ranks": List[Rank]}, lambda self: [r.to_dict() for r in self.ranks])


def _of_two(name):
    return _made(name, {"left": Rank, "right": Rank}, lambda self: {"left": self.left.to_dict(), "right": self.right.to_dict()})


def _of_one(name):
    return _made(name, {"rank": Rank}, lambda self: self.rank.to_dict())


Val = _made("Val", {"value": float}, lambda self: self.value)
Sum, Mul, Max, Min = _of_several("Sum"), _of_several("Mul"), _of_several("Max"), _of_several("Min")
Sub, Div = _of_two("Sub"), _of_two("Div")
Abs, Exp, Log = _of_one("Abs"), _of_one("Exp"), _of_one("Log")


@dataclass
class Knn(Rank):
    """The distance to a query, a text or a vector; or the place by it."""
    query: Any
    key: Union[Key, str] = Key.EMBEDDING
    limit: int = 16
    default: Optional[float] = None
    return_rank: bool = False

    def to_dict(self):
        query = self.query.to_dict() if isinstance(self.query, SparseVector) else self.query.tolist() if hasattr(self.query, "tolist") else self.query
        found = {"query": query, "key": self.key.name if isinstance(self.key, Key) else self.key, "limit": self.limit}
        if self.default is not None:
            found["default"] = self.default
        if self.return_rank:
            found["return_rank"] = True
        return {"$knn": found}


@dataclass
class Rrf(Rank):
    """Reciprocal rank fusion: minus the sum of weight / (k + rank)."""
    ranks: List[Rank]
    k: int = 60
    weights: Optional[List[float]] = None
    normalize: bool = False

    def to_dict(self):
        if not self.ranks:
            raise ValueError("RRF requires at least one rank")
        if self.k <= 0:
            raise ValueError("k must be positive, got %s" % self.k)
        weights = self.weights or [1.0] * len(self.ranks)
        if self.weights is not None and len(self.weights) != len(self.ranks):
            raise ValueError("Number of weights (%d) must match number of ranks (%d)" % (len(self.weights), len(self.ranks)))
        if any(weight < 0 for weight in weights):
            raise ValueError("All weights must be non-negative")
        if self.normalize:
            whole = sum(weights)
            if whole == 0:
                raise ValueError("Sum of weights must be positive when normalize=True")
            weights = [weight / whole for weight in weights]
        terms = [weight / (self.k + rank) for weight, rank in zip(weights, self.ranks)]
        return (-(flat(Sum, *terms) if len(terms) > 1 else terms[0])).to_dict()


# ---- Of dictionaries

def _wanted(operator, value, kind, name):
    if not isinstance(value, kind):
        raise TypeError("%s requires a %s, got %s" % (operator, name, type(value).__name__))
    return value


def _read_val(operator, given):
    return Val(_wanted(operator, given, (int, float), "number"))


def _read_one(operator, given):
    return {"$abs": Abs, "$exp": Exp, "$log": Log}[operator](Rank.from_dict(_wanted(operator, given, dict, "rank dict")))


def _read_two(operator, given):
    _wanted(operator, given, dict, "dict with 'left' and 'right'")
    if "left" not in given or "right" not in given:
        raise ValueError("%s requires 'left' and 'right' fields" % operator)
    return {"$sub": Sub, "$div": Div}[operator](Rank.from_dict(given["left"]), Rank.from_dict(given["right"]))


def _read_several(operator, given):
    if len(_wanted(operator, given, (list, tuple), "list")) < 2:
        raise ValueError("%s requires at least 2 ranks, got %d" % (operator, len(given)))
    return flat({"$sum": Sum, "$mul": Mul, "$max": Max, "$min": Min}[operator], *[Rank.from_dict(item) for item in given])


def _read_query(query):
    if isinstance(query, dict):
        return SparseVector.from_dict(query)
    if not _check.is_sequence(query):
        raise TypeError("$knn query must be a list, numpy array, or SparseVector dict, got %s" % type(query).__name__)
    vectors = _check.vectors(query)
    if len(vectors) != 1:
        raise ValueError("$knn requires exactly one query embedding")
    return vectors[0]


def _read_knn(operator, given):
    if "query" not in _wanted(operator, given, dict, "dict"):
        raise ValueError("$knn requires 'query' field")
    key, limit, return_rank = given.get("key", "#embedding"), given.get("limit", 16), given.get("return_rank", False)
    for name, value, kind, what in (("key", key, str, "a string"), ("limit", limit, int, "an integer"), ("return_rank", return_rank, bool, "a boolean")):
        if not isinstance(value, kind):
            raise TypeError("$knn %s must be %s, got %s" % (name, what, type(value).__name__))
    if limit <= 0:
        raise ValueError("$knn limit must be positive, got %d" % limit)
    return Knn(_read_query(given["query"]), key, limit, given.get("default"), return_rank)


_READERS = {"$val": _read_val, "$knn": _read_knn, "$abs": _read_one, "$exp": _read_one, "$log": _read_one, "$sub": _read_two, "$div": _read_two,
            "$sum": _read_several, "$mul": _read_several, "$max": _read_several, "$min": _read_several}
