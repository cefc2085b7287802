"""
Error lines of other languages and tools, as people paste them into `amends decode`: Go, Node, curl, kubectl, gRPC, AWS.

Only what a library always writes at the same place is read: a status, a code word or a gRPC code. Prose decides nothing.
"""

from __future__ import annotations

import re

from amends.core.meanings import (
    INTERNAL,
    INVALID,
    LOST,
    NOT_SENT,
    NOT_SENT_IN_TIME,
    TIMEOUT,
    UNTRUSTED,
    Meaning,
    fault_of,
)
from amends.core.reading import Reading

__all__ = ["read_error_line", "read_log_line"]

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
_NODE_ERRNO = re.compile(
    r"\bcode: '((?:E[A-Z]{3,15})|(?:UND_ERR_[A-Z_]{3,30})|(?:[A-Z_]{5,40}CERT[A-Z_]{0,20}))'"
)
_NODE_CODES: dict[str, Meaning] = {
    "ECONNREFUSED": NOT_SENT,
    "ENOTFOUND": NOT_SENT,
    "EAI_AGAIN": NOT_SENT,
    "UND_ERR_CONNECT_TIMEOUT": NOT_SENT_IN_TIME,
    "ETIMEDOUT": TIMEOUT,
    "UND_ERR_HEADERS_TIMEOUT": TIMEOUT,
    "UND_ERR_BODY_TIMEOUT": TIMEOUT,
    "ECONNRESET": LOST,
    "EPIPE": LOST,
    "UND_ERR_SOCKET": LOST,
    "DEPTH_ZERO_SELF_SIGNED_CERT": UNTRUSTED,
    "SELF_SIGNED_CERT_IN_CHAIN": UNTRUSTED,
}
_CURL = re.compile(r"^curl: \((\d{1,2})\) ([^\n]*)", re.MULTILINE)
_CURL_CODES: dict[int, Meaning] = {
    **dict.fromkeys((1, 3, 4), INVALID),
    **dict.fromkeys((5, 6, 7, 35, 45), NOT_SENT),
    **dict.fromkeys((51, 60, 77, 91), UNTRUSTED),
    **dict.fromkeys((18, 52, 55, 56, 92, 95, 96), LOST),
    28: TIMEOUT,
    47: INTERNAL,
}
"""The exit codes of curl (libcurl-errors)."""
_RETURNED = re.compile(r"returned error: ([45]\d\d)\b")
_KUBECTL = re.compile(r"^Error from server \(([A-Z]\w{1,40})\): ", re.MULTILINE)
_REASONS = {
    "BadRequest": 400,
    "Unauthorized": 401,
    "Forbidden": 403,
    "NotFound": 404,
    "AlreadyExists": 409,
    "Conflict": 409,
    "Gone": 410,
    "Expired": 410,
    "Invalid": 422,
    "TooManyRequests": 429,
    "InternalError": 500,
    "ServiceUnavailable": 503,
    "Timeout": 504,
    "ServerTimeout": 504,
}
"""The reasons of Kubernetes, with their statuses."""
_STATUS_CODE = re.compile(r"^[ \t]{0,8}status = StatusCode\.([A-Z_]{2,24})\b", re.MULTILINE)
_GH = re.compile(r"\(HTTP ([45]\d\d)\)[ \t\r]{0,4}$", re.MULTILINE)
_REQUEST = re.compile(r"\bHTTP/\d(?:\.\d)?\"? ([45]\d\d)\b")
_MAX_TEXT = 65_536


def read_error_line(text: str) -> object:
    """
    Return the response that an error line reports, the `Reading` of a failure without one, or None.

    >>> read_error_line("rpc error: code = Unavailable desc = closing")
    {'status': 503, 'headers': {'grpc-status': '14'}, 'body': ''}
    >>> read_error_line("curl: (7) Failed to connect").fault.executed.value
    'no'
    """
    text = text[-_MAX_TEXT:]
    if (found := _GRPC.search(text)) is not None and found[1] in _GRPC_CODES:
        return _grpc(found[1])
    if (found := _STATUS_CODE.search(text)) is not None:
        return _grpc(found[1].title().replace("_", "").replace("Cancelled", "Canceled"))
    if (found := _GOOGLEAPI.search(text)) is not None:
        status = int(found[1])
        return _response(status, {}, {"error": {"code": status, "errors": [{"reason": found[2]}]}})
    if (found := _AWS_GO.search(text)) is not None:
        return _response(int(found[1]), {"x-amzn-requestid": found[2], "x-amzn-errortype": found[3]}, "")
    if (found := _AWS_CLI.search(text)) is not None:
        return _response(400, {"x-amzn-errortype": found[1]}, "")
    if (found := _KUBECTL.search(text)) is not None and found[1] in _REASONS:
        status = _REASONS[found[1]]
        body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": found[1], "code": status}
        return _response(status, {}, body)
    if (found := _CURL.search(text)) is not None:
        returned = _RETURNED.search(found[2])
        return (
            _reading(_CURL_CODES.get(int(found[1]), INTERNAL))
            if returned is None
            else _response(int(returned[1]), {}, "")
        )
    return _node(text)


def read_log_line(text: str) -> object:
    """
    Return the status in the last line of an access log, of a client's log or of `gh`, or None.

    >>> read_log_line('INFO:httpx:HTTP Request: POST https://x "HTTP/1.1 429 Too Many Requests"')
    {'status': 429, 'headers': {}, 'body': ''}
    """
    text = text[-_MAX_TEXT:]
    found = _REQUEST.findall(text) or _GH.findall(text)
    return _response(int(found[-1]), {}, "") if found else None


def _grpc(name: str) -> dict[str, object] | None:
    known = _GRPC_CODES.get(name)
    return None if known is None else _response(known[1], {"grpc-status": str(known[0])}, "")


def _reading(meaning: Meaning) -> Reading:
    return Reading(True, fault_of(meaning), "exception", None, True)


def _response(status: int, headers: dict[str, str], body: object) -> dict[str, object]:
    return {"status": status, "headers": headers, "body": body}


def _node(text: str) -> object:
    """Read the members that Node prints below the stack of an error: `status: 429, code: 'insufficient_quota'`."""
    if "\n    at " not in text:
        return None
    members = {name: word or number for name, word, number in _NODE_MEMBER.findall(text)}
    status = members.pop("status", "")
    if status.isdecimal() and int(status) >= 400:
        return _response(int(status), {}, {"error": {**members, "message": ""}} if members else "")
    errno = _NODE_ERRNO.search(text)
    meaning = None if errno is None else _NODE_CODES.get(errno[1])
    return None if meaning is None else _reading(meaning)
