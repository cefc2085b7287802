"""
Exceptions of the SDKs of services, as responses: status, headers and body from their attributes.

An SDK keeps the response in attributes of its own, sometimes without the response object: during a stream there is only
the error object of an event. The attributes are read by name and nothing is imported. What is found is read as `extract`
reads a response of that vendor; the text of the exception and of the body is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from amends.carriers.extraction import examine
from amends.core.fault import Fault
from amends.core.vocabularies.http import VOCABULARY
from amends.core.wire import Unreadable, plain, read
from amends.foreign.classes import names
from amends.foreign.safe_attr import attribute
from amends.vendors.meaning import is_known

__all__ = ["sdk_fault", "without_text"]

# The first parts of a module's name → the vendor, or None for SDKs that are used with many services.
SDKS: dict[str, str | None] = {
    "openai": None,
    "anthropic": "anthropic",
    "groq": "groq",
    "together": "together",
    "cerebras": "cerebras",
    "litellm": None,
    "pydantic_ai": None,
    "google.genai": "google",
    "google.api_core": "google",
    "googleapiclient": "google",
    "vertexai": "google",
    "azure": "azure",
    "mistralai": "mistral",
    "cohere": "cohere",
    "ollama": "ollama",
    "huggingface_hub": "huggingface",
    "stripe": "stripe",
    "twilio": "twilio",
    "slack_sdk": "slack",
    "github": "github",
    "gitlab": "gitlab",
    "kubernetes": "kubernetes",
    "kubernetes_asyncio": "kubernetes",
    "elasticsearch": "elasticsearch",
    "elastic_transport": "elasticsearch",
    "opensearchpy": "elasticsearch",
    "notion_client": "notion",
    "discord": "discord",
    "telegram": "telegram",
    "databricks": "databricks",
    "simple_salesforce": "salesforce",
    "hubspot": "hubspot",
    "square": "square",
    "python_http_client": "sendgrid",
    "docker": "docker-registry",
    "jira": "atlassian",
    "atlassian": "atlassian",
    "cloudflare": "cloudflare",
    "tweepy": "x",
    "prawcore": "reddit",
    "elevenlabs": "elevenlabs",
    "deepgram": "deepgram",
    "shopify": "shopify",
    "supabase": "supabase",
    "postgrest": "supabase",
    "gql": "graphql",
}

_STATUSES = ("status_code", "http_status", "status", "code")
_BODIES = ("json_body", "body", "data", "details", "info", "http_body", "content", "error_details", "errors")
_HEADERS = ("headers", "litellm_response_headers")
_HOLDERS = ("response", "raw_response", "meta", "resp", "http_response")


def sdk_fault(exc: BaseException) -> Fault | None:
    """Return the fault of an SDK's exception by its attributes, or None."""
    found = _sdk(type(exc))
    if found is None:
        return None
    root, vendor = found
    make = _SPECIAL.get(root, _usual)
    response = make(exc)
    if response is None:
        return None
    via = "http" if "status" in response else None
    document = response if via else response["body"]
    fault = examine(plain(document), via, vendor=vendor, in_success=root in _IN_SUCCESS)[1].fault
    return None if fault is None else without_text(fault)


_IN_SUCCESS = frozenset({"slack_sdk", "gql", "simple_salesforce"})


def without_text(fault: Fault) -> Fault:
    """Return a vendor's fault with our own message, and without words that no table has. Faults in one of our formats stay as they are."""
    if fault.origin is None or fault.origin.dialect in _OWN:
        return fault
    errors = tuple(without_text(child) for child in fault.errors)
    # A code word is a fact only if it is in a table; any other text stays inside the process.
    word = (fault.details or {}).get("code")
    details = fault.details if isinstance(word, str) and is_known(word) else None
    message = VOCABULARY.row(fault.code, fault.status).message
    return replace(fault, message=message, details=details, errors=errors)


_OWN = frozenset({"problem", "adcp", "task", "arcp", "envelope", "cli", "mcp", "a2a", "jsonrpc"})


def _sdk(cls: type) -> tuple[str, str | None] | None:
    """Return the SDK of the nearest class along the MRO that belongs to one, with its vendor."""
    for name in names(cls):
        first, _, rest = name.partition(".")
        both = f"{first}.{rest.partition('.')[0]}"
        for root in (both, first):
            if root in SDKS:
                return root, SDKS[root]
    return None


def _usual(exc: BaseException) -> dict[str, Any] | None:
    """Read the attributes that most SDKs use."""
    status = _status(exc)
    body = _body(exc)
    if status is None or (status < 400 and isinstance(body, dict) and "ok" not in body):
        if not isinstance(body, dict):
            return None
        # An event of a stream: the SDKs keep the error object without its wrapper.
        return {"body": body if "error" in body else {"error": body}}
    return {"status": status, "headers": _headers(exc), "body": body}


def _status(exc: BaseException) -> int | None:
    for holder in (exc, *(attribute(exc, name) for name in _HOLDERS)):
        for name in _STATUSES if holder is not None else ():
            value = attribute(holder, name)
            if isinstance(value, str) and value.isdecimal() and len(value) == 3:
                value = int(value)
            if isinstance(value, int) and not isinstance(value, bool) and 200 <= value <= 599:
                return int(value)
    return None


def _body(exc: BaseException) -> Any:
    for name in _BODIES:
        value = attribute(exc, name)
        if isinstance(value, (bytes, str)):
            try:
                value = read(value)
            except Unreadable:
                continue
        if isinstance(value, (Mapping, list)) and value:
            return value
    response = attribute(exc, "response")
    for name in ("data", "content", "_content", "text", "body"):
        value = attribute(response, name)
        if isinstance(value, (Mapping, bytes, str)) and value:
            return value
    return None


def _headers(exc: BaseException) -> Any:
    for holder in (exc, *(attribute(exc, name) for name in _HOLDERS)):
        for name in _HEADERS if holder is not None else ():
            value = attribute(holder, name)
            if isinstance(value, Mapping) or hasattr(value, "items"):
                return dict(value.items())
    return {}


def _google(exc: BaseException) -> dict[str, Any] | None:
    """google.api_core: the reason and its metadata; the details are protobuf messages."""
    code = attribute(exc, "code")
    status = int(code) if isinstance(code, int) else None
    if status is None:
        return None
    sent = _body(exc) if attribute(exc, "response") is not None else None
    if isinstance(sent, (str, bytes)):
        # Over REST the response is kept, and says more than the class: ABORTED becomes Conflict.
        return {"status": status, "headers": _headers(exc), "body": sent}
    details: list[Any] = []
    reason, metadata = attribute(exc, "reason"), attribute(exc, "metadata")
    if isinstance(reason, str):
        details.append(
            {"reason": reason, "metadata": dict(metadata) if isinstance(metadata, Mapping) else {}}
        )
    given = attribute(exc, "details")
    for item in given if isinstance(given, (list, tuple)) else ():
        delay = attribute(item, "retry_delay")
        seconds = attribute(delay, "seconds")
        if isinstance(seconds, int) and not isinstance(seconds, bool):
            details.append({"retryDelay": {"seconds": seconds, "nanos": attribute(delay, "nanos") or 0}})
        elif isinstance(item, Mapping):
            details.append(item)
    name = attribute(attribute(exc, "grpc_status_code"), "name")
    if not isinstance(name, str):
        # Without grpc installed there is only the class: ResourceExhausted is RESOURCE_EXHAUSTED.
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(exc).__name__).upper()
    errors = attribute(exc, "errors")
    error: dict[str, Any] = {
        "code": status,
        "status": name,
        "details": details,
    }
    if isinstance(errors, (list, tuple)):
        error["errors"] = [item for item in errors if isinstance(item, Mapping)]
    return {"status": status, "headers": _headers(exc), "body": {"error": error}}


def _azure(exc: BaseException) -> dict[str, Any] | None:
    """azure.core: the OData error object; Storage adds its code as an attribute."""
    status = _status(exc)
    if status is None:
        return None
    error = attribute(exc, "error")
    word = attribute(exc, "error_code") or attribute(error, "code")
    inner = attribute(error, "innererror")
    given = attribute(error, "details")
    codes = [attribute(item, "code") for item in given[:8]] if isinstance(given, list) else []
    body = {
        "error": {
            "code": str(attribute(word, "value") or word) if word is not None else None,
            "innererror": inner if isinstance(inner, Mapping) else None,
            "target": attribute(error, "target"),
            "details": [{"code": code} for code in codes if isinstance(code, str)],
        }
    }
    return {"status": status, "headers": _headers(exc), "body": body}


def _twilio(exc: BaseException) -> dict[str, Any] | None:
    status, code = _status(exc), attribute(exc, "code")
    if status is None:
        return None
    return {
        "status": status,
        "headers": {},
        "body": {"code": code, "message": "", "more_info": "", "status": status},
    }


def _telegram(exc: BaseException) -> dict[str, Any] | None:
    wait = attribute(exc, "_retry_after") or attribute(exc, "retry_after")
    seconds = attribute(wait, "total_seconds")
    amount = seconds() if callable(seconds) else wait
    if not isinstance(amount, (int, float)) or isinstance(amount, bool):
        return None
    return {
        "status": 429,
        "headers": {},
        "body": {"ok": False, "error_code": 429, "parameters": {"retry_after": amount}},
    }


def _databricks(exc: BaseException) -> dict[str, Any] | None:
    word = attribute(exc, "error_code")
    if not isinstance(word, str):
        return None
    return {"body": {"error_code": word, "retry_after": attribute(exc, "retry_after_secs")}}


def _litellm(exc: BaseException) -> dict[str, Any] | None:
    """litellm: the SDK's exception that it converts is its context, and has the body."""
    found = _usual(exc)
    inner: BaseException | None = exc
    for _ in range(_DEPTH):
        if found is None or found["body"] is not None or inner is None:
            break
        inner = inner.__cause__ or inner.__context__
        body = None if inner is None or _sdk(type(inner)) is None else _body(inner)
        if inner is not None and isinstance(body, Mapping) and _status(inner) == found.get("status"):
            return {**found, "body": body if "error" in body else {"error": body}}
    return found


_DEPTH = 4

_SPECIAL: dict[str, Callable[[BaseException], dict[str, Any] | None]] = {
    "google.api_core": _google,
    "litellm": _litellm,
    "azure": _azure,
    "twilio": _twilio,
    "telegram": _telegram,
    "databricks": _databricks,
}
