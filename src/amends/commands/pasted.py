"""
What people paste into `amends decode`: `curl -i` output, event streams, log lines, tracebacks.

`read_pasted` turns a text that is no JSON document into a response or document that `examine` takes, or into a `Reading`;
`unwrapped` does the same for JSON documents that hold a response: HAR files, log records, arrays of a stream. Neither raises.
"""

from __future__ import annotations

import re

from amends.carriers.extraction import examine
from amends.commands.pasted_documents import documents
from amends.commands.pasted_har import har_response
from amends.commands.pasted_lines import read_error_line, read_log_line
from amends.commands.pasted_traceback import read_traceback
from amends.core.reading import FAILED, Reading
from amends.core.text import uncoloured
from amends.http.key_support import KEY

__all__ = ["read_pasted", "unwrapped"]

_STATUS = re.compile(r"[ \t]{0,4}HTTP/[\d.]+ (\d{3})\b[^\r\n]*\r?\n")
_HEADER = re.compile(r"[ \t]{0,4}([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}):[ \t]*([^\r\n]*)")
_SENT_KEY = re.compile(r"(?mi)^> idempotency-key: ?(\S[^\r\n]*)")
_PROGRESS = re.compile(r"[{}] \[\d+ bytes data\]")
_STREAM = re.compile(r"\s*(?:(?:data|event|id|retry): ?|: \S)")
_MAX_DOCUMENTS = 64
"""Documents of a text that are examined, from the last one back."""
_DEPTH = 3
"""How many log records inside each other are read."""


def read_pasted(text: str, depth: int = _DEPTH) -> object:
    r"""
    Return the response or document in a text, the `Reading` of an exception, or None if there is none.

    >>> read_pasted("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\n\r\n{}")
    {'status': 429, 'headers': {'Retry-After': '3'}, 'body': '{}'}
    """
    text = uncoloured(text).lstrip("\ufeff")
    found = _http(text) or _stream(text)
    if found is not None:
        return found
    found = _document(text, depth)
    if found is not None:
        return found
    return read_error_line(text) or _failing(read_traceback(text)) or read_log_line(text)


def unwrapped(value: object, depth: int = _DEPTH) -> object:
    """
    Return the failure that a JSON document holds: a HAR file, a log record, an array of a stream. Else the value itself.

    >>> unwrapped({"level": "error", "message": 'failed: {"type": "error", "error": {"type": "overloaded_error"}}'})
    {'type': 'error', 'error': {'type': 'overloaded_error'}}
    """
    if isinstance(value, str):
        found = read_pasted(value, depth - 1) if depth > 0 else None
        return value if found is None else found
    if isinstance(value, list):
        last = value[-1] if value else None
        return last if isinstance(last, dict) and set(last) == {"error"} else value
    if not isinstance(value, dict):
        return value
    response = har_response(value)
    if response is not None:
        return response
    if depth > 0 and _is_record(value) and not _fails(value):
        found = _in_record(value, depth)
        return value if found is None else found
    return value


def _fails(value: object) -> bool:
    return value is FAILED or (isinstance(value, Reading) and value.failed) or examine(value)[1].failed


def _failing(value: object) -> object:
    """Return a value that reports a failure, or None: most lines of a log are about other things."""
    return value if value is not None and _fails(value) else None


# ------------------------------------------------------------------------------------------------------ responses


def _http(text: str) -> object:
    """Read `curl -i`, `curl -v` or `wget -S` output: the last status line, its headers, and the body after the empty line."""
    # Most services do not send the key back; the request shows that there was one.
    sent_key = _SENT_KEY.search(text)
    # curl -v marks response lines with "< " and its own with "* ".
    if re.search(r"(?m)^< HTTP/", text):
        kept = [
            line.removeprefix("< ")
            for line in text.splitlines()
            if line[:2] not in {"> ", "* "} and _PROGRESS.fullmatch(line) is None
        ]
        text = "\n".join("" if line in {"<", ">", "*"} else line for line in kept)
    start = None
    for match in _STATUS.finditer(text):
        if match.start() == 0 or text[match.start() - 1] == "\n":
            start = match
    if start is None:
        return None
    headers: dict[str, str] = {} if sent_key is None else {KEY: sent_key[1].strip()}
    place = start.end()
    while True:
        end = text.find("\n", place)
        line = text[place:] if end < 0 else text[place:end]
        place = len(text) if end < 0 else end + 1
        found = _HEADER.fullmatch(line.rstrip("\r"))
        if found is None:
            break
        headers.setdefault(found[1], found[2].strip())
    body = text[place:].strip()
    status = int(start[1])
    if status < 400 and _STREAM.match(body):
        return body
    return {"status": status, "headers": headers, "body": _only_document(body)}


def _only_document(body: str) -> object:
    """Return a body without what curl's progress meter and messages put around it."""
    if body[:1] in {"{", "[", "<"} and body[-1:] in {"}", "]", ">"}:
        return body
    found = [each.value for each in documents(body) if isinstance(each.value, dict)]
    return found[-1] if found else body


def _stream(text: str) -> str | None:
    """Return a text that is an event stream, or lines of JSON with an error as the last one."""
    return text if _STREAM.match(text) else None


# -------------------------------------------------------------------------------------------------- log records

_LEVELS = frozenset(
    {"level", "levelname", "severity", "log.level", "loglevel", "logger", "levelno", "stackTrace"}
)
_ERRORS = frozenset({"error", "ERROR", "warn", "warning", "critical"})
_INSIDE = (
    *("response", "err", "error", "jsonPayload", "exception", "exc_info", "stack_info", "stack", "body", "payload"),
    *("textPayload", "log", "message", "msg", "event", "errorMessage", "cause", "data", "detail", "details", "error_message"),
)  # fmt: skip
"""The members of log records that hold a response, a body, a traceback or a text with one of these, the best first."""
_STATUSES = ("status", "status_code", "statusCode", "http_status")


def _is_record(value: dict[str, object]) -> bool:
    """Return whether a document is a record of a logger, or the error that AWS Lambda reports."""
    if _LEVELS & value.keys():
        return True
    if isinstance(status := value.get("status"), str) and status in _ERRORS:
        return True
    return isinstance(value.get("log"), str) and "stream" in value


def _in_record(value: dict[str, object], depth: int) -> object:
    """Return the failure inside a log record, or None."""
    for name in _INSIDE:
        member = value.get(name)
        if isinstance(member, dict):
            found = _in_member(name, member, value, depth)
        elif isinstance(member, str) and len(member) > 8:
            found = read_pasted(member, depth - 1)
            # A body beside its status.
            if isinstance(found, dict) and "status" not in found and (status := _status(value)) is not None:
                found = {"status": status, "headers": {}, "body": found}
        else:
            continue
        if found is not None:
            return found
    return None


def _in_member(name: str, member: dict[str, object], record: dict[str, object], depth: int) -> object:
    status = _status(member) or _status(record)
    body = next(
        (member[name] for name in ("body", "data") if isinstance(member.get(name), (dict, str))), None
    )
    candidates: list[dict[str, object]] = [member]
    if name in {"error", "err"}:
        candidates.insert(
            0, {"error": member, **({"type": "error"} if record.get("type") == "error" else {})}
        )
    if status is not None:
        candidates.insert(0, {"status": status, "headers": {}, "body": member if body is None else body})
    for each in candidates:
        if _fails(each):
            return each
    return None if depth <= 1 else _in_record(member, depth - 1)


def _status(value: dict[str, object]) -> int | None:
    for name in _STATUSES:
        number = value.get(name)
        if isinstance(number, int) and 400 <= number <= 599:
            return number
    return None


def _document(text: str, depth: int) -> object:
    """Return the last document in a text that reports a failure, with the status that is written before it."""
    for found in reversed(documents(text)[-_MAX_DOCUMENTS:]):
        value = unwrapped(found.value, depth - 1) if depth > 0 else found.value
        if isinstance(value, Reading):
            return value
        if isinstance(value, dict) and found.status is not None and value is found.value:
            return {"status": found.status, "headers": {}, "body": value}
        if _fails(value):
            return value
    return None
