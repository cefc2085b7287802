"""
What people paste into `amends decode`: `curl -i` output, HAR files, event streams, log lines, tracebacks.

`read_pasted` turns a text that is no JSON document into a response or document that `examine` takes, or into a `Reading`.
It never raises.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from amends.carriers.extraction import examine
from amends.commands.pasted_lines import read_error_line
from amends.commands.pasted_traceback import read_traceback
from amends.core.reading import Reading
from amends.core.wire import TOO_DEEP, Unreadable, read

__all__ = ["har_response", "read_pasted"]

_STATUS = re.compile(r"HTTP/[\d.]+ (\d{3})\b[^\r\n]*\r?\n")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}):[ \t]*([^\r\n]*)")
_PROGRESS = re.compile(r"[{}] \[\d+ bytes data\]")
_MAX_LINES = 10_000
_MAX_STARTS = 16
"""Brackets of a line at which a document is looked for."""


def read_pasted(text: str) -> Any:
    r"""
    Return the response or document in a text, the `Reading` of an exception, or None if there is none.

    >>> read_pasted("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\n\r\n{}")
    {'status': 429, 'headers': {'Retry-After': '3'}, 'body': '{}'}
    """
    text = text.lstrip("\ufeff")
    return (
        _http(text)
        or _stream(text)
        or _failing(_log(text))
        or read_error_line(text)
        or _failing(read_traceback(text))
    )


def _failing(value: Any) -> Any:
    """Return a value that reports a failure, or None: most lines of a log are about other things."""
    if isinstance(value, Reading):
        return value
    return value if value is not None and examine(value)[1].failed else None


def har_response(value: Any) -> Any:
    """Return the last failed response of a HAR file, or the response in a line of Docker's log; else the value itself."""
    log = value.get("log") if isinstance(value, dict) else None
    if isinstance(log, str) and "stream" in value:
        # A line that Docker stores.
        found = read_pasted(log)
        return value if found is None else found
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(entries, list):
        return value
    responses = [entry.get("response") for entry in entries if isinstance(entry, dict)]
    found = [each for each in responses if isinstance(each, dict) and isinstance(each.get("status"), int)]
    if not found:
        return value
    failed = [each for each in found if each["status"] >= 400] or found
    chosen = failed[-1]
    headers = {
        each["name"]: each["value"]
        for each in chosen.get("headers") or ()
        if isinstance(each, dict) and isinstance(each.get("name"), str) and isinstance(each.get("value"), str)
    }
    content = chosen.get("content")
    body = content.get("text") if isinstance(content, dict) else None
    if isinstance(body, str) and isinstance(content, dict) and content.get("encoding") == "base64":
        from base64 import b64decode

        try:
            body = b64decode(body)
        except ValueError:
            body = None
    return {"status": chosen["status"], "headers": headers, "body": body}


def _http(text: str) -> dict[str, Any] | None:
    """Read `curl -i` or `curl -v` output: the last status line, its headers, and the body after the empty line."""
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
    headers: dict[str, str] = {}
    place = start.end()
    while True:
        end = text.find("\n", place)
        line = text[place:] if end < 0 else text[place:end]
        place = len(text) if end < 0 else end + 1
        found = _HEADER.fullmatch(line.rstrip("\r"))
        if found is None:
            break
        headers.setdefault(found[1], found[2].strip())
    return {"status": int(start[1]), "headers": headers, "body": text[place:].strip()}


def _stream(text: str) -> str | None:
    """Return a text that is an event stream, or lines of JSON with an error as the last one."""
    return text if re.match(r"\s*(?:data|event|id|retry): ?", text) else None


def _log(text: str) -> Any:
    """Return the last JSON object in lines of text, such as log lines."""
    for line in reversed(text.splitlines()[-_MAX_LINES:]):
        for match in islice(re.finditer(r"[{\[]", line), _MAX_STARTS):
            try:
                value = read(line[match.start() :].strip())
            except Unreadable:
                continue
            if isinstance(value, (dict, list)) and value is not TOO_DEEP:
                return _with_status(value, line[: match.start()])
            break
    return None


def _with_status(value: Any, before: str) -> Any:
    """Add the status that SDKs write before a body: `Error code: 429 - {…}`."""
    found = re.search(r"\b(?:code|status|HTTP)\b[^0-9\n]{0,8}([45]\d\d)\b", before, re.IGNORECASE)
    return value if found is None else {"status": int(found[1]), "headers": {}, "body": value}
