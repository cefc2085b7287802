"""
HTTP status codes, for responses and problem details.

Problem details (S1) have no codes. A problem without our extra member `code` gets the code of its status.
"""

from __future__ import annotations

from msgspec.structs import replace

from amends.core.enums import Actor, Executed, Recovery
from amends.core.vocabularies.everyday import VOCABULARY as EVERYDAY
from amends.core.vocabulary import Row, Vocabulary, table

__all__ = ["VOCABULARY"]


def _everyday(code: str, **changes: object) -> Row:
    return Row(**{**{name: getattr(EVERYDAY.rows[code], name) for name in Row.__struct_fields__}, **changes})


def _correctable(
    status: int, code: str, message: str, suggestion: str, user_message: str | None = None
) -> Row:
    return Row(
        code=code,
        recovery=Recovery.CORRECTABLE,
        everyday="VALIDATION_ERROR",
        message=message,
        suggestion=suggestion,
        user_message=user_message or EVERYDAY.rows["VALIDATION_ERROR"].user_message,
        executed=Executed.NO,
        status=status,
    )


def _unsupported(
    status: int, code: str, message: str, suggestion: str, user_message: str, actor: Actor = Actor.OPERATOR
) -> Row:
    """Return the row of a 5xx that no repeat changes: the request was not carried out."""
    return Row(
        code=code,
        recovery=Recovery.TERMINAL,
        everyday="SERVICE_UNAVAILABLE",
        message=message,
        suggestion=suggestion,
        user_message=user_message,
        executed=Executed.NO,
        actor=actor,
        status=status,
    )


ROWS = (
    *(_everyday(code) for code in EVERYDAY.rows if code != "CANCELLED"),
    # S1: the same request may succeed. It may also have had its effect (`executed` is maybe).
    _everyday("CANCELLED", recovery=Recovery.TRANSIENT),
    _correctable(
        400, "BAD_REQUEST", "The request was not understood", "Correct the request, then send it again"
    ),
    _correctable(
        405, "METHOD_NOT_ALLOWED", "This method is not possible here", "Use a method the resource allows"
    ),
    _correctable(406, "NOT_ACCEPTABLE", "No acceptable representation", "Accept another content type"),
    _correctable(
        410,
        "GONE",
        "The resource is gone for good",
        "Stop asking for it, or find its successor",
        "That no longer exists.",
    ),
    _correctable(411, "LENGTH_REQUIRED", "A Content-Length is required", "Send the length of the body"),
    _correctable(
        412,
        "PRECONDITION_FAILED",
        "A precondition did not hold",
        "Read the current state, then decide again",
        EVERYDAY.rows["CONFLICT"].user_message,
    ),
    _correctable(
        413,
        "CONTENT_TOO_LARGE",
        "The body is too large",
        "Send less, or send it in parts",
        "That is too large. Please send less at once.",
    ),
    _correctable(414, "URI_TOO_LONG", "The address is too long", "Move parameters into the body"),
    _correctable(
        415, "UNSUPPORTED_MEDIA_TYPE", "This content type is not understood", "Send a supported type"
    ),
    _correctable(
        428, "PRECONDITION_REQUIRED", "The request has to be conditional", "Send the version it is based on"
    ),
    _correctable(
        431, "HEADER_FIELDS_TOO_LARGE", "The headers are too large", "Send fewer or shorter headers"
    ),
    Row(
        code="UNAVAILABLE_FOR_LEGAL_REASONS",
        recovery=Recovery.TERMINAL,
        everyday="PERMISSION_DENIED",
        message="Not available for legal reasons",
        suggestion="Do without it",
        user_message="That isn't available here for legal reasons.",
        executed=Executed.NO,
        actor=Actor.USER,
        status=451,
    ),
    Row(
        code="TOO_EARLY",
        recovery=Recovery.TRANSIENT,
        everyday="SERVICE_UNAVAILABLE",
        message="Too early to process this request",
        suggestion="Send it again outside early data",
        user_message=EVERYDAY.rows["SERVICE_UNAVAILABLE"].user_message,
        executed=Executed.NO,
        status=425,
    ),
    Row(
        code="BAD_GATEWAY",
        recovery=Recovery.TRANSIENT,
        everyday="SERVICE_UNAVAILABLE",
        message="A server behind this one gave no proper answer",
        suggestion="Try again later, waiting longer each time",
        user_message=EVERYDAY.rows["SERVICE_UNAVAILABLE"].user_message,
        actor=Actor.PROVIDER,
        status=502,
    ),
    _unsupported(
        501,
        "NOT_IMPLEMENTED",
        "The service cannot do this",
        "Do without it, or use another service",
        "That service can't do this.",
    ),
    _unsupported(
        505,
        "HTTP_VERSION_NOT_SUPPORTED",
        "This version of HTTP is not supported",
        "Use another version of HTTP",
        "That service and I don't use the same version of HTTP. Its operator has to look at it.",
    ),
    _unsupported(
        508,
        "LOOP_DETECTED",
        "The request leads in a circle",
        "Do not repeat it; report the circle to the operator of the service",
        "That service is set up in a circle. Its operator has to repair it.",
    ),
    _unsupported(
        510,
        "NOT_EXTENDED",
        "The service needs an extension that the request does not have",
        "Do without it, or use a client that has the extension",
        "That service needs something I don't have.",
    ),
    _unsupported(
        511,
        "NETWORK_AUTHENTICATION_REQUIRED",
        "The network asks for a sign-in before it passes requests on",
        "Have a person sign in to the network; the service itself did not get the request",
        "The network asks for a sign-in first. Please sign in to it.",
        Actor.USER,
    ),
    Row(
        code="PARTIAL_FAILURE",
        recovery=Recovery.CORRECTABLE,
        everyday="VALIDATION_ERROR",
        message="Some items failed, the others succeeded",
        suggestion="Look at each failed item; never send the whole batch again",
        user_message="Part of that worked. Some of it needs another look.",
        executed=Executed.YES,
        status=207,
    ),
)

_BY_CODE = table(ROWS)


def _at_status(status: int, code: str, executed: Executed, recovery: Recovery = Recovery.TRANSIENT) -> Row:
    """Return the row of a status that has no code of its own."""
    row = _BY_CODE[code]
    return replace(
        row,
        status=status,
        executed=executed,
        recovery=recovery,
        actor=row.actor_under(recovery),
        suggestion=row.suggestion_under(recovery),
        user_message=row.user_message_under(recovery),
    )


_NO, _MAYBE = Executed.NO, Executed.MAYBE
# Statuses that proxies and content networks answer with, when the server behind them did not answer (M1, M3).
_OF_PROXIES = {
    row.status: row
    for row in (
        _at_status(499, "BAD_REQUEST", _MAYBE, Recovery.CORRECTABLE),  # the client closed the connection
        _at_status(520, "BAD_GATEWAY", _MAYBE),  # an answer that could not be read
        _at_status(521, "SERVICE_UNAVAILABLE", _NO),  # the connection was refused
        _at_status(522, "TIMEOUT", _MAYBE),  # no connection in time, or no acknowledgement of the request
        _at_status(523, "SERVICE_UNAVAILABLE", _NO),  # no route
        _at_status(524, "TIMEOUT", _MAYBE),  # no answer in time
        _at_status(525, "SERVICE_UNAVAILABLE", _NO),  # the TLS handshake failed
        _at_status(526, "SERVICE_UNAVAILABLE", _NO, Recovery.TERMINAL),  # the certificate is not valid
        _at_status(529, "SERVICE_UNAVAILABLE", _NO),  # overloaded
    )
    if row.status is not None
}

VOCABULARY = Vocabulary(
    name="http",
    title="HTTP problem details",
    rows=_BY_CODE,
    unknown=_BY_CODE["INTERNAL_ERROR"],
    by_status={
        # Other 4xx count as 400 (M1). Of several codes with the same status the first is the one of a bare status.
        **{row.status: row for row in reversed(ROWS) if row.status is not None},
        **_OF_PROXIES,
        # A 408 without an `intent` is a time-out, not a cancellation (M5).
        408: _BY_CODE["TIMEOUT"],
    },
)
