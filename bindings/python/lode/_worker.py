"""The engine's process of lode.connect(..., isolate=True); see isolate.py."""
import os
import pickle
import sys

from .isolate import pickled, receive, send
from .store import Store


def main():
    requests = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints goes to standard error, not between the frames
    store, collections = None, {}
    while True:
        try:
            data = receive(requests)
        except EOFError:
            break
        try:
            request = pickle.loads(data)
        except Exception as why:  # an argument of a class that is not known here
            send(answers, pickled(("error", TypeError("the engine's process cannot take that argument: %s" % why))))
            continue
        if request[0] == "end":
            break
        try:
            if request[0] == "open":
                store = Store(request[1], **request[2])
                value = None
            elif request[0] == "collection":
                collections[request[1]] = store.collection(request[2], **request[3])
                value = None
            else:
                _, key, method, args, kwargs = request
                value = getattr(store if key is None else collections[key], method)(*args, **kwargs)
            answer = pickled(("value", value))
        except Exception as why:
            answer = pickled(("error", why))
        send(answers, answer)
    if store is not None:
        store.close()


if __name__ == "__main__":
    main()
