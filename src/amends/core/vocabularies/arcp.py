"""The fifteen error codes of the Agent Runtime Control Protocol (S5), with their default retryability."""

from __future__ import annotations

from amends.core.enums import Actor, Executed, Recovery
from amends.core.vocabulary import Row, Vocabulary, table

__all__ = ["VOCABULARY"]

_CORRECTABLE, _TRANSIENT, _TERMINAL = Recovery.CORRECTABLE, Recovery.TRANSIENT, Recovery.TERMINAL
_NO, _MAYBE = Executed.NO, Executed.MAYBE


def _row(
    code: str,
    recovery: Recovery,
    executed: Executed,
    everyday: str,
    message: str,
    suggestion: str,
    user_message: str,
    actor: Actor = Actor.CALLER,
    status: int | None = None,
) -> Row:
    return Row(
        code=code,
        recovery=recovery,
        executed=executed,
        everyday=everyday,
        message=message,
        suggestion=suggestion,
        user_message=user_message,
        actor=actor,
        status=status,
    )


ROWS = (
    _row(
        "INVALID_REQUEST",
        _CORRECTABLE,
        _NO,
        "VALIDATION_ERROR",
        "The envelope or its arguments are malformed",
        "Correct the request, then submit it again",
        "I couldn't understand that request. Please change it and try again.",
        status=400,
    ),
    _row(
        "UNAUTHENTICATED",
        _CORRECTABLE,
        _NO,
        "UNAUTHENTICATED",
        "The bearer token is missing or wrong",
        "Open a new session with a valid token",
        "I can't go on without signing in again.",
    ),
    _row(
        "PERMISSION_DENIED",
        _CORRECTABLE,
        _NO,
        "PERMISSION_DENIED",
        "The lease does not allow this",
        "Ask for a lease that covers it, or do without",
        "I haven't been given permission for that.",
    ),
    _row(
        "JOB_NOT_FOUND",
        _CORRECTABLE,
        _NO,
        "NOT_FOUND",
        "There is no such job",
        "Check the job id, or list the jobs of this session",
        "I can't find that job any more.",
    ),
    _row(
        "AGENT_NOT_AVAILABLE",
        _CORRECTABLE,
        _NO,
        "NOT_FOUND",
        "No agent of this name is registered",
        "Submit to a registered agent",
        "No agent here can do that. Is there another way to ask?",
    ),
    _row(
        "AGENT_VERSION_NOT_AVAILABLE",
        _CORRECTABLE,
        _NO,
        "NOT_FOUND",
        "The pinned version of the agent is not registered",
        "Pin a version that is there, or none",
        "The version asked for isn't available here.",
    ),
    _row(
        "CANCELLED",
        _TERMINAL,
        _MAYBE,
        "CANCELLED",
        "The job was cancelled",
        "Find out how far it got before submitting it again",
        "That was cancelled before it finished.",
    ),
    _row(
        "TIMEOUT",
        _TRANSIENT,
        _MAYBE,
        "TIMEOUT",
        "The job exceeded its maximum runtime",
        "Submit it again under the same idempotency key",
        "That took too long and was stopped. Would you like to try again?",
    ),
    _row(
        "INTERNAL_ERROR",
        _TRANSIENT,
        _MAYBE,
        "INTERNAL_ERROR",
        "The runtime or the agent failed unexpectedly",
        "Submit it again under the same idempotency key",
        "Something went wrong while working on that. If it keeps happening, please report it.",
        Actor.OPERATOR,
    ),
    _row(
        "LEASE_SUBSET_VIOLATION",
        _CORRECTABLE,
        _NO,
        "PERMISSION_DENIED",
        "The child's lease is wider than its parent's",
        "Delegate with a lease inside your own",
        "I can't pass on more permission than I have.",
    ),
    _row(
        "LEASE_EXPIRED",
        _CORRECTABLE,
        _MAYBE,
        "PERMISSION_DENIED",
        "The lease has run out",
        "Submit a new job with a fresh lease",
        "The time I was given for this has run out.",
    ),
    _row(
        "BUDGET_EXHAUSTED",
        _TERMINAL,
        _MAYBE,
        "PERMISSION_DENIED",
        "The budget of the lease is used up",
        "Have a larger budget granted",
        "The budget for this is used up.",
        Actor.USER,
        402,
    ),
    _row(
        "RESUME_WINDOW_EXPIRED",
        _CORRECTABLE,
        _MAYBE,
        "CONFLICT",
        "It is too late to resume this session",
        "Open a new session and look up the jobs there",
        "The connection was lost for too long. Please start again.",
        status=410,
    ),
    _row(
        "HEARTBEAT_LOST",
        _TRANSIENT,
        _MAYBE,
        "SERVICE_UNAVAILABLE",
        "The connection went silent",
        "Connect again and resume, or submit under the same idempotency key",
        "The connection was lost. Please try again.",
    ),
    _row(
        "DUPLICATE_KEY",
        _CORRECTABLE,
        _NO,
        "CONFLICT",
        "This idempotency key was used for another input",
        "Use a new key for a new request",
        "That was already asked with different details.",
    ),
)

_BY_CODE = table(ROWS)
VOCABULARY = Vocabulary(
    name="arcp",
    title="Agent Runtime Control Protocol errors",
    rows=_BY_CODE,
    # M1: an unknown code is terminal unless the payload says retryable.
    unknown=_row(
        "UNKNOWN",
        _TERMINAL,
        _MAYBE,
        "INTERNAL_ERROR",
        "A failure this protocol does not name",
        "Ask the operator of the runtime",
        "Something went wrong that I can't put right myself.",
        Actor.OPERATOR,
    ),
)
