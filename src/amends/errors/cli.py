"""The codes of a command line (S2), one exception each."""

# Written by scripts/generate_errors.py from the vocabulary tables: change those, then `make generate`.

from __future__ import annotations

from amends import errors as everyday
from amends.errors.base import FaultError

__all__ = [
    "AuthRequiredError",
    "ConflictError",
    "InternalError",
    "NetworkError",
    "NotFoundError",
    "PartialFailureError",
    "PaymentRequiredError",
    "PermissionDeniedError",
    "PreconditionFailedError",
    "RateLimitedError",
    "RedirectedError",
    "ServiceUnavailableError",
    "TimeoutError",
    "UsageError",
    "ValidationError",
]


class ValidationError(everyday.ValidationError):
    """The request is not valid (correctable). Correct the named argument before running it again."""

    code = "VALIDATION_ERROR"
    vocabulary = "cli"


class UsageError(FaultError):
    """Unknown command or flag, or an argument is missing (correctable). Look at --help for the commands and flags there are."""

    code = "USAGE_ERROR"
    vocabulary = "cli"


class NotFoundError(everyday.NotFoundError):
    """The thing asked for does not exist (correctable). Check the name, or list what there is."""

    code = "NOT_FOUND"
    vocabulary = "cli"


class ConflictError(everyday.ConflictError):
    """The request does not fit the present state (correctable). Look at the current state before running it again."""

    code = "CONFLICT"
    vocabulary = "cli"


class TimeoutError(everyday.TimeoutError):
    """The operation took too long (transient). Run it again where a repeat is safe."""

    code = "TIMEOUT"
    vocabulary = "cli"


class PermissionDeniedError(everyday.PermissionDeniedError):
    """This caller may not do that (terminal). Get other credentials or more rights before running it again."""

    code = "PERMISSION_DENIED"
    vocabulary = "cli"


class RateLimitedError(everyday.RateLimitedError):
    """Too many requests (transient). Wait for retry_after_ms, then run it again."""

    code = "RATE_LIMITED"
    vocabulary = "cli"


class ServiceUnavailableError(everyday.ServiceUnavailableError):
    """The service is temporarily unavailable (transient). Run it again later, waiting longer each time."""

    code = "SERVICE_UNAVAILABLE"
    vocabulary = "cli"


class NetworkError(FaultError):
    """The network did not carry the request (transient). Check the connection, then run it again."""

    code = "NETWORK_ERROR"
    vocabulary = "cli"


class InternalError(everyday.InternalError):
    """Something went wrong inside the service (uncertain). Run it once more where a repeat is safe, then report it."""

    code = "INTERNAL_ERROR"
    vocabulary = "cli"


class PartialFailureError(FaultError):
    """It began and did not finish (uncertain). Find out what was done before doing the rest."""

    code = "PARTIAL_FAILURE"
    vocabulary = "cli"


class PreconditionFailedError(FaultError):
    """Something the command needs first is not there (correctable). Bring about what the command needs first."""

    code = "PRECONDITION_FAILED"
    vocabulary = "cli"


class AuthRequiredError(FaultError):
    """Credentials are missing or no longer valid (correctable). Sign in or refresh the credentials, then run it again."""

    code = "AUTH_REQUIRED"
    vocabulary = "cli"


class PaymentRequiredError(FaultError):
    """A payment is required (terminal). Have the account's owner settle it."""

    code = "PAYMENT_REQUIRED"
    vocabulary = "cli"


class RedirectedError(FaultError):
    """This command has another name now (correctable). Use the replacement the error names."""

    code = "REDIRECTED"
    vocabulary = "cli"
