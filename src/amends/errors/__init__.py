"""The everyday errors: ten exceptions for what goes wrong everywhere, right in every dialect."""

# Written by scripts/generate_errors.py from the vocabulary tables: change those, then `make generate`.

from __future__ import annotations

import builtins

from amends.errors.base import FaultError

__all__ = [
    "CancelledError",
    "ConflictError",
    "FaultError",
    "InternalError",
    "NotFoundError",
    "PermissionDeniedError",
    "RateLimitedError",
    "ServiceUnavailableError",
    "TimeoutError",
    "UnauthenticatedError",
    "ValidationError",
]


class RateLimitedError(FaultError):
    """Too many requests (transient). Wait for the stated time, then send the same request again."""

    code = "RATE_LIMITED"
    vocabulary = "everyday"


class ServiceUnavailableError(FaultError):
    """The service is temporarily unavailable (transient). Try again later, waiting longer each time."""

    code = "SERVICE_UNAVAILABLE"
    vocabulary = "everyday"


class TimeoutError(FaultError, builtins.TimeoutError):
    """The operation took too long (transient). Find out whether it took effect, or repeat it where a repeat is safe."""

    code = "TIMEOUT"
    vocabulary = "everyday"


class ValidationError(FaultError):
    """The request is not valid (correctable). Correct the named field, then send the request again."""

    code = "VALIDATION_ERROR"
    vocabulary = "everyday"


class NotFoundError(FaultError):
    """The thing asked for does not exist (correctable). Check the identifier, or list what there is."""

    code = "NOT_FOUND"
    vocabulary = "everyday"


class PermissionDeniedError(FaultError):
    """This caller may not do that (terminal). Ask whoever grants access, or do without."""

    code = "PERMISSION_DENIED"
    vocabulary = "everyday"


class UnauthenticatedError(FaultError):
    """Credentials are missing or no longer valid (correctable). Refresh or supply credentials, then send the same request again."""

    code = "UNAUTHENTICATED"
    vocabulary = "everyday"


class ConflictError(FaultError):
    """The request does not fit the present state (correctable). Read the current state, then decide again."""

    code = "CONFLICT"
    vocabulary = "everyday"


class InternalError(FaultError):
    """Something went wrong inside the service (uncertain). Try once more where a repeat is safe, then report it with its trace id."""

    code = "INTERNAL_ERROR"
    vocabulary = "everyday"


class CancelledError(FaultError):
    """The operation was cancelled (terminal). Find out how far it got before starting it again."""

    code = "CANCELLED"
    vocabulary = "everyday"
