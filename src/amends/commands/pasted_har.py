"""HAR files, as browsers save them: the last response that failed."""

from __future__ import annotations

from base64 import b64decode

from amends.carriers.extraction import examine
from amends.core.reading import Reading
from amends.http.key_support import KEY
from amends.vendors.registry import vendor_of_origin

__all__ = ["har_response"]

_MAX_ENTRIES = 1000
"""Entries that are searched for a failure, from the last one back."""


def har_response(value: object) -> dict[str, object] | Reading | None:
    """
    Return the last failed response of a HAR file, the last one if none failed, or None if the value is no HAR file.

    Successful answers are looked into if they are event streams, or come from the host of a known vendor.

    >>> har_response({"log": {"entries": [{"response": {"status": 503}}]}})
    {'status': 503, 'headers': {}, 'body': None}
    """
    log = value.get("log") if isinstance(value, dict) else None
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(entries, list):
        return None
    last: dict[str, object] | None = None
    for entry in reversed(entries[-_MAX_ENTRIES:]):
        response = _response(entry)
        if response is None:
            continue
        last = last or response
        status, body = response["status"], response["body"]
        if isinstance(status, int) and status >= 400:
            return response
        vendor = _vendor(entry)
        start = body[:6].decode("ascii", "replace") if isinstance(body, bytes) else body
        if vendor is None and not (isinstance(start, str) and start.startswith(("data:", "event:"))):
            continue
        reading = examine(response, "http", vendor=vendor, in_success=True)[1]
        if reading.failed and reading.fault is not None:
            return reading
    return last


def _response(entry: object) -> dict[str, object] | None:
    response = entry.get("response") if isinstance(entry, dict) else None
    status = response.get("status") if isinstance(response, dict) else None
    if not isinstance(response, dict) or not isinstance(status, int):
        return None
    headers = _headers(response)
    # The request shows that there was a key. Most services do not send it back.
    sent = _headers(entry.get("request") if isinstance(entry, dict) else None)
    headers |= {name: value for name, value in sent.items() if name.lower() == KEY.lower()}
    return {"status": status, "headers": headers, "body": _body(response.get("content"))}


def _headers(message: object) -> dict[str, str]:
    """Return the headers of a request or a response."""
    listed = message.get("headers") if isinstance(message, dict) else None
    return {
        item["name"]: item["value"]
        for item in (listed if isinstance(listed, list) else ())
        if isinstance(item, dict) and isinstance(item.get("name"), str) and isinstance(item.get("value"), str)
    }


def _body(content: object) -> str | bytes | None:
    text = content.get("text") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(text, str):
        return None
    if content.get("encoding") != "base64":
        return text
    try:
        return b64decode(text)
    except ValueError:
        return None


def _vendor(entry: object) -> str | None:
    request = entry.get("request") if isinstance(entry, dict) else None
    url = request.get("url") if isinstance(request, dict) else None
    return vendor_of_origin(url) if isinstance(url, str) else None
