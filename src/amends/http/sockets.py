"""How the failure of a WebSocket is sent: the close code and the reason, or an HTTP response before it is accepted (ASGI)."""

from __future__ import annotations

from amends.core.crosswalk import source_row
from amends.core.fault import Fault
from amends.core.text import strip, truncate
from amends.core.vocabulary import EVERYDAY, row_for
from amends.dialects.outgoing import outgoing
from amends.http.application_errors import fault_from_status
from amends.http.asgi import FAULT
from amends.http.asgi_types import Message, Scope

__all__ = ["DENIAL", "can_deny", "close_message", "closes"]

DENIAL = "websocket."
"""What the types of the messages of an HTTP response begin with, before a WebSocket is accepted."""
_REASON = 123
"""Bytes of a reason that fit into a close frame (RFC 6455)."""
_LATER, _BROKEN, _REFUSED = 1013, 1011, 1008
_BUSY = frozenset({425, 429, 503})


def can_deny(scope: Scope) -> bool:
    """Return whether the server sends an HTTP response instead of accepting a WebSocket."""
    return "websocket.http.response" in (scope.get("extensions") or {})


def closes(exc: BaseException) -> bool:
    """Return whether an exception is a framework's way to close a WebSocket with a code of the author."""
    return any(cls.__name__ == "WebSocketException" for cls in type(exc).__mro__)


def close_message(scope: Scope, status: int = 500) -> Message:
    """
    Return the message that closes a WebSocket for the fault in its scope.

    The code is 1013 (try again later) for a service that is busy, 1011 for another failure of the server, and 1008 for a
    refusal. The reason is the fault's code and its text, redacted as everything that is sent.

    >>> close_message({FAULT: Fault(code="CONFLICT", message="The seat is taken", status=409)})
    {'type': 'websocket.close', 'code': 1008, 'reason': 'CONFLICT: The seat is taken'}

    Args:
        scope: the connection's scope.
        status: the status of a response of the application's own, if there is no fault.

    """
    raised = scope.get(FAULT)
    fault = outgoing(raised if isinstance(raised, Fault) else fault_from_status(status), "problem")
    row = source_row(fault)
    number = fault.status or row.status or row_for(EVERYDAY, row.everyday).status or 500
    code = _REFUSED
    if number in _BUSY and fault.retryable:
        code = _LATER
    elif number >= 500 or number == 408:
        code = _BROKEN
    reason = truncate(strip(f"{fault.code}: {fault.message}"), _REASON)
    return {"type": "websocket.close", "code": code, "reason": reason}
