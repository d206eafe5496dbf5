"""The shared library: found, loaded, its functions typed, its statuses turned into exceptions."""
import ctypes
import json
import operator
import os
import struct
import sys
from array import array

from . import _abi
from .errors import Invalid, error_of

try:
    import numpy
except ImportError:  # plain lists do
    numpy = None


NAME = ("liblode.%d.dylib" if sys.platform == "darwin" else "liblode.so.%d") % _abi.LODE_ABI


def _candidates():
    given = os.environ.get("LODE_LIBRARY")
    if given:
        yield given
    here = os.path.dirname(os.path.abspath(__file__))
    yield os.path.join(here, NAME)  # a wheel
    yield os.path.join(here, "..", "..", "..", "build", "release", NAME)  # a checkout
    yield NAME


def _load():
    tried = []
    for path in _candidates():
        if os.sep in path and not os.path.exists(path):
            tried.append(path)
            continue
        try:
            return ctypes.CDLL(path)
        except OSError as why:
            tried.append("%s (%s)" % (path, why))
    raise ImportError(NAME + " cannot be loaded: build it with `make`, or name it in LODE_LIBRARY; it needs SQLite, PCRE2 and utf8proc of the "
                      "system (libsqlite3-0, libpcre2-8-0 and libutf8proc2 on Debian). Tried: " + ", ".join(tried))


library = _load()


def _with_sizes(function, sizes):
    """A function that is given the sizes of its structs, as the inline functions of lode.h do it."""
    def sized(*args):
        args = list(args)
        for at, size in sizes:
            args.insert(at, size)
        return function(*args)
    return sized


for _name, (_symbol, _result, _params, _sizes) in _abi.FUNCTIONS.items():
    _function = getattr(library, _symbol)
    _function.restype, _function.argtypes = _result, _params
    if _sizes:
        setattr(library, _name, _with_sizes(_function, _sizes))

lode_str = _abi.lode_str
NONE = lode_str()


def check(status, error):
    """Raises what a status that is not LODE_OK means."""
    if status:
        raise error_of(status, error)


def call(name, *args):
    """Calls a function whose last parameter is the error. What a callback among the arguments has raised is raised here."""
    error = _abi.lode_error()
    status = getattr(library, name)(*args, ctypes.byref(error))
    if status:
        for arg in args:
            if getattr(arg, "failed", None):
                raise arg.failed[0]
        raise error_of(status, error)


def number(value, name, bits=64):
    """A whole number that a field of so many bits can hold: ctypes would wrap others silently."""
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError("%s is a whole number, not %r" % (name, value)) from None
    if not 0 <= value < 1 << bits:
        raise Invalid("%s is %d: it must be 0 to %d" % (name, value, (1 << bits) - 1))
    return value


def path_bytes(value):
    """A path for the library, which would end it at a NUL."""
    data = os.fsencode(value)
    if b"\0" in data:
        raise Invalid("the path %r has a NUL in it" % (value,))
    return data


def as_bytes(value, what="a text"):
    if isinstance(value, str):
        return value.encode("utf-8")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError("%s is a str or bytes, not %r" % (what, value))


def text(value):
    """A lode_str of a str or bytes."""
    if value is None:
        return NONE
    data = as_bytes(value)
    return lode_str(data, len(data))


def json_text(value):
    if value is None:
        return NONE
    return text(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False))


def texts(values, what="texts"):
    """An array of lode_str."""
    if isinstance(values, (str, bytes, bytearray, memoryview)):  # else it would be taken for a list of its characters
        raise TypeError("%s are a list of strings, not one string: %r" % (what, values))
    data = [as_bytes(v, "each of the " + what) for v in values]
    return (lode_str * len(data))(*zip(data, map(len, data)))


# The whole of memory: memory[address:address + size] copies bytes in a third of the time that ctypes.string_at takes
memory = (ctypes.c_char * sys.maxsize).from_address(0)
_address = ctypes.c_void_p.from_address


def of_text(item):
    """The str of a lode_str, or None. (A c_char_p field stops at a NUL: the bytes are taken by address and length.)"""
    address = _address(ctypes.addressof(item)).value
    return None if address is None else memory[address:address + item.len].decode()


def _numpy_floats(values):
    """A contiguous array of float32, which is not copied if it is one already."""
    try:
        return numpy.ascontiguousarray(values, dtype=numpy.float32)
    except (TypeError, ValueError) as why:
        raise TypeError("vectors are arrays of numbers: %s" % why) from None


def _owner_of_floats(values):
    """A vector as an array of floats, numpy's or Python's."""
    if isinstance(values, (bytes, bytearray)):  # else they would be taken for the bytes of floats
        raise TypeError("a vector is an array of numbers, not %r" % (values,))
    if numpy is not None and hasattr(values, "__array__"):
        owner = _numpy_floats(values)
        if numpy.ndim(values) != 1:
            raise TypeError("a vector is an array of numbers, not of %d dimensions" % numpy.ndim(values))
    else:
        try:
            owner = array("f", values)
        except (TypeError, OverflowError) as why:
            raise TypeError("a vector is an array of numbers: %s" % why) from None
    if not len(owner):  # else the library would take it for none
        raise Invalid("a vector has 1 to %d dimensions, not 0" % _abi.LODE_MAX_DIMENSION)
    return owner


def floats(values):
    """A vector: the address of its floats, their number, and what keeps them alive."""
    owner = _owner_of_floats(values)
    return owner.buffer_info()[0] if isinstance(owner, array) else owner.ctypes.data, len(owner), owner


def floats_at(address, n):
    """numpy's array where there is numpy, else a list; a copy either way."""
    data = memory[address:address + 4 * n]
    if numpy is not None:
        return numpy.frombuffer(data, numpy.float32).copy()
    return list(struct.unpack("%df" % n, data))


def matrix(vectors):
    """Vectors of equal length: the address of their floats, rows, columns, and what keeps them alive. One vector is a matrix of one row."""
    if numpy is not None and getattr(vectors, "ndim", 0) == 2:
        owner = _numpy_floats(vectors)
        return owner.ctypes.data, owner.shape[0], owner.shape[1], owner
    rows = list(vectors)
    if rows and not hasattr(rows[0], "__len__"):
        rows = [vectors]
    if len(rows) == 1:
        address, dim, owner = floats(rows[0])
        return address, 1, dim, owner
    all, dim = array("f"), len(rows[0]) if rows else 0
    for row in rows:
        owner = _owner_of_floats(row)
        if len(owner) != dim:
            raise TypeError("vectors are not equally long")
        all.frombytes(owner.tobytes())
    return all.buffer_info()[0], len(rows), dim, all
