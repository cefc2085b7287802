"""A request that the stage received, and the answer that it gives."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from urllib.parse import parse_qsl, urlsplit

import msgspec

__all__ = ["SAFE_METHODS", "Answer", "Request", "canonical", "json_answer"]

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "QUERY", "TRACE"})


class Request(msgspec.Struct, frozen=True):
    """One request to a service of the stage."""

    service: str
    method: str
    target: str
    """The path with its query."""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    origin: str = ""
    """The origin that the program meant, if the interception sent it here."""

    @property
    def path(self) -> str:
        """The path without the query."""
        return urlsplit(self.target).path

    def header(self, name: str) -> str:
        """Return the value of a header, or an empty text."""
        name = name.lower()
        return next((value for key, value in self.headers if key.lower() == name), "")

    def document(self) -> object:
        """Return the body as a JSON value; None if it is none."""
        try:
            return msgspec.json.decode(self.body) if self.body else None
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None

    def streams(self) -> bool:
        """Return whether a stream is asked for."""
        document = self.document()
        return isinstance(document, dict) and document.get("stream") is True


def canonical(request: Request, without: str | None = None) -> str:
    """
    Return a digest that is equal for requests that ask for the same: method, address and body, whatever the order of members.

    >>> first = Request("orders", "POST", "/orders?b=1&a=2", body=b'{"x": 1, "y": 2}')
    >>> second = Request("orders", "POST", "/orders?a=2&b=1", body=b'{"y":2,"x":1}')
    >>> canonical(first) == canonical(second)
    True

    Args:
        request: the request.
        without: a member of the body that does not count, such as an idempotency key.

    """
    parts = urlsplit(request.target)
    document = request.document()
    if isinstance(document, dict) and without is not None:
        document = {name: value for name, value in document.items() if name != without}
    if isinstance(document, dict) and document.get("jsonrpc") == "2.0":
        # The id of a JSON-RPC call is new for each try.
        document = {"method": document.get("method"), "params": _without_ids(document.get("params"))}
    body = request.body if document is None else msgspec.json.encode(document, order="deterministic")
    query = sorted(parse_qsl(parts.query, keep_blank_values=True))
    text = msgspec.json.encode([request.service, request.method.upper(), parts.path, query])
    return sha256(text + b"\0" + body).hexdigest()[:16]


def _without_ids(params: object) -> object:
    """Return the parameters of a JSON-RPC call without what is new for each try: progress tokens and ids of messages."""
    if not isinstance(params, dict):
        return params
    kept = {name: value for name, value in params.items() if name != "_meta"}
    message = kept.get("message")
    if isinstance(message, dict):
        kept["message"] = {
            name: value for name, value in message.items() if name not in {"messageId", "message_id"}
        }
    return kept


class Answer(msgspec.Struct, kw_only=True):
    """What the stage sends, and how the connection ends."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    parts: Iterable[bytes] | None = None
    """The pieces of a stream; the body is then empty."""
    ending: str = "whole"
    """`whole`; `cut`: the connection ends before the body does; `lost`: without an answer; `late`: the answer is held until the
    caller gives up; `silent`: the answer is never sent."""

    def header(self, name: str) -> str:
        """Return the value of a header, or an empty text."""
        name = name.lower()
        return next((value for key, value in self.headers if key.lower() == name), "")


def json_answer(status: int, document: object, *headers: tuple[str, str]) -> Answer:
    """Return an answer with a JSON body."""
    kind = ("content-type", "application/json")
    body = msgspec.json.encode(document)
    return Answer(status=status, headers=(*headers, kind), body=body)
