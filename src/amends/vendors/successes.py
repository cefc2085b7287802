"""
Failures inside successful answers. Only shapes that a vendor documents; arbitrary JSON is never guessed at.

Many objects describe something that failed without being a failure of the call: a job with `status: failed`, a lint result
with `errors[]`, an object whose `error` has only null members. Those are not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from amends.core.fault import Fault
from amends.core.instants import bounded
from amends.vendors.batches import (
    bulk,
    in_batch,
    in_collection,
    in_lines,
    in_list,
    multipart,
    of_calls,
    partial,
)
from amends.vendors.evidence import Evidence, collect
from amends.vendors.grpc import read_trailers
from amends.vendors.jsonrpc import read_error
from amends.vendors.kinds import INTERNAL, INVALID
from amends.vendors.markup import is_error_document, part_failed
from amends.vendors.meaning import by_words, first_word
from amends.vendors.model import Kind
from amends.vendors.reading import build, own_wait, read, read_bare, sender_of, trace_of
from amends.vendors.registry import index, is_service
from amends.vendors.streams import failure_in, read_binary, read_stream

__all__ = ["read_success"]

Waiter = Callable[[Mapping[str, str]], "float | None"]

_JOBS = frozenset(
    {"status", "state", "conclusion", "job", "jobs", "result", "results", "data", "items", "output"}
)
_OBJECTS = frozenset({"error", "chat.completion", "chat.completion.chunk"})
_OAUTH = frozenset(
    {"error", "error_description", "error_uri", "interval", "error_codes", "timestamp", "trace_id"}
)
_OAUTH_MORE = frozenset({"correlation_id", "suberror", "claims", "message"})
_FLAGS = frozenset("\0\1\2\3")
"""The first characters of Connect's envelopes, in a body that was decoded as text."""
_MAPS = frozenset({"OVER_QUERY_LIMIT", "OVER_DAILY_LIMIT", "REQUEST_DENIED", "INVALID_REQUEST"})


def read_success(
    fields: Mapping[str, str],
    body: object,
    *,
    vendor: str | None = None,
    now: Callable[[], float] | None = None,
    quoted: Waiter | None = None,
) -> Fault | None:
    """Return the fault inside a successful answer, or None. A fault with `executed` yes is about a part of the answer."""
    status = fields.get("grpc-status")
    if status is not None and status != "0":
        return read_trailers(fields)
    if "x-amz-function-error" in fields and isinstance(body, dict):
        # Lambda: the function failed; the answer is what it raised.
        evidence = collect(body, Evidence())
        word = first_word(evidence.words()) or fields["x-amz-function-error"]
        return build(INTERNAL, None, evidence, "aws", word, None, trace_of(fields))
    if isinstance(body, (bytes, str)):
        binary = body if isinstance(body, bytes) else body.encode() if body[:1] in _FLAGS else None
        found = None if binary is None else read_binary(binary, vendor=vendor, now=now)
        if found is not None:
            return found
        text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
        if is_error_document(text):
            return _as_success(read(200, fields, text, vendor=vendor, now=now))
        deleted = part_failed(text)
        if deleted:
            return partial([found for each in deleted if (found := read(400, {}, each)) is not None])
        if "multipart/mixed" in fields.get("content-type", ""):
            return multipart(text, quoted)
        head = text[:4096].lstrip("\ufeff \t\r\n")
        if head.startswith("{") and '"custom_id"' in head:
            return in_lines(text)
        if head.startswith(("data:", "event:", "id:", "retry:", ":", "{", "[")):
            return read_stream(text, vendor=vendor, now=now)
        return None
    if isinstance(body, list):
        saved = in_collection(body) or in_list(body, quoted)
        if saved is not None:
            return saved
        last = body[-1] if body else None
        error = (
            last
            if isinstance(last, dict) and _is_error(last.get("error")) and set(last) <= {"error"}
            else None
        )
        return None if error is None else read_bare(error, vendor=vendor, now=now, quoted=quoted)
    if not isinstance(body, dict):
        return None
    if isinstance(body.get("errors"), (list, bool)):
        found = _with_errors(body, vendor, fields, now)
        if found is not None:
            return replace(found, trace_id=found.trace_id or trace_of(fields))
    batch = of_calls([body]) if "custom_id" in body else in_batch(body, quoted)
    if batch is not None:
        return batch
    document = _document(body, vendor)
    if document is not None:
        fault = read(200, fields, document, vendor=vendor, now=now, quoted=quoted)
        if fault is None and (
            document is not body or "ok" in body or "success" in body or "jsonrpc" not in body
        ):
            evidence = collect(document, Evidence(proved=is_service(vendor)))
            words = evidence.words()
            fault = build(_default(body), evidence.status, evidence, vendor, first_word(words), None, None)
        return _with_phrase(_as_success(fault))
    if "jsonrpc" in body and isinstance(body.get("error"), dict):
        return read_error(body["error"])
    wrong = _user_errors(body, vendor)
    return None if wrong is None else replace(wrong, trace_id=trace_of(fields))


def _as_success(fault: Fault | None) -> Fault | None:
    """Return the fault without the status of the successful answer."""
    if fault is None or fault.status is None or fault.status >= 400:
        return fault
    return replace(fault, status=None)


def _with_phrase(fault: Fault | None) -> Fault | None:
    """Return the fault with its code as sent, if that is a phrase with spaces (see `_by_members`)."""
    word = None if fault is None else (fault.details or {}).get("code")
    if fault is None or not isinstance(word, str) or "_" not in word:
        return fault
    return (
        replace(fault, details={"code": fault.message}) if fault.message.replace(" ", "_") == word else fault
    )


def _default(body: dict[str, object]) -> Kind:
    """The kind of a documented failure whose word is unknown: the request was refused."""
    refused = (
        body.get("ok") is False or body.get("success") is False or "errcode" in body or "base_resp" in body
    )
    return INVALID if refused else INTERNAL


def _is_error(value: object) -> bool:
    """Whether a value is an error object that says something: one whose members are all null is none."""
    return isinstance(value, dict) and any(
        item is not None and not (isinstance(item, str) and not item) for item in value.values()
    )


def _document(body: dict[str, object], vendor: str | None) -> dict[str, object] | None:
    """Return the object to read as an error, if the body has the shape of a documented failure."""
    error = body.get("error")
    if "jsonrpc" in body:
        return None
    if body.get("ok") is False and (isinstance(error, str) or "error_code" in body):
        return body
    if body.get("success") is False and (isinstance(body.get("errors"), list) or "code" in body):
        code = body.get("code")
        running = isinstance(code, str) and code in {"333333", "333334"}
        return body if body.get("errors") or not running else None
    if isinstance(error, dict) and _is_error(error):
        kind = body.get("object")
        if isinstance(kind, str) and kind == "response":
            status = body.get("status")
            return body if isinstance(status, str) and status == "failed" else None
        if not _JOBS.isdisjoint(body) or (
            kind is not None and not (isinstance(kind, str) and kind in _OBJECTS)
        ):
            return None
        says = isinstance(error.get("message"), str) or isinstance(error.get("code"), (str, int))
        return body if says else None
    if isinstance(error, str) and error and set(body) <= _OAUTH | _OAUTH_MORE:
        known = index().vendors
        if any(error in known[name].words or error in known[name].unless for name in ("oauth", "github")):
            return body
    if isinstance(kind := body.get("type"), str) and kind == "ERROR":
        # The last event of a watch of Kubernetes.
        return failure_in("message", body)
    response = body.get("Response")
    if isinstance(response, dict) and _is_error(response.get("Error")) and "RequestId" in response:
        # Tencent Cloud.
        return body
    numbered = _numbered(body) or _by_members(body, vendor)
    if numbered is not None:
        return numbered
    inner = body.get("json")
    if isinstance(inner, dict) and isinstance(inner.get("errors"), list) and inner["errors"]:
        return body
    choice = failure_in("message", {"choices": body.get("choices")})
    if choice is not None:
        return choice
    feedback = body.get("promptFeedback")
    if (
        isinstance(feedback, dict)
        and isinstance(feedback.get("blockReason"), str)
        and not body.get("candidates")
    ):
        reason = feedback["blockReason"]
        word = reason if reason in _BLOCKED else "PROHIBITED_CONTENT"
        return {"error": {"code": word, "message": reason}}
    statement = body.get("status")
    if (
        isinstance(statement, str)
        and statement in _MAPS
        and ("error_message" in body or body.get("results") == [])
    ):
        # Google Maps: the status is a word.
        return {"error": {"code": 200, "status": statement, "message": statement}}
    if (
        isinstance(statement, dict)
        and statement.get("state") == "FAILED"
        and _is_error(statement.get("error"))
    ):
        return {"error": statement["error"]} if "statement_id" in body else None
    return None


def _numbered(body: dict[str, object]) -> dict[str, object] | None:
    """Return the error of services that answer every call with a number, which is 0 for a success."""
    for code, text in (("errcode", "errmsg"), ("error_code", "error_msg")):
        number = body.get(code)
        if isinstance(number, int) and number not in {0, True} and isinstance(body.get(text), str):
            return body
    base = body.get("base_resp")
    number = base.get("status_code") if isinstance(base, dict) else None
    if isinstance(base, dict) and isinstance(number, int) and number not in {0, True}:
        return {"base_resp": {}, "error": {"code": number, "message": base.get("status_msg")}}
    return None


def _by_members(body: dict[str, object], vendor: str | None) -> dict[str, object] | None:
    """Return the error of services whose failures have members of their own."""
    error, status, result = body.get("error"), body.get("status_code"), body.get("result")
    if isinstance(body.get("error_code"), str) and "error_message" in body and isinstance(status, int):
        # monday.com writes the status into the body.
        return body if 400 <= status <= 599 else None
    if isinstance(error, list) and error and isinstance(error[0], str) and _KRAKEN.match(error[0]):
        return _phrase(error[0])
    if isinstance(result, str) and body.get("status") == "0" and body.get("message") == "NOTOK":
        # Etherscan lists the texts of its results.
        return _phrase(result)
    if vendor == "alphavantage":
        member = next((name for name in ("Note", "Information", "Error Message") if name in body), None)
        if member is not None:
            return {"error": {"code": f"@{member.replace(' ', '')}", "message": body[member]}}
    if vendor == "aws" and len(body) == 1:
        # An event of a stream, as botocore returns it: {"throttlingException": {"message": "…"}}.
        name, value = next(iter(body.items()))
        if name.endswith("Exception") and isinstance(value, dict) and "message" in value:
            return {"__type": name[0].upper() + name[1:], **value}
    if vendor == "discord" and isinstance(body.get("code"), int) and "retry_after" in body:
        # 202: an index is being built.
        return body
    return None


def _phrase(text: str) -> dict[str, object]:
    """Return the error of a documented code that has spaces in it, which is looked up with underscores."""
    return {"error": {"code": text[:96].replace(" ", "_"), "message": text}}


_KRAKEN = re.compile("E[A-Z][A-Za-z]{1,24}:")
_BLOCKED = frozenset(("SAFETY", "IMAGE_SAFETY", "BLOCKLIST", "MODEL_ARMOR", "JAILBREAK"))
"""Gemini's published block reasons, without those whose word says nothing (`OTHER`)."""


def _with_errors(
    body: dict[str, object],
    vendor: str | None,
    fields: Mapping[str, str],
    now: Callable[[], float] | None,
) -> Fault | None:
    """Read GraphQL's `errors` beside or instead of `data`, and bulk answers."""
    errors = body["errors"]
    items = body.get("items")
    if errors is True and isinstance(items, list):
        return bulk(items)
    if not isinstance(errors, list) or not errors or not isinstance(errors[0], dict):
        return None
    uri = errors[0].get("type")
    if isinstance(uri, str) and uri.startswith(
        ("https://api.twitter.com/2/problems/", "https://api.x.com/2/")
    ):
        faults = [_problem_of_x(item) for item in errors[:100] if isinstance(item, dict)]
        return partial(faults) if body.get("data") else faults[0]
    graphql = "data" in body or any(
        isinstance(item, dict) and ("extensions" in item or "locations" in item or "path" in item)
        for item in errors
    )
    if not graphql and set(body) <= {"data", "errors", "extensions"}:
        # GitHub: {"errors": [{"type": "RATE_LIMITED", "message": "…"}]}.
        kind = errors[0].get("type")
        graphql = isinstance(kind, str) and kind.isupper()
    if not graphql or not isinstance(errors[0].get("message"), str):
        return None
    faults = [_graphql_error(item, vendor, fields, now) for item in errors[:100] if isinstance(item, dict)]
    wait = _cost_wait(body)
    if wait is not None:
        faults = [replace(each, retry_after=wait) if each.code == "RATE_LIMITED" else each for each in faults]
    data = body.get("data")
    if isinstance(data, dict) and any(value is not None for value in data.values()):
        return partial(faults)
    first = next((each for each in faults if each.code == "RATE_LIMITED"), faults[0])
    # Braintree sends the request id beside the errors.
    beside = collect({"extensions": body.get("extensions")}, Evidence()).trace_id
    return replace(first, trace_id=first.trace_id or beside, errors=tuple(faults) if len(faults) > 1 else ())


def _problem_of_x(item: dict[str, object]) -> Fault:
    found = read(400, {}, item, vendor="x", known_by_shape=True)
    return replace(found or build(INVALID, None, Evidence(), "x", None, None, None), status=None)


def _graphql_error(
    item: dict[str, object],
    vendor: str | None,
    fields: Mapping[str, str],
    now: Callable[[], float] | None,
) -> Fault:
    path = item.get("path")
    plain = {name: value for name, value in item.items() if name not in {"path", "locations"}}
    evidence = collect(plain, Evidence(proved=is_service(vendor)))
    vendor = vendor or sender_of(fields)
    words = evidence.words()
    known = index()
    found = by_words(words, None, known.vendors.get(vendor or "graphql"), known)
    if evidence.field is None and isinstance(path, list):
        evidence.field = ".".join(str(part) for part in path[:16]) or None
    kind = INVALID if found is None and not words else INTERNAL if found is None else found[0]
    wait = own_wait(evidence, fields, now, None)
    return build(
        kind, None, evidence, vendor or "graphql", found[1] if found else first_word(words), wait, None
    )


def _cost_wait(body: dict[str, object]) -> float | None:
    """Return the wait of a cost bucket: (needed - available) / restore rate."""
    extensions = body.get("extensions")
    cost = extensions.get("cost") if isinstance(extensions, dict) else None
    throttle = cost.get("throttleStatus") if isinstance(cost, dict) else None
    if not isinstance(cost, dict) or not isinstance(throttle, dict):
        return None
    from amends.core.hints import finite

    needed = finite(cost.get("requestedQueryCost"))
    available, rate = finite(throttle.get("currentlyAvailable")), finite(throttle.get("restoreRate"))
    if needed is None or available is None or not rate or rate <= 0:
        return None
    return bounded(max(0.0, (needed - available) / rate))


def _user_errors(body: dict[str, object], vendor: str | None) -> Fault | None:
    """Read Shopify's user errors: `data.<mutation>.userErrors`."""
    data = body.get("data")
    for value in data.values() if isinstance(data, dict) else ():
        errors = value.get("userErrors") if isinstance(value, dict) else None
        if isinstance(errors, list) and errors and isinstance(errors[0], dict) and "message" in errors[0]:
            said = {"message": errors[0]["message"], "code": errors[0].get("code")}
            evidence = collect(said, Evidence(proved=is_service(vendor)))
            field = errors[0].get("field")
            if isinstance(field, list):
                field = ".".join(str(part) for part in field)
            evidence.field = field if isinstance(field, str) else None
            return build(INVALID, None, evidence, "shopify", first_word(evidence.words()), None, None)
    return None
