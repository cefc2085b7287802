"""The gateway's own answers: a call that it refused, or an upstream that gave no answer."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from amends.core.fault import Fault
from amends.core.wire import compact
from amends.dialects.problem import MEDIA_TYPE, encode
from amends.http.asgi_types import Message, Receive, Send
from amends.http.responses import retry_after, with_wait

__all__ = ["FACTS", "refusal", "send_and_read_on", "send_problem", "send_whole"]


FACTS = {
    "upstream": b"amends-upstream",
    "tries": b"amends-tries",
    "waited": b"amends-waited",
    "trace": b"amends-trace",
}
"""The headers that say which upstream failed, how many tries were made, how long they waited, and the trace id."""

_READ_ON = 2.0
"""Seconds that a caller has to stop sending a body that was refused."""

_TITLES = {
    400: ("INVALID_REQUEST", "The request cannot be read in one way only"),
    401: ("UNAUTHENTICATED", "The gateway does not know the token of this call"),
    403: ("PERMISSION_DENIED", "This request is not allowed"),
    404: ("NOT_FOUND", "No upstream has this path"),
    405: ("INVALID_REQUEST", "The gateway does not forward this method"),
    408: ("TIMEOUT", "The request was not sent in time"),
    413: ("INVALID_REQUEST", "The request's body is too large"),
    429: ("RATE_LIMITED", "This caller makes too many calls"),
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


def send_and_read_on(send: Send, receive: Receive) -> Send:
    """
    Return `send`, which reads the rest of a refused request for a moment before it ends the answer.

    A connection that is closed while bytes are unread is reset, and the caller loses the answer that says why.
    """

    async def sending(message: Message) -> None:
        if message["type"] != "http.response.body":
            await send(message)
            return
        await send({**message, "more_body": True})
        try:
            async with asyncio.timeout(_READ_ON):
                while (read := await receive())["type"] == "http.request" and read.get("more_body"):
                    pass
        except TimeoutError:
            pass
        await send({"type": "http.response.body", "body": b""})

    return sending
