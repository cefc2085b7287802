"""
Answers to several operations at once: batches and bulk requests, of which each part has a status or an error of its own.

If all parts failed in the same way, it is a failure of the call; otherwise each part is decided by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from amends.core.enums import Actor, Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.wire import Unreadable
from amends.core.wire import read as read_json
from amends.vendors.evidence import Evidence
from amends.vendors.kinds import INTERNAL
from amends.vendors.reading import build, read, read_bare

__all__ = ["bulk", "in_batch", "in_collection", "in_lines", "in_list", "multipart", "of_calls", "partial"]

Waiter = Callable[[Mapping[str, str]], "float | None"]

_STATUSES = (
    # (array, status of a part, body of a part)
    ("responses", "status", "body"),  # Microsoft Graph
    ("compositeResponse", "httpStatusCode", "body"),  # Salesforce
)
_COUNTS = (
    # (number of failed parts, array); a failed part has an ErrorCode
    ("FailedRecordCount", "Records"),  # Kinesis
    ("FailedPutCount", "RequestResponses"),  # Firehose
    ("FailedEntryCount", "Entries"),  # EventBridge
)


def in_batch(body: dict[str, object], quoted: Waiter | None) -> Fault | None:
    """Return the fault of an object that lists the results of a batch, or None."""
    for array, status, inner in _STATUSES:
        items = body.get(array)
        if isinstance(items, list) and (parts := _parts(items, status, inner, quoted)):
            return _of_parts(parts, len(items))
    results = body.get("results")
    if body.get("hasErrors") is True and isinstance(results, list):
        # Salesforce.
        parts = _parts(results, "statusCode", "result", quoted)
        return _of_parts(parts, len(results)) if parts else None
    for count, array in _COUNTS:
        items = body.get(array)
        number = body.get(count)
        if isinstance(items, list) and isinstance(number, int) and number > 0:
            faults = [
                _refused(item) for item in items[:1000] if isinstance(item, dict) and item.get("ErrorCode")
            ]
            return _of_parts(faults, len(items)) if faults else None
    entries = body.get("entries")
    if body.get(".tag") == "complete" and isinstance(entries, list):
        # Dropbox.
        faults = [
            found
            for item in entries[:1000]
            if isinstance(item, dict) and item.get(".tag") == "failure"
            if (found := read(409, {}, {"error": item.get("failure")}, vendor="dropbox", known_by_shape=True))
            is not None
        ]
        return _of_parts(faults, len(entries)) if faults else None
    failed, done = body.get("Failed"), body.get("Successful", [])
    if isinstance(failed, list) and isinstance(done, list):
        # SQS and SNS.
        faults = [
            _refused(item)
            for item in failed[:1000]
            if isinstance(item, dict) and "SenderFault" in item and item.get("Code")
        ]
        return _of_parts(faults, len(failed) + len(done)) if faults else None
    return None


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


def _refused(item: dict[str, object]) -> Fault:
    """Return the fault of a part that has a code word and no status."""
    ours = item.get("SenderFault") is not False
    found = read(400 if ours else 500, {}, item, vendor="aws", known_by_shape=True)
    return found or build(None, 400, Evidence(), "aws", None, None, None)


def bulk(items: list[object]) -> Fault | None:
    """Read a bulk answer: `items[].<action>.status` and `.error`."""
    faults = []
    for item in items[:1000]:
        action = next(iter(item.values()), None) if isinstance(item, dict) and len(item) == 1 else None
        if isinstance(action, dict) and isinstance(action.get("error"), dict):
            status = action.get("status")
            found = (
                read(status, {}, {"error": action["error"]})
                if isinstance(status, int) and status >= 400
                else None
            )
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
