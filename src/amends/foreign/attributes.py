"""Status, headers and body of an exception of an SDK, under the names that SDKs use."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import PurePath
from sys import stdlib_module_names

from amends.core.wire import Unreadable, read
from amends.foreign.safe_attr import attribute

__all__ = ["body_of", "headers_of", "is_installed", "status_of", "unlisted", "usual"]

_STATUSES = (
    *("status_code", "http_status", "http_status_code", "response_code", "http_code", "statusCode"),
    *("status", "code"),
)
_OFTEN_OTHERS = frozenset({"status", "code"})
"""Names that exceptions use for other things, too."""
_BODIES = (
    *(
        "json_body",
        "body",
        "response_body",
        "response_json",
        "error_body",
        "data",
        "details",
        "info",
        "http_body",
    ),
    *("content", "error_details", "errors", "response_data", "payload", "text"),
)
_HEADERS = ("headers", "litellm_response_headers", "response_headers", "http_headers")
_WORDS = ("error_code", "code", "error_type", "error", "type", "reason")
"""Attributes in which an SDK keeps the code word of a body that it does not keep."""
_FRAMEWORKS = frozenset(
    {
        *(
            "starlette",
            "fastapi",
            "flask",
            "werkzeug",
            "django",
            "rest_framework",
            "ninja",
            "aiohttp",
            "tornado",
        ),
        *(
            "sanic",
            "litestar",
            "falcon",
            "bottle",
            "quart",
            "connexion",
            "pyramid",
            "cherrypy",
            "robyn",
            "blacksheep",
        ),
        *("click", "typer", "pydantic", "pydantic_core", "grpc", "amends"),
    }
)
"""Packages whose exceptions with a status are what the application answers with, or which other modules read."""
_HOLDERS = ("response", "raw_response", "meta", "resp", "http_response")


def usual(exc: BaseException) -> dict[str, object] | None:
    """Read the attributes that most SDKs use."""
    status = status_of(exc)
    body = body_of(exc)
    if status is None or (status < 400 and isinstance(body, dict) and "ok" not in body):
        if not isinstance(body, dict):
            return None
        # An event of a stream: the SDKs keep the error object without its wrapper.
        return {"body": body if "error" in body else {"error": body}}
    return {"status": status, "headers": headers_of(exc), "body": body}


def unlisted(exc: BaseException) -> dict[str, object] | None:
    """
    Read the response that an exception of an SDK carries which no table names; None for any other exception.

    A status of a failure is needed, or a code word in a class of an installed package. `status` and `code` are other things in many classes, so they count only beside headers or
    a body. Exceptions of the application's own web framework are answers that it gives, and none that it got.
    """
    roots = {base.__module__.partition(".")[0] for base in type(exc).__mro__}
    if not _FRAMEWORKS.isdisjoint(roots):
        return None
    if roots <= stdlib_module_names - {"__main__"}:
        return _framed(exc)
    status = status_of(exc)
    if status is None:
        return _code_alone(exc)
    if status < _FAILED:
        return None
    headers, body = headers_of(exc), body_of(exc)
    if isinstance(body, (bytes, str)) and body.lstrip()[:1] not in _STARTS:
        body = None
    carried = bool(headers) or body is not None
    if body is None:
        body = _parsed_body(exc)
    wait = next((value for name in _WAITS if isinstance(value := attribute(exc, name), (int, float))), None)
    if not headers and wait is not None and not isinstance(wait, bool):
        headers = {"retry-after": str(wait)}
    # A bare number may be anything's: the application's own exceptions have a `status_code`, too. One under a name that means
    # nothing else counts in a class of an installed package.
    plain_name = status_of(exc, without=_OFTEN_OTHERS) is not None
    if not headers and body is None and not (plain_name and is_installed(type(exc).__module__)):
        return None
    is_problem = isinstance(body, dict) and "title" in body
    if not carried and not is_problem and not plain_name:
        return None
    return {"status": status, "headers": headers, "body": body, "carried": carried}


def _code_alone(exc: BaseException) -> dict[str, object] | None:
    """Read the code word of an SDK that keeps no status (hcloud, postgrest), beside a message; None in the application's classes."""
    said = next((value for name in _CODES if isinstance(value := attribute(exc, name), str) and value), None)
    if (
        said is None
        or not isinstance(attribute(exc, "message"), str)
        or not is_installed(type(exc).__module__)
    ):
        return None
    return {"body": {"error": {"code": said}}, "carried": False}


_CODES = ("error_code", "code")


@lru_cache(maxsize=1024)
def is_installed(module: str) -> bool:
    """
    Return whether a module belongs to an installed package, and not to the application.

    >>> is_installed("msgspec"), is_installed("__main__")
    (True, False)
    """
    home = sys.modules.get(module.partition(".")[0])
    path = getattr(home, "__file__", None) or next(iter(getattr(home, "__path__", ())), "")
    return not {"site-packages", "dist-packages"}.isdisjoint(PurePath(str(path)).parts)


_FRAME = re.compile(r"(?:Error code: |Request failed with status code )([45][0-9]{2})(?:: | - |$)")
_MAX_TEXT = 65536


def _framed(exc: BaseException) -> dict[str, object] | None:
    """
    Read an exception of a built-in class that an installed package raised with the answer as its text (exa_py: ValueError).

    The text has to be a frame that SDKs write, with nothing or JSON after it. It stays in the process.
    """
    place = exc.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    said = exc.args[0] if len(exc.args) == 1 else None
    if place is None or not isinstance(said, str) or len(said) > _MAX_TEXT:
        return None
    frame = _FRAME.match(said)
    if frame is None or not is_installed(str(place.tb_frame.f_globals.get("__name__"))):
        return None
    rest = said[frame.end() :]
    try:
        body = read(rest) if rest else None
    except Unreadable:
        return None
    if body is not None and not isinstance(body, (dict, list)):
        return None
    return {"status": int(frame[1]), "headers": {}, "body": body, "carried": False}


def _parsed_body(exc: BaseException) -> dict[str, object] | None:
    """Return the members of a body that an SDK keeps one by one: those of RFC 9457, or code words."""
    members = {name: value for name in _PROBLEM if isinstance(value := attribute(exc, name), str)}
    if {"title", "detail"} <= members.keys():
        return {**members, "status": attribute(exc, "status")}
    words = {name: value for name in _WORDS if isinstance(value := attribute(exc, name), str)}
    return {"error": words} if words else None


_PROBLEM = ("type", "title", "detail", "instance")
_WAITS = ("retry_after", "retry_after_seconds", "retry_after_s", "backoff")


_FAILED = 400
_STARTS = frozenset({"{", "[", "<", b"{", b"[", b"<"})


def status_of(exc: BaseException, *, without: frozenset[str] = frozenset()) -> int | None:
    """Return the HTTP status of an exception or of its response, or None."""
    for holder in (exc, *(attribute(exc, name) for name in _HOLDERS)):
        for name in _STATUSES if holder is not None else ():
            value = None if name in without else attribute(holder, name)
            if isinstance(value, str) and value.isdecimal() and len(value) == 3:
                value = int(value)
            if isinstance(value, int) and not isinstance(value, bool) and 200 <= value <= 599:
                return int(value)
    return None


def body_of(exc: BaseException) -> object:
    """
    Return the body that an exception or its response keeps, or None.

    A failed response that was read has it whole; many SDKs keep only the error object inside it.
    """
    response = attribute(exc, "response")
    for name in ("content", "_content") if (status_of(exc) or 0) >= 400 else ():
        sent = attribute(response, name)
        if isinstance(sent, bytes) and sent.lstrip()[:1] == b"{":
            return sent
    for name in _BODIES:
        value = attribute(exc, name)
        if isinstance(value, (bytes, str)):
            try:
                value = read(value)
            except Unreadable:
                continue
        if isinstance(value, (Mapping, list)) and value:
            return value
    for name in ("data", "content", "_content", "text", "body"):
        value = attribute(response, name)
        if isinstance(value, (Mapping, bytes, str)) and value:
            return value
    return None


def headers_of(exc: BaseException) -> object:
    """Return the headers that an exception or its response keeps."""
    for holder in (exc, *(attribute(exc, name) for name in _HOLDERS)):
        for name in _HEADERS if holder is not None else ():
            value = attribute(holder, name)
            if isinstance(value, Mapping) or hasattr(value, "items"):
                return dict(value.items())
    return {}
