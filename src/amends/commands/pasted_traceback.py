"""
The last line of a traceback, as people paste it into `amends decode`: `httpx.ReadTimeout: The read operation timed out`.

A status, a code word in the place where a library always writes it, or a body in the line is read as a response. Otherwise
the name of the class decides, as in `amends.foreign`. The prose of the message decides nothing.
"""

from __future__ import annotations

import builtins
import re
from typing import Any

from amends.core.reading import FAILED, Reading
from amends.foreign.classes import ROWS
from amends.foreign.outcomes import fault_of

__all__ = ["read_traceback"]

_TITLE = "Traceback (most recent call last)"
_MAX_LINES = 10_000
_FRAME = re.compile(r"^ *(?:[|+] ?)+-*")
"""What Python writes before the lines of an exception group."""
_NOTES = ("For more information check:", "+---")
_LINE = re.compile(r"(?P<name>(?:[A-Za-z_]\w*\.)*[A-Z]\w*)(?:: (?P<message>.*))?")
_STATUSES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:code|status)(?: code)?[:= ]{1,3}\(?([45]\d\d)\b",  # openai, anthropic, aiohttp
        r"^\(?([45]\d\d)\b",  # requests, google-api-core, kubernetes, PyGithub
        r"^HTTP Error ([45]\d\d)\b",  # urllib
        r"^(?:Client|Server) error '([45]\d\d) ",  # httpx
    )
)
_BOTOCORE = re.compile(r"^An error occurred \((\w{1,96})\) when calling the ")

# Classes that have no row of their own: the row of their base class.
_BASES = {
    **{
        f"{module}.{name}": f"{module}.{base}"
        for module in ("httpx", "httpx2")
        for name, base in (
            ("ReadTimeout", "TimeoutException"),
            ("WriteTimeout", "TimeoutException"),
            ("ReadError", "NetworkError"),
            ("WriteError", "NetworkError"),
            ("CloseError", "NetworkError"),
        )
    },
    "requests.exceptions.ReadTimeout": "requests.exceptions.Timeout",
    "builtins.ConnectionResetError": "builtins.ConnectionError",
    "builtins.ConnectionAbortedError": "builtins.ConnectionError",
    "builtins.BrokenPipeError": "builtins.ConnectionError",
    "aiohttp.client_exceptions.ServerDisconnectedError": "aiohttp.client_exceptions.ClientConnectionError",
    "aiohttp.client_exceptions.ClientConnectorDNSError": "aiohttp.client_exceptions.ClientConnectorError",
}


def read_traceback(text: str) -> Any:
    r"""
    Return what the last line of a traceback reports: a response, a `Reading`, or None if it is no exception.

    >>> read_traceback("urllib.error.HTTPError: HTTP Error 429: Too Many Requests\n")
    {'status': 429, 'headers': {}, 'body': ''}
    >>> read_traceback("httpx.ReadTimeout: The read operation timed out").fault.code
    'TIMEOUT'
    """
    lines = [_FRAME.sub("", line) for line in text.splitlines()[-_MAX_LINES:]]
    lines = [line for line in lines if line.strip() and not line.startswith(_NOTES)]
    if _TITLE not in text:
        return _read_line(lines[-1].strip(), text) if lines else None
    # The message of an exception may go on in further lines, and its cause may say more than an exception of one's own.
    result = _read_line(lines[-1].strip(), text)
    for line in reversed(lines[:-1]) if result is None or result is FAILED else ():
        found = _LINE.fullmatch(line)
        if found is not None and "." in found["name"] and found["message"] is not None:
            earlier = _read_line(line, text)
            if earlier is not None and earlier is not FAILED:
                return earlier
    return result


def _read_line(last: str, text: str) -> Any:
    """Return what one line reports."""
    found = _LINE.fullmatch(last)
    exception = found is not None and _is_exception(found["name"], text)
    message = (found["message"] or "") if found is not None and exception else last
    # In a line that is no exception only the first form counts: numbers at the start of log lines mean other things.
    patterns = _STATUSES if exception else _STATUSES[:1]
    status = next((int(match[1]) for each in patterns if (match := each.search(message))), None)
    body = _body(message)
    if status is not None:
        return {"status": status, "headers": {}, "body": "" if body is None else body}
    if body is not None:
        return body
    if found is None or not exception:
        return None
    word = _BOTOCORE.match(message)
    if word is not None:
        return {"status": 400, "headers": {"x-amzn-errortype": word[1]}, "body": ""}
    return _by_class(found["name"])


def _is_exception(name: str, text: str) -> bool:
    """Whether a name is that of an exception: in a traceback, of a module, or a built-in one."""
    return "." in name or _TITLE in text or isinstance(getattr(builtins, name, None), type)


def _body(message: str) -> dict[Any, Any] | None:
    """Return the dict that SDKs write into a message in Python's notation, or None."""
    start = message.find("{")
    if start < 0:
        return None
    from ast import literal_eval

    try:
        value = literal_eval(message[start : message.rfind("}") + 1])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _by_class(name: str) -> Reading:
    full = name if "." in name else f"builtins.{name}"
    row = ROWS.get(_BASES.get(full, full))
    return FAILED if row is None else Reading(True, fault_of(row.meaning), "exception", None, True)
