"""Errors under the names that chromadb.errors has."""


class ChromaError(Exception):
    trace_id = None

    def code(self):
        return 400

    def message(self):
        return ", ".join(str(a) for a in self.args)

    @classmethod
    def name(cls):
        return cls.__name__


class InvalidDimensionException(ChromaError, ValueError):
    pass


class InvalidArgumentError(ChromaError, ValueError):
    pass


class NotFoundError(ChromaError, ValueError):
    pass


class InvalidCollectionException(NotFoundError):
    pass


class UniqueConstraintError(ChromaError, ValueError):
    pass


class IDAlreadyExistsError(ChromaError, ValueError):
    pass


class DuplicateIDError(ChromaError, ValueError):
    pass


class AuthorizationError(ChromaError):
    pass


class InternalError(ChromaError):
    pass


class BatchSizeExceededError(ChromaError, ValueError):
    pass


class InvalidUUIDError(ChromaError, ValueError):
    pass


class InvalidHTTPVersion(ChromaError):
    pass


class VersionMismatchError(ChromaError):
    pass


class QuotaError(ChromaError):
    pass


class RateLimitError(ChromaError):
    pass
