"""Keys, and the conditions made of them: (K("topic") == "x") & (K("n") > 3). Their to_dict() is a filter of get(), query() and delete()."""
from dataclasses import dataclass
from typing import Any, List


def one_of(found, what):
    """The only item of a dictionary that has exactly one."""
    if not isinstance(found, dict):
        raise TypeError("Expected dict for %s, got %s" % (what, type(found).__name__))
    if not found:
        raise ValueError("%s dict cannot be empty" % what)
    if len(found) != 1:
        raise ValueError("%s dict must contain exactly one %s, got %d" % (what, "field" if what == "Where" else "operator", len(found)))
    return next(iter(found.items()))


def flat(kind, *parts):
    """A `kind` of the parts; those that are one already give theirs."""
    return kind([inner for part in parts for inner in (getattr(part, kind.part) if isinstance(part, kind) else [part])])


class Where:
    """A condition; combined by & and |."""

    def to_dict(self):
        raise NotImplementedError("Subclasses must implement to_dict()")

    def __and__(self, other):
        return flat(And, self, other)

    def __or__(self, other):
        return flat(Or, self, other)

    @staticmethod
    def from_dict(data):
        for operator, kind in (("$and", And), ("$or", Or)):
            if isinstance(data, dict) and operator in data:
                given = data[operator]
                if not isinstance(given, list):
                    raise TypeError("%s must be a list, got %s" % (operator, type(given).__name__))
                if not given:
                    raise ValueError("%s requires at least one condition" % operator)
                if len(data) > 1:
                    raise ValueError("%s cannot be combined with other fields in the same dict" % operator)
                parts = [Where.from_dict(item) for item in given]
                return parts[0] if len(parts) == 1 else flat(kind, *parts)
        field, condition = one_of(data, "Where")
        if not isinstance(field, str):
            raise TypeError("Field name must be a string, got %s" % type(field).__name__)
        return _condition(field, condition)


def _condition(field, condition):
    if not isinstance(condition, dict):
        return Eq(field, condition)
    if len(condition) != 1:
        raise ValueError("Operator dict for field '%s' %s" % (field, "must contain exactly one operator" if condition else "cannot be empty"))
    (operator, value), = condition.items()
    if operator not in OPERATORS:
        raise ValueError("Unknown operator: %s" % operator)
    wanted = {"$in": list, "$nin": list, "$contains": (str, int, float), "$not_contains": (str, int, float), "$regex": str, "$not_regex": str}.get(operator)
    if wanted is not None and not isinstance(value, wanted):
        name = {list: "list", str: "string pattern"}.get(wanted, "str, int, float, or bool")
        raise TypeError("%s requires a %s, got %s" % (operator, name, type(value).__name__))
    if "contains" in operator:
        _text_of_document(field, operator, value)
    return OPERATORS[operator](field, value)


def _text_of_document(field, operator, value):
    if field == "#document" and not isinstance(value, str):
        raise TypeError("%s on #document requires a string pattern" % operator)


@dataclass
class And(Where):
    conditions: List[Where]
    part = "conditions"

    def to_dict(self):
        return {"$and": [c.to_dict() for c in self.conditions]}


@dataclass
class Or(Where):
    conditions: List[Where]
    part = "conditions"

    def to_dict(self):
        return {"$or": [c.to_dict() for c in self.conditions]}


def _compared(name, operator, value="value"):
    """A condition of a key and a value, with the name that Chroma gives the value."""
    def to_dict(self):
        return {self.key: {operator: getattr(self, value)}}
    kind = type(name, (Where,), {"__annotations__": {"key": str, value: Any}, "to_dict": to_dict, "__doc__": "KEY %s VALUE" % operator, "__module__": __name__})
    return dataclass(kind)


Eq, Ne, Gt, Gte = _compared("Eq", "$eq"), _compared("Ne", "$ne"), _compared("Gt", "$gt"), _compared("Gte", "$gte")
Lt, Lte, In, Nin = _compared("Lt", "$lt"), _compared("Lte", "$lte"), _compared("In", "$in", "values"), _compared("Nin", "$nin", "values")
Contains, NotContains = _compared("Contains", "$contains"), _compared("NotContains", "$not_contains")
Regex, NotRegex = _compared("Regex", "$regex", "pattern"), _compared("NotRegex", "$not_regex", "pattern")
OPERATORS = {"$eq": Eq, "$ne": Ne, "$gt": Gt, "$gte": Gte, "$lt": Lt, "$lte": Lte, "$in": In, "$nin": Nin, "$contains": Contains,
             "$not_contains": NotContains, "$regex": Regex, "$not_regex": NotRegex}


class Key:
    """A name of a field: K("topic"), K.DOCUMENT. Comparing it makes a condition."""

    def __init__(self, name):
        self.name = name

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return "K(%r)" % self.name

    def __eq__(self, value):
        return Eq(self.name, value)

    def __ne__(self, value):
        return Ne(self.name, value)

    def __gt__(self, value):
        return Gt(self.name, value)

    def __ge__(self, value):
        return Gte(self.name, value)

    def __lt__(self, value):
        return Lt(self.name, value)

    def __le__(self, value):
        return Lte(self.name, value)

    def is_in(self, values):
        return In(self.name, values)

    def not_in(self, values):
        return Nin(self.name, values)

    def regex(self, pattern):
        return Regex(self.name, pattern)

    def not_regex(self, pattern):
        return NotRegex(self.name, pattern)

    def contains(self, value):
        _text_of_document(self.name, "$contains", value)
        return Contains(self.name, value)

    def not_contains(self, value):
        _text_of_document(self.name, "$not_contains", value)
        return NotContains(self.name, value)


for _name in ("ID", "DOCUMENT", "EMBEDDING", "METADATA", "SCORE"):
    setattr(Key, _name, Key("#" + _name.lower()))
K = Key


def key_names(keys):
    """Names of one key or several, which are keys or names."""
    keys = keys if isinstance(keys, (list, tuple, set)) else [keys]
    return list(dict.fromkeys(key.name if isinstance(key, Key) else key for key in keys))
