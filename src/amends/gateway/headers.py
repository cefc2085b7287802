"""Which headers pass the gateway, and which requests it refuses by their headers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from copy import copy

from amends.gateway.caller_limits import LIMITS

__all__ = [
    "BadRequest",
    "RequestHeaders",
    "request_headers",
    "response_headers",
    "traverses",
    "with_credentials",
]

_HOP = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection"),
        *(b"te", b"trailer", b"trailers", b"transfer-encoding", b"upgrade"),
    }
)
"""RFC 9110, 7.6.1: they belong to one connection."""
_NOT_SENT = _HOP | {b"host", b"expect"}
_READ = frozenset({b"content-length", b"idempotency-key", b"traceparent", *LIMITS})
_PLAIN_CONNECTIONS = frozenset({b"keep-alive", b"close", b"Keep-Alive", b"Close"})


class BadRequest(Exception):
    """A request that two servers could read differently."""


class RequestHeaders:
    """The headers of a request for the upstream, and what the gateway has to know of them."""

    __slots__ = ("chunked", "key", "left", "length", "limit", "sent", "traceparent")

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.length: int | None = None
        self.chunked = False
        self.key: str | None = None
        self.traceparent: str | None = None
        self.left: str | None = None
        """What the caller has left (`Amends-Left`)."""
        self.limit: float | None = None
        """Seconds for which the caller waits, if it says so."""

    def with_sent(self, sent: list[tuple[str, str]]) -> RequestHeaders:
        """Return these headers with others to send."""
        found = copy(self)
        found.sent = sent
        return found

    def with_left(self, stated: str | None) -> list[tuple[str, str]]:
        """Return the headers with what a repeat has left instead of what the caller had; without one, they are unchanged."""
        if self.left is None or stated is None:
            return self.sent
        return [(name, stated if name.lower() == "amends-left" else value) for name, value in self.sent]


def request_headers(headers: Iterable[tuple[bytes, bytes]], version: str = "1.1") -> RequestHeaders:
    """
    Return the headers to send.

    Args:
        headers: those of the request, with names in lower case.
        version: the version of HTTP.

    Raises:
        BadRequest: not one host, several lengths, a length beside a transfer encoding, or one in HTTP/1.0.

    """
    found = RequestHeaders()
    sent, hosts = found.sent, 0
    named: list[bytes] = []
    for name, value in headers:
        if name in _NOT_SENT:
            if name == b"host":
                hosts += 1
            elif name == b"connection" and value not in _PLAIN_CONNECTIONS:
                named.append(value)
            elif name == b"transfer-encoding":
                if found.chunked or value.strip().lower() != b"chunked" or version == "1.0":
                    raise BadRequest("the transfer encoding is not one `chunked`")
                found.chunked = True
            continue
        try:
            text = value.decode()
        except UnicodeDecodeError:
            text = value.decode("latin-1")
        if name not in _READ:
            pass
        elif name == b"content-length":
            if found.length is not None or not text.isdecimal() or not text.isascii() or len(text) > 15:
                raise BadRequest("the content length is not one number")
            found.length = int(text)
        elif name == b"idempotency-key":
            found.key = text.strip() or None
        elif name == b"traceparent":
            found.traceparent = text
        else:
            limit = LIMITS[name](text)
            if limit is not None:
                found.limit = limit if found.limit is None else min(limit, found.limit)
            if name == b"amends-left":
                found.left = text
        sent.append((name.decode("latin-1"), text))
    if hosts != 1 and (hosts or version != "1.0"):
        raise BadRequest("the request does not name one host")
    if found.chunked and found.length is not None:
        raise BadRequest("the request has a length and a transfer encoding")
    if named:
        dropped = {each.strip().lower() for each in b",".join(named).decode("latin-1").split(",")}
        found.sent = [(name, value) for name, value in sent if name not in dropped]
    return found


def response_headers(raw: Iterable[tuple[bytes, bytes]], status: int) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer for the caller: all but those of the connection."""
    kept = []
    # An answer without a body may name the length that it would have had; the server would wait for these bytes.
    named: set[bytes] | None = {b"content-length"} if status in {204, 304} else None
    for name, value in raw:
        lower = name.lower()
        if lower in _HOP:
            if lower == b"connection" and value not in _PLAIN_CONNECTIONS:
                named = {each.strip().lower() for each in value.split(b",")} | (named or set())
            continue
        kept.append((lower, value))
    if named:
        kept = [(name, value) for name, value in kept if name not in named]
    return kept


def traverses(path: bytes) -> bool:
    """
    Return whether a path has a segment `..`, also percent-encoded or with parameters, which some servers ignore.

    >>> traverses(b"/a/%2e%2E/b"), traverses(b"/a/..;x/b"), traverses(b"/a..b/...")
    (True, True, False)
    """
    if b".." not in path and b"%2" not in path:
        return False
    plain = path.replace(b"%2e", b".").replace(b"%2E", b".").replace(b"\\", b"/")
    plain = (
        plain.replace(b"%3b", b";")
        .replace(b"%3B", b";")
        .replace(b"%2f", b"/")
        .replace(b"%2F", b"/")
        .replace(b"%5c", b"/")
        .replace(b"%5C", b"/")
    )
    return any(segment.partition(b";")[0] == b".." for segment in plain.split(b"/"))


def with_credentials(
    sent: Sequence[tuple[str, str]],
    credentials: Mapping[str, str],
    environment: Mapping[str, str] = os.environ,
) -> list[tuple[str, str]]:
    """
    Return the headers of a request with the gateway's own credentials.

    >>> with_credentials([("authorization", "Bearer of-the-caller")], {"api-key": "KEY"}, {"KEY": "ours"})
    [('api-key', 'ours')]

    Args:
        sent: the headers.
        credentials: header → the name of the environment variable that has its value.
        environment: the variables.

    """
    kept = [(name, value) for name, value in sent if name.lower() not in _CALLERS]
    for name, variable in credentials.items():
        value = environment.get(variable, "").strip()
        plain = name.lower() == "authorization" and " " not in value
        if value:
            kept.append((name.lower(), f"Bearer {value}" if plain else value))
    return kept


_CALLERS = frozenset(
    {
        "authorization",
        "proxy-authorization",
        "cookie",
        "x-api-key",
        "api-key",
        "x-auth-token",
        "x-goog-api-key",
    }
    | {"openai-organization", "openai-project"}
)
"""Headers that say who the caller is."""
