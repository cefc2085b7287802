"""
Read the error responses that frameworks produce by themselves, so that they can be sent as problem documents.

Only unstructured forms are read: an empty body, plain text, an HTML page that the client did not ask for,
`{"detail": …}` as FastAPI, Litestar and Django REST framework write it, and Falcon's `{"title": "404 Not Found"}`. A body
that the application designed is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from amends.core.fault import Fault
from amends.foreign.safe_attr import attribute
from amends.http.application_errors import (
    PHRASES,
    fault_for,
    fault_from_status,
    states,
    with_header_wait,
)
from amends.http.request_info import HTML, RequestInfo, preferred_form
from amends.http.responses import RawResponse, Settings, error_response
from amends.http.validation import Mistake, fault_from_validation, pydantic_mistake

__all__ = ["LIMIT", "fault_from_body", "may_rewrite", "rewrite"]

LIMIT = 65536
"""Bytes of a body that are read; a larger one is taken for the application's own."""


def may_rewrite(status: int, content_type: str, accept: str | None, encoding: str | None = None) -> bool:
    """
    Return whether a response may be an unstructured error, by what is known before its body.

    Args:
        status: the response's status.
        content_type: the response's content type, or "".
        accept: the request's `Accept` header, or None.
        encoding: the response's content encoding, or None.

    """
    if status < 400:
        return False
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == "text/html":
        return preferred_form(accept) != HTML
    if encoding is not None and encoding.lower() != "identity":
        # A compressed body cannot be read here, and frameworks do not compress short error texts.
        return False
    return media_type in {"", "text/plain", "application/json"}


def rewrite(
    status: int,
    headers: Iterable[tuple[str, str]],
    body: bytes,
    request: RequestInfo,
    settings: Settings,
    cause: BaseException | None = None,
) -> tuple[Fault, RawResponse] | None:
    """
    Return the fault and the problem document to send instead of an unstructured error response; None to keep it.

    `cause` is the exception that the framework answered with this response. The words of one that states this status are its
    author's; of any other failure of the server only the code is sent.
    """
    given = list(headers)
    fields = {name.lower(): value for name, value in given}
    content_type = fields.get("content-type", "")
    if len(body) > LIMIT and not content_type.startswith("text/html"):
        return None
    if not may_rewrite(status, content_type, request.accept, fields.get("content-encoding")):
        return None
    raised = cause if cause is not None and states(cause, status) else None
    fault = fault_from_body(status, content_type, body, raised)
    if fault is None:
        return None
    if raised is not None:
        cause = None
    if cause is not None:
        fault = fault_for(cause, request.method, settings)
    fault = with_header_wait(fault, fields)
    return fault, error_response(fault, request, settings, headers=given, cause=cause)


def fault_from_body(
    status: int, content_type: str, body: bytes, raised: BaseException | None = None
) -> Fault | None:
    """
    Return the fault that an error response describes; None if the body is the application's own and stays.

    `raised` is the exception that the application raised to answer with this status, if that is known.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == "application/json":
        return _fault_from_json(status, body, raised)
    if media_type == "text/html":
        # The text of a page is not copied: a debug page contains source code and settings.
        return fault_from_status(status)
    text = body.decode("utf-8", "replace").strip() if body else ""
    if text.startswith("{"):
        # Litestar writes its errors as JSON with the media type of the route, which is plain text for a string.
        fault = _fault_from_json(status, body, raised)
        if fault is not None:
            return fault
    return fault_from_status(status, text if "\n" not in text else None, raised)


def _of_exception(status: int, detail: str, raised: BaseException | None) -> Fault:
    """
    Return the fault of a body that a framework wrote for an exception.

    The words of a failure of the server are the author's only if the exception is known: they may be those of a library.
    """
    if raised is not None:
        # Litestar does not write the words of a 500.
        words = attribute(raised, "detail")
        return fault_from_status(status, words if isinstance(words, str) else detail, raised)
    return fault_from_status(status, None if status >= 500 else detail)


def _fault_from_json(status: int, body: bytes, raised: BaseException | None) -> Fault | None:
    try:
        value: object = msgspec.json.decode(body) if body else {}
    except (msgspec.DecodeError, UnicodeError):
        return None
    if value in ({}, None):
        return fault_from_status(status)
    if not isinstance(value, dict):
        return None
    if _is_status_line(status, value.get("title")) and set(value) <= {"title", "description"}:
        description = value.get("description", "")
        return _of_exception(status, description, raised) if isinstance(description, str) else None
    if "detail" not in value:
        return None
    if value.get("status_code") == status and set(value) <= {"status_code", "detail", "extra"}:
        return _fault_from_litestar(status, value, raised)
    if set(value) != {"detail"}:
        return None
    detail = value["detail"]
    if isinstance(detail, str):
        return _of_exception(status, detail, raised)
    if isinstance(detail, list) and detail and all(_is_validation_error(item) for item in detail):
        return fault_from_validation(map(pydantic_mistake, detail), status)
    return None


def _is_status_line(status: int, title: object) -> bool:
    """Return whether a title is the status and its phrase, as Falcon writes it: "404 Not Found"."""
    return title == f"{status} {PHRASES.get(status)}"


def _fault_from_litestar(status: int, value: dict[str, object], raised: BaseException | None) -> Fault | None:
    """Return the fault of Litestar's `{"status_code", "detail", "extra"}`; None if `extra` is the application's own."""
    detail, extra = value["detail"], value.get("extra") or []
    if not isinstance(detail, str) or not isinstance(extra, list):
        return None
    if not extra:
        return _of_exception(status, detail, raised)
    if not all(isinstance(item, dict) and isinstance(item.get("message"), str) for item in extra):
        return None
    return fault_from_validation(
        (
            Mistake(
                tuple(
                    step
                    for step in (item.get("source"), *str(item.get("key", "")).split("."))
                    if isinstance(step, str) and step
                ),
                rule=item["message"],
            )
            for item in extra
        ),
        status,
    )


def _is_validation_error(item: object) -> bool:
    """Return whether the value is one entry of FastAPI's validation errors."""
    return isinstance(item, dict) and isinstance(item.get("loc"), list) and isinstance(item.get("type"), str)
