"""What a search is made of beside conditions and ranks, and the search itself."""
from dataclasses import dataclass, field
from typing import Any, Optional, Set, Union

from ._rank import Rank
from ._where import Key, Where, key_names, one_of


def _only(data, what, allowed):
    unexpected = set(data) - set(allowed)
    if unexpected:
        raise ValueError("Unexpected keys in %s dict: %s" % (what, unexpected))


def _is_dict(data, what):
    if not isinstance(data, dict):
        raise TypeError("Expected dict for %s, got %s" % (what, type(data).__name__))
    return data


@dataclass
class Limit:
    offset: int = 0
    limit: Optional[int] = None

    def to_dict(self):
        return {"offset": self.offset} if self.limit is None else {"offset": self.offset, "limit": self.limit}

    @staticmethod
    def from_dict(data):
        offset, limit = _is_dict(data, "Limit").get("offset", 0), data.get("limit")
        for name, value in (("offset", offset), ("limit", limit)):
            if not isinstance(value, int) and not (name == "limit" and value is None):
                raise TypeError("Limit %s must be an integer, got %s" % (name, type(value).__name__))
        if offset < 0:
            raise ValueError("Limit offset must be non-negative, got %d" % offset)
        if limit is not None and limit <= 0:
            raise ValueError("Limit limit must be positive, got %d" % limit)
        _only(data, "Limit", ("offset", "limit"))
        return Limit(offset, limit)


@dataclass
class Select:
    keys: Set[Union[Key, str]] = field(default_factory=set)

    def to_dict(self):
        return {"keys": key_names(self.keys)}

    @staticmethod
    def from_dict(data):
        keys = _is_dict(data, "Select").get("keys", [])
        if not isinstance(keys, (list, tuple, set)):
            raise TypeError("Select keys must be a list/tuple/set, got %s" % type(keys).__name__)
        for key in keys:
            if not isinstance(key, str):
                raise TypeError("Select key must be a string, got %s" % type(key).__name__)
        _only(data, "Select", ("keys",))
        return Select({Key(key) for key in keys})


class Aggregate:
    """Which records of a group remain."""

    def to_dict(self):
        raise NotImplementedError("Subclasses must implement to_dict()")

    @staticmethod
    def from_dict(data):
        operator, given = one_of(data, "Aggregate")
        if operator not in ("$min_k", "$max_k"):
            raise ValueError("Unknown aggregate operator: %s" % operator)
        if not isinstance(given, dict):
            raise TypeError("%s requires a dict, got %s" % (operator, type(given).__name__))
        for name, kind, what in (("keys", (list, tuple), "a list"), ("k", int, "an integer")):
            if name not in given:
                raise ValueError("%s requires '%s' field" % (operator, name))
            if not isinstance(given[name], kind):
                raise TypeError("%s %s must be %s, got %s" % (operator, name, what, type(given[name]).__name__))
        if not given["keys"]:
            raise ValueError("%s keys cannot be empty" % operator)
        if given["k"] <= 0:
            raise ValueError("%s k must be positive, got %d" % (operator, given["k"]))
        return {"$min_k": MinK, "$max_k": MaxK}[operator]([Key(key) for key in given["keys"]], given["k"])


@dataclass
class MinK(Aggregate):
    """The k with the smallest values."""
    keys: Any
    k: int

    def to_dict(self):
        return {"$min_k": {"keys": key_names(self.keys), "k": self.k}}


@dataclass
class MaxK(Aggregate):
    """The k with the largest values."""
    keys: Any
    k: int

    def to_dict(self):
        return {"$max_k": {"keys": key_names(self.keys), "k": self.k}}


@dataclass
class GroupBy:
    keys: Any = field(default_factory=list)
    aggregate: Optional[Aggregate] = None

    def to_dict(self):
        if isinstance(self.keys, (list, tuple)) and not self.keys or self.aggregate is None:
            return {}
        return {"keys": key_names(self.keys), "aggregate": self.aggregate.to_dict()}

    @staticmethod
    def from_dict(data):
        if not _is_dict(data, "GroupBy"):
            return GroupBy()
        for name, kind, what in (("keys", (list, tuple), "a list"), ("aggregate", dict, "a dict")):
            if name not in data:
                raise ValueError("GroupBy requires '%s' field" % name)
            if not isinstance(data[name], kind):
                raise TypeError("GroupBy %s must be %s, got %s" % (name, what, type(data[name]).__name__))
        if not data["keys"]:
            raise ValueError("GroupBy keys cannot be empty")
        return GroupBy([Key(key) for key in data["keys"]], Aggregate.from_dict(data["aggregate"]))


def _taken(value, name, kind, also=()):
    """An object of `kind`: the value itself, made of a dictionary, or of what `also` makes one."""
    if isinstance(value, kind):
        return value
    if isinstance(value, dict):
        return kind.from_dict(value)
    for other, made in also:
        if isinstance(value, other):
            return kind.from_dict(made(value))
    others = "".join(", " + other.__name__ for other, _ in also)
    raise TypeError("%s must be a %s object, dict%s, or None, got %s" % (name, kind.__name__, others, type(value).__name__))


class Search:
    """What Collection.search() of Chroma's cloud takes. Each method answers with a changed copy."""

    def __init__(self, where=None, rank=None, group_by=None, limit=None, select=None):
        self._where = None if where is None else _taken(where, "where", Where)
        self._rank = None if rank is None else _taken(rank, "rank", Rank)
        self._group_by = GroupBy() if group_by is None else _taken(group_by, "group_by", GroupBy)
        self._limit = Limit() if limit is None else _taken(limit, "limit", Limit, ((int, lambda n: {"limit": n}),))
        of_names = ((list, lambda keys: {"keys": keys}), (set, lambda keys: {"keys": list(keys)}))
        self._select = Select() if select is None else _taken(select, "select", Select, of_names)

    def to_dict(self):
        return {"filter": None if self._where is None else self._where.to_dict(), "rank": None if self._rank is None else self._rank.to_dict(),
                "group_by": self._group_by.to_dict(), "limit": self._limit.to_dict(), "select": self._select.to_dict()}

    def _with(self, **changed):
        return Search(**dict({"where": self._where, "rank": self._rank, "group_by": self._group_by, "limit": self._limit, "select": self._select}, **changed))

    def where(self, where):
        return self._with(where=where)

    def rank(self, rank_expr):
        return self._with(rank=rank_expr)

    def group_by(self, group_by):
        return self._with(group_by=group_by)

    def limit(self, limit, offset=0):
        return self._with(limit=Limit(offset, limit))

    def select(self, *keys):
        return self._with(select=Select(set(keys)))

    def select_all(self):
        return self.select(Key.DOCUMENT, Key.EMBEDDING, Key.METADATA, Key.SCORE)
