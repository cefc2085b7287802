"""
Which request a call made, for logs and notes: its method and its URL without query.

They come from the operation, or from the request that the exceptions and responses of HTTP libraries carry (httpx,
requests, aiohttp, urllib3, urllib).
"""

from __future__ import annotations

from typing import Any

from amends.core.operation import Operation

__all__ = ["plain_url", "request_facts"]

_LONGEST = 300


def request_facts(operation: Operation, error: Any, result: Any) -> tuple[str, str]:
    """Return the method and the URL of a call, each empty if it is not known."""
    if operation.url:
        return operation.method, plain_url(operation.url)
    from amends.foreign.safe_attr import attribute

    for holder in (error, result):
        if holder is None:
            continue
        response = attribute(holder, "response")
        for request in (
            attribute(holder, "request"),
            attribute(holder, "request_info"),
            attribute(response, "request"),
            attribute(response, "request_info"),
            holder,
        ):
            method, url = attribute(request, "method"), attribute(request, "url")
            if url is not None and not callable(url):
                return method.upper() if isinstance(method, str) else operation.method, plain_url(url)
    return operation.method, ""


def plain_url(url: Any) -> str:
    """
    Return a URL without user, query and fragment, and without parts that look like credentials.

    >>> plain_url("https://ada:secret@api.example.com/v1/orders?token=x#top")
    'https://api.example.com/v1/orders'
    """
    from amends.core.redaction import SECRETS, redact

    try:
        text = str(url)[: 4 * _LONGEST]
    except Exception:  # noqa: BLE001 - an object of another library
        return ""
    text = text.partition("?")[0].partition("#")[0]
    scheme, separator, rest = text.partition("://")
    if separator:
        host, slash, path = rest.partition("/")
        text = f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
    text = "".join(each for each in text if each.isprintable())
    return redact(text, kinds=SECRETS)[:_LONGEST]
