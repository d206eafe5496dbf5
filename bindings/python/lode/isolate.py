"""The engine in a process of its own.

The worker is this interpreter running lode._worker. Calls go to it one at a time as pickled frames over a pipe that only the two
have. Objects of the engine stay there; here are stand-ins that name them. When the worker dies, the call in flight raises
WorkerDied, once; it is never sent again by us. The next call starts a worker, opens the store and its collections anew, and goes on.
"""
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading

from .errors import Closed, WorkerDied

_METHODS = ("add", "upsert", "update", "delete", "get", "get_page", "count", "query", "query_many", "explain", "facets", "counters", "stats")
_STORE_METHODS = ("collections", "rename", "set_metadata", "drop", "stats", "optimize", "compact", "verify", "backup")


def pickled(value):
    return pickle.dumps(value, protocol=4)


def send(file, data):
    file.write(struct.pack("<Q", len(data)))
    file.write(data)
    file.flush()


def receive(file):
    head = file.read(8)
    if len(head) < 8:
        raise EOFError
    (size,) = struct.unpack("<Q", head)
    data = file.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _ended(process):
    """Gives back the pipes of a worker that ends, and waits for it: its code."""
    for pipe in (process.stdin, process.stdout):
        try:
            pipe.close()
        except OSError:
            pass  # what was on its way to a dead one
    return process.wait()


class IsolatedStore:
    """What Store is, with the engine elsewhere."""

    def __init__(self, path, **options):
        self.path, self._options = os.fsdecode(path), options
        self._lock = threading.Lock()
        self._process, self._closed, self._pid = None, False, None
        self._call(None, "stats")  # opens it now, so that errors show here

    def _start(self):
        env = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
        self._process = subprocess.Popen([sys.executable, "-m", "lode._worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         env=env, close_fds=True)
        self._pid = os.getpid()
        self._opened = set()
        self._exchange(("open", self.path, self._options))

    def _exchange(self, request):
        data, process = pickled(request), self._process  # what cannot be pickled harms nobody
        try:
            send(process.stdin, data)
            answer = receive(process.stdout)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self._process = None
            code = _ended(process)
            name = signal.Signals(-code).name if code < 0 else "exit code %d" % code
            kind, *rest = request
            raise WorkerDied("the engine's process died (%s) before it answered %s(): what it had acknowledged is safe, this call may or may not "
                             "have been done; the next one starts another process" % (name, rest[1] if kind == "call" else kind)) from None
        except BaseException:  # Ctrl-C, or what a signal's handler raised: the next call would take this one's answer for its own
            self._process = None
            process.kill()
            _ended(process)
            raise
        kind, value = pickle.loads(answer)
        if kind == "error":
            raise value
        return value

    def _call(self, collection, method, *args, **kwargs):
        with self._lock:
            if self._closed:
                raise Closed("the store %r is closed" % self.path)
            if self._process is not None and self._pid != os.getpid():
                self._process = None  # a forked child has a worker of its own
            if self._process is None:
                self._start()
            if collection is not None and collection.key not in self._opened:
                self._exchange(("collection", collection.key, collection.name, collection.options))
                self._opened.add(collection.key)
            return self._exchange(("call", None if collection is None else collection.key, method, args, kwargs))

    def collection(self, name, **options):
        result = IsolatedCollection(self, name, options)
        self._call(result, "count")
        result.options = {}  # it exists now: from here on it is opened, never made
        return result

    def close(self):
        with self._lock:
            self._closed = True
            process, self._process = self._process, None
        if process is not None and self._pid == os.getpid():
            try:
                send(process.stdin, pickled(("end",)))  # a forked child may hold the pipe open: its end alone would not be seen
            except OSError:
                pass  # it is dead already
            _ended(process)

    @property
    def worker_pid(self):
        """Of the engine's process; None when none runs."""
        return None if self._process is None else self._process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        try:
            self.close()
        except Exception:
            pass


class IsolatedCollection:
    """What Collection is, with the engine elsewhere."""
    _count = 0

    def __init__(self, store, name, options):
        IsolatedCollection._count += 1
        self.store, self.name, self.options, self.key = store, name, options, "%s#%d" % (name, IsolatedCollection._count)

    def iterate(self, where=None, where_document=None, *, page=1000, **how):
        after = 0
        while True:
            found = self.get_page(None, where, where_document, limit=page, after=after, **how)
            yield from found.rows
            after = found.next
            if not after:
                return

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def _forward(name):
    def method(self, *args, **kwargs):
        return self.store._call(self, name, *args, **kwargs)
    method.__name__ = name
    return method


def _forward_store(name):
    def method(self, *args, **kwargs):
        return self._call(None, name, *args, **kwargs)
    method.__name__ = name
    return method


for _name in _METHODS:
    setattr(IsolatedCollection, _name, _forward(_name))
for _name in _STORE_METHODS:
    setattr(IsolatedStore, _name, _forward_store(_name))
