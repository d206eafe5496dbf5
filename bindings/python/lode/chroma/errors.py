"""Errors under the names that chromadb.errors has."""


class ChromaError(Exception):
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
