"""What callers give, checked as Chroma checks it: the same mistakes are refused, with exceptions of the same kinds."""
import re

from .._library import numpy
from .errors import DuplicateIDError, InvalidArgumentError
from .types import SparseVector

_NAME = re.compile(r"^[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]$")
_ADDRESS = re.compile(r"^\d+\.\d+\.\d+\.\d+$")
_NUMBERS = ("$gt", "$gte", "$lt", "$lte")
_LISTS = ("$in", "$nin")
_OPERATORS = _NUMBERS + _LISTS + ("$ne", "$eq", "$contains", "$not_contains")
_TEXTS = ("$contains", "$not_contains", "$regex", "$not_regex")


def is_sequence(value):
    return isinstance(value, (list, tuple)) or (numpy is not None and isinstance(value, numpy.ndarray))


def many(value):
    return list(value) if is_sequence(value) else [value]


def name(value):
    if not isinstance(value, str) or not _NAME.match(value):
        raise InvalidArgumentError("Expected a name containing 3-512 characters from [a-zA-Z0-9._-], starting and ending with a character in "
                                   "[a-zA-Z0-9]. Got: %s" % (value,))
    if ".." in value or _ADDRESS.match(value):
        raise InvalidArgumentError("Expected a name that has no two periods in a row and is no IP address. Got: %s" % value)
    return value


def vectors(value, what="embeddings"):
    """A list of vectors; one vector is a list of one."""
    if value is None:
        return None
    if not is_sequence(value):
        raise ValueError("Expected %s to be a list of vectors, got %s" % (what, type(value).__name__))
    if numpy is not None and isinstance(value, numpy.ndarray):
        return list(value.reshape(1, -1) if value.ndim == 1 else value)
    value = list(value)
    if value and not is_sequence(value[0]) and value[0] is not None:
        value = [value]
    for at, vector in enumerate(value):
        if vector is None:
            continue
        if not is_sequence(vector) or (len(vector) and (isinstance(vector[0], (str, bytes, bool)) or is_sequence(vector[0]))):
            raise ValueError("Expected %s to be a list of floats or ints, a list of lists, a numpy array, or a list of numpy arrays, got %s" % (what, vector))
        if len(vector) == 0:
            raise ValueError("Expected each embedding in the embeddings to be a 1-dimensional numpy array with at least 1 int/float value. Got a "
                             "1-dimensional numpy array with no values at pos %d" % at)
    return value


def ids(value):
    value = many(value)
    if not value:
        raise ValueError("Expected IDs to be a non-empty list, got 0 IDs")
    for id in value:
        if not isinstance(id, str):
            raise ValueError("Expected ID to be a str, got %r" % (id,))
    if len(set(value)) != len(value):
        seen, twice = set(), []
        for id in value:
            if id in seen and len(twice) < 10:
                twice.append(id)
            seen.add(id)
        raise DuplicateIDError("Expected IDs to be unique, found duplicates of: %s" % ", ".join(twice))
    return value


def _kind(value):
    return bool if isinstance(value, bool) else type(value)


def _list_of_metadata(key, items):
    if not items:
        raise ValueError("Expected metadata list value for key %r to be non-empty" % key)
    if any(not isinstance(item, (str, int, float)) for item in items):
        raise ValueError("Expected metadata list value for key %r to hold str, int, float, or bool, got %r" % (key, items))
    if any(_kind(item) is not _kind(items[0]) for item in items):
        raise ValueError("Expected metadata list value for key %r to hold values of the same type, got %r" % (key, items))


def metadata(value, removing=False, sparse=False):
    """None takes a key away where `removing`, and is left out elsewhere, as chromadb before 1.0 did. Only where nothing is stored are there
    `sparse` vectors."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ValueError("Expected metadata to be a dict or None, got %s" % type(value).__name__)
    if not value:
        raise ValueError("Expected metadata to be a non-empty dict, got 0 metadata attributes")
    for key, item in value.items():
        if key == "chroma:document":
            raise ValueError("Expected metadata to not contain the reserved key chroma:document")
        if not isinstance(key, str):
            raise TypeError("Expected metadata key to be a str, got %r" % (key,))
        if isinstance(item, list):
            _list_of_metadata(key, item)
        elif isinstance(item, SparseVector) and not sparse:
            raise InvalidArgumentError("Sparse vectors cannot be stored: the metadata key %r has one" % key)
        elif item is not None and not isinstance(item, (str, int, float, SparseVector)):
            raise ValueError("Expected metadata value to be a str, int, float, bool, SparseVector, list, or None, got %r which is a %s"
                             % (item, type(item).__name__))
    return {k: v for k, v in value.items() if removing or v is not None}


def include(value, allowed):
    if not isinstance(value, (list, tuple)):
        raise ValueError("Expected include to be a list, got %s" % (value,))
    for item in value:
        if item not in allowed:
            raise ValueError("Expected include item to be one of %s, got %s" % (", ".join(allowed), item))
    return list(value)


def _clauses(value, what):
    if not isinstance(value, list) or len(value) < 2:
        raise ValueError("Expected %s to be a list with at least two expressions, got %s" % (what, value))
    return value


def _operand(operator, operand):
    if operator in _NUMBERS and (not isinstance(operand, (int, float)) or isinstance(operand, bool)):
        raise ValueError("Expected operand value to be an int or a float for operator %s, got %s" % (operator, operand))
    if operator in _LISTS:
        if not isinstance(operand, list) or not operand or any(type(x) is not type(operand[0]) for x in operand) \
                or not isinstance(operand[0], (str, int, float)):
            raise ValueError("Expected where operand value to be a non-empty list, and all values to be of the same type got %s" % (operand,))
    elif not isinstance(operand, (str, int, float)):
        raise ValueError("Expected where operand value to be a str, int or float for operator %s, got %s" % (operator, operand))


def where(value):
    """Without recursion."""
    stack = [value]
    while stack:
        clause = stack.pop()
        if not isinstance(clause, dict):
            raise ValueError("Expected where to be a dict, got %s" % (clause,))
        if len(clause) != 1:
            raise ValueError("Expected where to have exactly one operator, got %s" % (clause,))
        (key, operand), = clause.items()
        if not isinstance(key, str):
            raise ValueError("Expected where key to be a str, got %s" % (key,))
        if key in ("$and", "$or"):
            stack.extend(_clauses(operand, "where value for " + key))
        elif key.startswith("$"):
            raise ValueError("Expected where key to be a metadata field name or $and or $or, got %s" % key)
        elif isinstance(operand, dict):
            if len(operand) != 1:
                raise ValueError("Expected operator expression to have exactly one operator, got %s" % (operand,))
            (operator, inner), = operand.items()
            if operator not in _OPERATORS:
                raise ValueError("Expected where operator to be one of %s, got %s" % (", ".join(_OPERATORS), operator))
            _operand(operator, inner)
        elif not isinstance(operand, (str, int, float)):
            raise ValueError("Expected where value to be a str, int, float, or operator expression, got %s" % (operand,))
    return value


def where_document(value):
    stack = [value]
    while stack:
        clause = stack.pop()
        if not isinstance(clause, dict) or len(clause) != 1:
            raise ValueError("Expected where document to be a dictionary with exactly one operator, got %s" % (clause,))
        (operator, operand), = clause.items()
        if operator in ("$and", "$or"):
            stack.extend(_clauses(operand, "document value for " + operator))
        elif operator not in _TEXTS:
            raise ValueError("Expected where document operator to be one of %s, $and, $or, got %s" % (", ".join(_TEXTS), operator))
        elif not isinstance(operand, str) or not operand:
            raise ValueError("Expected where document operand value for operator %s to be a non-empty str, got %r" % (operator, operand))
    return value


def page(limit, offset):
    for what, value in (("limit", limit), ("offset", offset)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise TypeError("Expected %s to be an int, got %r" % (what, value))
        if value is not None and value < 0:
            raise OverflowError("Expected %s not to be negative, got %d" % (what, value))


def n_results(value):
    if not isinstance(value, int):
        raise ValueError("Expected requested number of results to be a int, got %r" % (value,))
    if value <= 0:
        raise TypeError("Number of requested results %d, cannot be negative, or zero." % value)
    return value
