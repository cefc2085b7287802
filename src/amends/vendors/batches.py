"""
Answers to several operations at once: batches and bulk requests, of which each part has a status or an error of its own.

If all parts failed in the same way, it is a failure of the call; otherwise each part is decided by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from amends.core.enums import Actor, Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.meanings import INTERNAL
from amends.core.wire import Unreadable
from amends.core.wire import read as read_json
from amends.vendors.conditions import condition, every, first, matches, values
from amends.vendors.evidence import Evidence
from amends.vendors.reading import build, read, read_bare
from amends.vendors.registry import index

__all__ = [
    "document_of",
    "in_batch",
    "in_collection",
    "in_lines",
    "in_list",
    "multipart",
    "of_calls",
    "partial",
]

Waiter = Callable[[Mapping[str, str]], "float | None"]


def in_batch(body: dict[str, object] | list[object], quoted: Waiter | None) -> Fault | None:
    """Return the fault of a document that lists the results of a batch, as a service file describes it, or None."""
    rule = index().parts.best(body)
    if rule is None:
        return None
    spec, vendor = rule.spec, rule.vendor.name
    items = [item for item in values(body, spec["items"]) if isinstance(item, dict)]
    done = values(body, spec["also"]) if "also" in spec else []
    has_failed = every(spec["failed"]) if "failed" in spec else None
    faults = []
    for item in items:
        if has_failed is not None and not has_failed(item):
            continue
        status = _status_of(item, spec)
        if "body" not in spec:
            document = document_of(spec.get("error", "."), item)
            found = (
                None if document is None else read(status, {}, document, vendor=vendor, known_by_shape=True)
            )
            faults.append(found or build(None, status, Evidence(), vendor, None, None, None))
        elif status >= _FAILED and spec["body"] in item:
            faults.append(_part(status, item[spec["body"]], _wait_of(item.get("headers"), quoted)))
    if not faults:
        return None
    return partial(faults) if spec.get("partial") else _of_parts(faults, len(items) + len(done))


_FAILED = 400


def _status_of(item: dict[str, object], spec: Mapping[str, Any]) -> int:
    """Return the HTTP status of an item: the rule's own, or where the rule says that it is; 0 if there is none."""
    status = spec.get("status", _FAILED)
    if isinstance(status, str):
        status = first(item, status)
    for source, other in spec.get("status_if", {}).items():
        if condition(source)(item):
            status = other
    return status if isinstance(status, int) and not isinstance(status, bool) and status <= _HIGHEST else 0


_HIGHEST = 599


def document_of(error: str | Mapping[str, Any], body: dict[str, object]) -> dict[str, object] | None:
    """
    Return the object that is read as an error, from the place or by the members that a rule names; None if there is none.

    >>> document_of({"code": "result", "message": "result"}, {"result": "Max rate limit reached"})
    {'error': {'code': 'Max_rate_limit_reached', 'message': 'Max rate limit reached'}}
    """
    if isinstance(error, str):
        found = first(body, error)
        return found if isinstance(found, dict) else None
    if "error" in error:
        return {"error": first(body, error["error"])}
    if "name" in error:
        code: object = next((name for name in body if matches(error["name"], name)), None)
    else:
        code = error.get("say") or first(body, error["code"])
    if isinstance(code, str):
        code = code[:_LONGEST].replace(" ", "_")
    message = first(body, error["message"]) if "message" in error else None
    return {"error": {"code": code, "message": message}}


_LONGEST = 96
"""Characters of a code word."""


def in_collection(items: list[object]) -> Fault | None:
    """Return the fault of Salesforce's collections: [{"id": …, "success": false, "errors": [{"statusCode": …}]}]."""
    faults = []
    for item in items[:1000]:
        if not isinstance(item, dict) or "success" not in item:
            return None
        errors = item.get("errors")
        if not isinstance(errors, list):
            return None
        first = errors[0] if errors else None
        if item["success"] is False and isinstance(first, dict) and isinstance(first.get("statusCode"), str):
            found = read(400, {}, {**first, "code": first["statusCode"]})
            if found is not None:
                faults.append(found)
    return _of_parts(faults, len(items)) if faults else None


def _parts(items: list[object], name: str, inner: str, quoted: Waiter | None) -> list[Fault]:
    """Return the failures of a batch: each part has a status under `name`, and a body under `inner`."""
    faults = []
    for item in items[:1000]:
        if not isinstance(item, dict) or inner not in item:
            continue
        status = item.get(name)
        if isinstance(status, int) and not isinstance(status, bool) and 400 <= status <= 599:
            faults.append(_part(status, item[inner], _wait_of(item.get("headers"), quoted)))
    return faults


def _wait_of(headers: object, quoted: Waiter | None) -> float | None:
    """Return the wait that the headers of a part ask for, in seconds."""
    if not isinstance(headers, dict) or quoted is None:
        return None
    return quoted({str(name).lower(): str(value) for name, value in headers.items()})


def _part(status: int, body: object, wait: float | None) -> Fault:
    if isinstance(body, str):
        try:
            body = read_json(body)
        except Unreadable:
            body = None
    found = read(status, {}, body, wait=wait)
    return found or build(None, status, Evidence(answered=status), None, None, wait, None)


_STATUS_LINE = re.compile(r"(?m)^HTTP/[\d.]+ ([1-5]\d\d)\b")


def in_list(items: list[object], quoted: Waiter | None) -> Fault | None:
    """Return the fault of Meta's batches: [{"code": 200, "headers": [...], "body": "{...}"}, null]."""
    if not items or not all(each is None or _is_answer(each) for each in items[:1000]):
        return None
    parts = _parts(items, "code", "body", quoted)
    return _of_parts(parts, len(items)) if parts else None


def _is_answer(item: object) -> bool:
    return isinstance(item, dict) and isinstance(item.get("code"), int) and isinstance(item.get("body"), str)


def in_lines(text: str) -> Fault | None:
    """Return the fault of the results of a batch of model calls: a line for each."""
    items: list[object] = []
    for line in text.splitlines()[:10_000]:
        try:
            items.append(read_json(line))
        except Unreadable:
            continue
    return of_calls(items)


def of_calls(items: list[object]) -> Fault | None:
    """Return the fault of the results of a batch of OpenAI or Anthropic, each with the `custom_id` of its request."""
    faults, total = [], 0
    for item in items:
        if not isinstance(item, dict) or "custom_id" not in item:
            continue
        total += 1
        result, response = item.get("result"), item.get("response")
        error = result.get("error") if isinstance(result, dict) else item.get("error")
        status = response.get("status_code") if isinstance(response, dict) else None
        if isinstance(response, dict) and isinstance(status, int) and 400 <= status <= 599:
            faults.append(_part(status, response.get("body"), None))
        elif isinstance(error, dict) and any(each is not None for each in error.values()):
            inner = error if isinstance(error.get("error"), dict) else {"error": error}
            found = read_bare(inner)
            faults.append(found or build(INTERNAL, None, Evidence(), None, None, None, None))
    return _of_parts(faults[:1000], total) if faults else None


_WAIT_LINE = re.compile(r"(?im)^retry-after:[ \t]*([^\r\n]{1,64})")


def multipart(text: str, quoted: Waiter | None = None) -> Fault | None:
    """Read a batch in multipart/mixed: every part holds a response with its own status line."""
    pieces = _STATUS_LINE.split(text)[1:]
    faults = []
    for status, rest in list(zip(pieces[::2], pieces[1::2], strict=False))[:1000]:
        if int(status) >= 400:
            start, end = rest.find("{"), rest.rfind("}")
            header = _WAIT_LINE.search(rest[: start if start >= 0 else None])
            wait = None if header is None else _wait_of({"retry-after": header[1].strip()}, quoted)
            faults.append(_part(int(status), rest[start : end + 1] if 0 <= start < end else None, wait))
    return _of_parts(faults, len(pieces) // 2) if faults else None


def _of_parts(faults: list[Fault], total: int) -> Fault:
    """Return the fault of a batch. If all parts failed in the same way, it is a failure of the whole call."""
    if len(faults) < total or len({each.code for each in faults}) > 1:
        return partial(faults)
    waits = [each.retry_after for each in faults if each.retry_after is not None]
    first = faults[0]
    return replace(
        first, retry_after=max(waits, default=None), errors=tuple(faults) if len(faults) > 1 else ()
    )


def partial(faults: list[Fault]) -> Fault:
    """Return the fault of an answer that failed in part: each part is decided by itself."""
    return Fault(
        code="PARTIAL_FAILURE",
        message="Some items failed, the others succeeded",
        recovery=Recovery.CORRECTABLE,
        vocabulary="http",
        errors=tuple(faults),
        status=207,
        actor=Actor.CALLER,
        executed=Executed.YES,
        origin=Origin("vendor", "body"),
    )
