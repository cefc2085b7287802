"""
Error lines of other languages and tools, as people paste them into `amends decode`: Go, Node, and the AWS command line.

Only what a library always writes at the same place is read: a status, a code word or a gRPC code. Prose decides nothing.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["read_error_line"]

_GRPC = re.compile(r"\brpc error: code = ([A-Z][A-Za-z]{1,20}) desc = ")
_GRPC_CODES = {
    "Canceled": (1, 499),
    "Unknown": (2, 500),
    "InvalidArgument": (3, 400),
    "DeadlineExceeded": (4, 504),
    "NotFound": (5, 404),
    "AlreadyExists": (6, 409),
    "PermissionDenied": (7, 403),
    "ResourceExhausted": (8, 429),
    "FailedPrecondition": (9, 400),
    "Aborted": (10, 409),
    "OutOfRange": (11, 400),
    "Unimplemented": (12, 501),
    "Internal": (13, 500),
    "Unavailable": (14, 503),
    "DataLoss": (15, 500),
    "Unauthenticated": (16, 401),
}
_GOOGLEAPI = re.compile(r"\bgoogleapi: Error ([45]\d\d): [^\n]{0,2000}?, ([A-Za-z]{1,64})$", re.MULTILINE)
_AWS_GO = re.compile(
    r"\bhttps response error StatusCode: ([45]\d\d), RequestID: ([\w-]{0,64}),[^\n]{0,200}?\b(\w{1,96}): "
)
_AWS_CLI = re.compile(r"^An error occurred \(([\w.]{1,96})\) when calling the ", re.MULTILINE)
_NODE_MEMBER = re.compile(r"^ {2,8}(status|code|type|param): (?:'([\w.-]{1,96})'|(\d{3}))", re.MULTILINE)


def read_error_line(text: str) -> dict[str, Any] | None:
    """
    Return the response that an error line reports, or None.

    >>> read_error_line("rpc error: code = Unavailable desc = closing")
    {'status': 503, 'headers': {'grpc-status': '14'}, 'body': ''}
    """
    if (found := _GRPC.search(text)) is not None and found[1] in _GRPC_CODES:
        number, status = _GRPC_CODES[found[1]]
        return _response(status, {"grpc-status": str(number)}, "")
    if (found := _GOOGLEAPI.search(text)) is not None:
        status = int(found[1])
        return _response(status, {}, {"error": {"code": status, "errors": [{"reason": found[2]}]}})
    if (found := _AWS_GO.search(text)) is not None:
        return _response(int(found[1]), {"x-amzn-requestid": found[2], "x-amzn-errortype": found[3]}, "")
    if (found := _AWS_CLI.search(text)) is not None:
        return _response(400, {"x-amzn-errortype": found[1]}, "")
    return _node(text)


def _response(status: int, headers: dict[str, str], body: Any) -> dict[str, Any]:
    return {"status": status, "headers": headers, "body": body}


def _node(text: str) -> dict[str, Any] | None:
    """Read the members that Node prints below the stack of an error: `status: 429, code: 'insufficient_quota'`."""
    if "\n    at " not in text:
        return None
    members = {name: word or number for name, word, number in _NODE_MEMBER.findall(text[-20_000:])}
    status = members.pop("status", "")
    if not status.isdecimal() or int(status) < 400:
        return None
    return _response(int(status), {}, {"error": {**members, "message": ""}} if members else "")
