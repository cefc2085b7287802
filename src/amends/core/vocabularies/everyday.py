"""
The everyday set: ten codes for common failures, each with its equivalent in every other vocabulary.

Recovery and `executed` are those of the HTTP status (mappings M1, M3, M5), except for a cancelled operation: it is
terminal outside HTTP, and may always have had its effect.
"""

from __future__ import annotations

from amends.core.enums import Actor, Executed, Recovery
from amends.core.vocabulary import EVERYDAY, Row, Vocabulary, table

__all__ = ["ROWS", "VOCABULARY"]

ROWS = (
    Row(
        code="RATE_LIMITED",
        recovery=Recovery.TRANSIENT,
        everyday="RATE_LIMITED",
        message="Too many requests",
        suggestion="Wait for the stated time, then send the same request again",
        user_message="That service asked us to slow down. I'll try again in a moment.",
        executed=Executed.NO,
        status=429,
        exit=9,
        jsonrpc=-32029,
    ),
    Row(
        code="SERVICE_UNAVAILABLE",
        recovery=Recovery.TRANSIENT,
        everyday="SERVICE_UNAVAILABLE",
        message="The service is temporarily unavailable",
        suggestion="Try again later, waiting longer each time",
        user_message="That service isn't available right now. I'll try again shortly.",
        status=503,
        exit=12,
        jsonrpc=-32027,
    ),
    Row(
        code="TIMEOUT",
        recovery=Recovery.TRANSIENT,
        everyday="TIMEOUT",
        message="The operation took too long",
        suggestion="Find out whether it took effect, or repeat it where a repeat is safe",
        user_message="That's taking longer than it should. Shall I try again?",
        status=504,
        exit=7,
    ),
    Row(
        code="VALIDATION_ERROR",
        recovery=Recovery.CORRECTABLE,
        everyday="VALIDATION_ERROR",
        message="The request is not valid",
        suggestion="Correct the named field, then send the request again",
        user_message="Something in that request needs to be changed before it can work.",
        executed=Executed.NO,
        status=422,
        exit=2,
        jsonrpc=-32602,
    ),
    Row(
        code="NOT_FOUND",
        recovery=Recovery.CORRECTABLE,
        everyday="NOT_FOUND",
        message="The thing asked for does not exist",
        suggestion="Check the identifier, or list what there is",
        user_message="I couldn't find {name}. Could you check the name?",
        executed=Executed.NO,
        status=404,
        exit=4,
    ),
    Row(
        code="PERMISSION_DENIED",
        recovery=Recovery.TERMINAL,
        everyday="PERMISSION_DENIED",
        message="This caller may not do that",
        suggestion="Ask for access, or do without it",
        user_message="I'm not allowed to do that. A person with access has to change it first.",
        executed=Executed.NO,
        actor=Actor.USER,
        status=403,
        exit=8,
    ),
    Row(
        code="UNAUTHENTICATED",
        recovery=Recovery.CORRECTABLE,
        everyday="UNAUTHENTICATED",
        message="Credentials are missing or no longer valid",
        suggestion="Refresh or supply credentials, then send the same request again",
        user_message="I need to sign in again before I can go on.",
        executed=Executed.NO,
        status=401,
        exit=8,
        jsonrpc=-32028,
    ),
    Row(
        code="CONFLICT",
        recovery=Recovery.CORRECTABLE,
        everyday="CONFLICT",
        message="The request does not fit the present state",
        suggestion="Read the current state, then decide again",
        user_message="That changed in the meantime. I'll have another look before going on.",
        executed=Executed.NO,
        status=409,
        exit=6,
    ),
    Row(
        code="INTERNAL_ERROR",
        recovery=Recovery.UNCERTAIN,
        everyday="INTERNAL_ERROR",
        message="Something went wrong inside the service",
        suggestion="Try once more where a repeat is safe, then report it with its trace id",
        user_message="Something went wrong on the other side. If it keeps happening, it needs to be reported.",
        actor=Actor.OPERATOR,
        status=500,
        exit=1,
        jsonrpc=-32603,
    ),
    Row(
        code="CANCELLED",
        recovery=Recovery.TERMINAL,
        everyday="CANCELLED",
        message="The operation was cancelled",
        suggestion="Find out how far it got before starting it again",
        user_message="That was cancelled before it finished.",
        status=408,
        exit=130,
    ),
)

_BY_CODE = table(ROWS)
VOCABULARY = Vocabulary(
    name=EVERYDAY,
    title="Everyday errors",
    rows=_BY_CODE,
    unknown=_BY_CODE["INTERNAL_ERROR"],
)
