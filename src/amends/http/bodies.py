"""
Error responses that say little: what frameworks send by themselves, read so that it can be said better.

Only plain forms are touched: no body, plain text, a page nobody asked for, `{"detail": …}` as FastAPI and Django REST
framework write it. A body that an application made for its callers is left alone.
"""

from __future__ import annotations

from typing import Any

import msgspec

from amends.core.fault import Fault
from amends.http.application_errors import of_status, of_validation
from amends.http.negotiation import HTML

__all__ = ["LIMIT", "improved", "rewritable"]

LIMIT = 65536
"""Bytes of a body that are looked at; a larger one was made on purpose."""


def rewritable(status: int, content_type: str, form: str, encoding: str | None = None) -> bool:
    """Whether an error response may be one that says little, by what is known before its body."""
    if status < 400:
        return False
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "text/html":
        return form != HTML
    if encoding is not None and encoding.lower() != "identity":
        # What it says is packed already, and nobody packs what says little.
        return False
    return kind in {"", "text/plain", "application/json"}


def improved(status: int, content_type: str, body: bytes) -> Fault | None:
    """What the response says, as a fault; None where it is the application's own answer and stays."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/json":
        return _from_json(status, body)
    if kind == "text/html":
        # Markup is for people, and a debug page would show everything.
        return of_status(status)
    text = body.decode("utf-8", "replace").strip() if body else ""
    return of_status(status, text if "\n" not in text else None)


def _from_json(status: int, body: bytes) -> Fault | None:
    try:
        value: Any = msgspec.json.decode(body) if body else {}
    except (msgspec.DecodeError, UnicodeError):
        return None
    if value in ({}, None):
        return of_status(status)
    if not isinstance(value, dict) or set(value) != {"detail"}:
        return None
    detail = value["detail"]
    if isinstance(detail, str):
        return of_status(status, detail)
    if isinstance(detail, list) and detail and all(_is_mistake(item) for item in detail):
        return of_validation(((item["loc"], item["type"]) for item in detail), status)
    return None


def _is_mistake(item: Any) -> bool:
    """One entry of FastAPI's validation errors."""
    return isinstance(item, dict) and isinstance(item.get("loc"), list) and isinstance(item.get("type"), str)
