"""ARCP's fifteen codes (S5), one exception each, under one root."""

# Written by scripts/generate_errors.py from the vocabulary tables: change those, then `make generate`.

from __future__ import annotations

from amends import errors as everyday
from amends.errors.arcp_base import ARCPError, ARCPErrorOfCode, is_retryable_by_default

__all__ = [
    "ARCPError",
    "AgentNotAvailableError",
    "AgentVersionNotAvailableError",
    "BudgetExhaustedError",
    "CancelledError",
    "DuplicateKeyError",
    "HeartbeatLostError",
    "InternalError",
    "InvalidRequestError",
    "JobNotFoundError",
    "LeaseExpiredError",
    "LeaseSubsetViolationError",
    "PermissionDeniedError",
    "ResumeWindowExpiredError",
    "TimeoutError",
    "UnauthenticatedError",
    "is_retryable_by_default",
]


class InvalidRequestError(ARCPErrorOfCode):
    """The envelope or its arguments are malformed (correctable). Correct the request, then submit it again."""

    code = "INVALID_REQUEST"
    vocabulary = "arcp"


class UnauthenticatedError(ARCPErrorOfCode, everyday.UnauthenticatedError):
    """The bearer token is missing or wrong (correctable). Open a new session with a valid token."""

    code = "UNAUTHENTICATED"
    vocabulary = "arcp"


class PermissionDeniedError(ARCPErrorOfCode, everyday.PermissionDeniedError):
    """The lease does not allow this (correctable). Ask for a lease that covers it, or do without."""

    code = "PERMISSION_DENIED"
    vocabulary = "arcp"


class JobNotFoundError(ARCPErrorOfCode):
    """There is no such job (correctable). Check the job id, or list the jobs of this session."""

    code = "JOB_NOT_FOUND"
    vocabulary = "arcp"


class AgentNotAvailableError(ARCPErrorOfCode):
    """No agent of this name is registered (correctable). Submit to a registered agent."""

    code = "AGENT_NOT_AVAILABLE"
    vocabulary = "arcp"


class AgentVersionNotAvailableError(ARCPErrorOfCode):
    """The pinned version of the agent is not registered (correctable). Pin a version that is there, or none."""

    code = "AGENT_VERSION_NOT_AVAILABLE"
    vocabulary = "arcp"


class CancelledError(ARCPErrorOfCode, everyday.CancelledError):
    """The job was cancelled (terminal). Find out how far it got before submitting it again."""

    code = "CANCELLED"
    vocabulary = "arcp"


class TimeoutError(ARCPErrorOfCode, everyday.TimeoutError):
    """The job exceeded its maximum runtime (transient). Submit it again under the same idempotency key."""

    code = "TIMEOUT"
    vocabulary = "arcp"


class InternalError(ARCPErrorOfCode, everyday.InternalError):
    """The runtime or the agent failed unexpectedly (transient). Submit it again under the same idempotency key."""

    code = "INTERNAL_ERROR"
    vocabulary = "arcp"


class LeaseSubsetViolationError(ARCPErrorOfCode):
    """The child's lease is wider than its parent's (correctable). Delegate with a lease inside your own."""

    code = "LEASE_SUBSET_VIOLATION"
    vocabulary = "arcp"


class LeaseExpiredError(ARCPErrorOfCode):
    """The lease has run out (correctable). Submit a new job with a fresh lease."""

    code = "LEASE_EXPIRED"
    vocabulary = "arcp"


class BudgetExhaustedError(ARCPErrorOfCode):
    """The budget of the lease is used up (terminal). Have somebody grant a larger budget."""

    code = "BUDGET_EXHAUSTED"
    vocabulary = "arcp"


class ResumeWindowExpiredError(ARCPErrorOfCode):
    """It is too late to resume this session (correctable). Open a new session and look up the jobs there."""

    code = "RESUME_WINDOW_EXPIRED"
    vocabulary = "arcp"


class HeartbeatLostError(ARCPErrorOfCode):
    """The connection went silent (transient). Connect again and resume, or submit under the same idempotency key."""

    code = "HEARTBEAT_LOST"
    vocabulary = "arcp"


class DuplicateKeyError(ARCPErrorOfCode):
    """This idempotency key was used for another input (correctable). Use a new key for a new request."""

    code = "DUPLICATE_KEY"
    vocabulary = "arcp"
