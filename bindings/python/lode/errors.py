"""Exceptions: one for each status of lode.h, with the library's text."""
from . import _abi


class LodeError(Exception):
    """What the library reports. `status` is its name, `record` the position in a batch of the record at fault, or None."""

    status = "INTERNAL"
    record = None


class NotFound(LodeError, KeyError):
    def __str__(self):
        return str(self.args[0]) if self.args else ""


class Exists(LodeError, ValueError):
    pass


class Invalid(LodeError, ValueError):
    pass


class Refused(LodeError, ValueError):
    pass


class Mismatch(LodeError, ValueError):
    pass


class Limit(LodeError):
    pass


class Corrupt(LodeError):
    pass


class TooNew(LodeError):
    pass


class Busy(LodeError, TimeoutError):
    pass


class ReadOnly(LodeError, PermissionError):
    pass


class Gone(LodeError):
    pass


class InputOutput(LodeError, OSError):
    pass


class Full(LodeError, OSError):
    pass


class OutOfMemory(LodeError, MemoryError):
    pass


class Cancelled(LodeError):
    pass


class Unsupported(LodeError, NotImplementedError):
    pass


class Internal(LodeError):
    pass


class Closed(LodeError, ValueError):
    """The store or collection was closed."""


class WorkerDied(LodeError):
    """The engine's process died (connect(..., isolate=True)); the next call starts another."""


_CLASSES = {
    "NOT_FOUND": NotFound, "EXISTS": Exists, "INVALID": Invalid, "REFUSED": Refused, "MISMATCH": Mismatch, "LIMIT": Limit,
    "CORRUPT": Corrupt, "TOO_NEW": TooNew, "BUSY": Busy, "READONLY": ReadOnly, "GONE": Gone, "IO": InputOutput, "FULL": Full,
    "NOMEM": OutOfMemory, "CANCELLED": Cancelled, "UNSUPPORTED": Unsupported, "INTERNAL": Internal,
}


def error_of(status, error):
    name, about = _abi.STATUSES.get(status, ("INTERNAL", "an unknown status"))
    result = _CLASSES.get(name, Internal)(error.text.decode("utf-8", "replace") or about)
    result.status = name
    result.record = None if error.record == _abi.LODE_NO_RECORD else error.record
    return result
