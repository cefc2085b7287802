"""The gateway's own answers: a call that it refused, or an upstream that gave no answer."""

from __future__ import annotations

from msgspec.structs import replace

from amends.core.fault import Fault
from amends.core.wire import compact
from amends.dialects.problem import MEDIA_TYPE, encode
from amends.http.asgi_types import Send
from amends.http.responses import retry_after, with_wait

__all__ = ["FACTS", "refusal", "send_problem", "send_whole"]


FACTS = {
    "upstream": b"amends-upstream",
    "tries": b"amends-tries",
    "waited": b"amends-waited",
    "trace": b"amends-trace",
}
"""The headers that say which upstream failed, how many tries were made, how long they waited, and the trace id."""

_TITLES = {
    400: ("INVALID_REQUEST", "The request cannot be read in one way only"),
    403: ("PERMISSION_DENIED", "This request is not allowed"),
    404: ("NOT_FOUND", "No upstream has this path"),
    405: ("INVALID_REQUEST", "The gateway does not forward this method"),
    408: ("TIMEOUT", "The request was not sent in time"),
    413: ("INVALID_REQUEST", "The request's body is too large"),
    502: ("SERVICE_UNAVAILABLE", "The upstream gave no valid answer"),
    503: ("SERVICE_UNAVAILABLE", "The gateway cannot send this call on for now"),
    504: ("TIMEOUT", "The upstream did not answer in time"),
}


def refusal(status: int, detail: str = "", *, wait: float | None = None) -> Fault:
    """Return the fault of a call that the gateway did not send on."""
    code, title = _TITLES[status]
    known = "VALIDATION_ERROR" if code == "INVALID_REQUEST" else code
    return Fault(code=known, message=detail or title, status=status, executed="no", retry_after=wait)  # type: ignore[arg-type]


async def send_problem(
    send: Send, fault: Fault, facts: list[tuple[bytes, bytes]], *, close: bool = False
) -> None:
    """Send a fault as a problem document, with the facts about the upstream in headers."""
    problem = encode(with_wait(replace(fault, type=fault.type or "about:blank")))
    body = compact(problem) or b"{}"
    headers = [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
        *facts,
    ]
    wait = retry_after(problem)
    if wait is not None:
        headers.append((b"retry-after", wait.encode()))
    if close:
        headers.append((b"connection", b"close"))
    await send_whole(send, problem["status"], headers, body)


async def send_whole(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    """Send an answer at once."""
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
