"""
Failures inside successful answers. Only shapes that a vendor documents; arbitrary JSON is never guessed at.

Many objects describe something that failed without being a failure of the call: a job with `status: failed`, a lint result
with `errors[]`, an object whose `error` has only null members. Those are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from amends.core.fault import Fault
from amends.core.instants import bounded
from amends.core.meanings import INTERNAL, INVALID, MEANINGS, Meaning
from amends.vendors.batches import (
    document_of,
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
from amends.vendors.markup import is_error_document, is_soap_fault, part_failed
from amends.vendors.meaning import by_words, first_word
from amends.vendors.model import Rule
from amends.vendors.reading import build, own_wait, read, read_bare, sender_of, trace_of
from amends.vendors.registry import index, is_service, reader_tables
from amends.vendors.streams import read_binary, read_stream

__all__ = ["read_success"]

Waiter = Callable[[Mapping[str, str]], "float | None"]

_JOBS = frozenset(
    {"status", "state", "conclusion", "job", "jobs", "result", "results", "data", "items", "output"}
)
_OBJECTS = frozenset({"error", "chat.completion", "chat.completion.chunk"})
_FLAGS = frozenset("\0\1\2\3")
"""The first characters of Connect's envelopes, in a body that was decoded as text."""


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
        fault = None if binary is None else read_binary(binary, vendor=vendor, now=now)
        if fault is not None:
            return fault
        text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
        if is_error_document(text):
            return _as_success(read(200, fields, text, vendor=vendor, now=now))
        if is_soap_fault(text):
            fault = read(200, fields, text, vendor=vendor, now=now) or read(
                500, fields, text, vendor=vendor, now=now
            )
            return _as_success(fault if fault is None else replace(fault, status=None))
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
        saved = in_batch(body, quoted) or in_collection(body) or in_list(body, quoted)
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
    if isinstance(body.get("errors"), list):
        fault = _with_errors(body, vendor, fields, now)
        if fault is not None:
            return replace(fault, trace_id=fault.trace_id or trace_of(fields))
    batch = of_calls([body]) if "custom_id" in body else in_batch(body, quoted)
    if batch is not None:
        return batch
    failure = None if "jsonrpc" in body else _failure(body, vendor)
    if failure is not None:
        document, default, sender = failure
        fault = read(200, fields, document, vendor=vendor, now=now, quoted=quoted, otherwise=sender)
        if fault is None and vendor is not None and sender not in {None, vendor}:
            # A compatible endpoint of another service.
            fault = read(200, fields, document, vendor=sender, now=now, quoted=quoted, known_by_shape=True)
        if fault is None:
            evidence = collect(document, Evidence(proved=is_service(vendor)))
            words = evidence.words()
            fault = build(default, evidence.status, evidence, vendor or sender, first_word(words), None, None)
        return _with_phrase(_as_success(fault))
    if "jsonrpc" in body and isinstance(body.get("error"), dict):
        return read_error(body["error"])
    if _is_flagged(body):
        fault = _decided(body, vendor, fields, now, quoted)
        if fault is not None:
            return fault
    wrong = _user_errors(body, vendor)
    return None if wrong is None else replace(wrong, trace_id=trace_of(fields))


def _as_success(fault: Fault | None) -> Fault | None:
    """Return the fault without the status of the successful answer."""
    if fault is None or fault.status is None or fault.status >= 400:
        return fault
    return replace(fault, status=None)


def _with_phrase(fault: Fault | None) -> Fault | None:
    """Return the fault with its code as sent, if that is a phrase with spaces (see `batches.document_of`)."""
    word = None if fault is None else (fault.details or {}).get("code")
    if fault is None or not isinstance(word, str) or "_" not in word:
        return fault
    return (
        replace(fault, details={"code": fault.message}) if fault.message.replace(" ", "_") == word else fault
    )


def _is_error(value: object) -> bool:
    """Whether a value is an error object that says something: one whose members are all null is none."""
    return isinstance(value, dict) and any(
        item is not None and not (isinstance(item, str) and not item) for item in value.values()
    )


def _failure(
    body: dict[str, object], vendor: str | None
) -> tuple[dict[str, object], Meaning, str | None] | None:
    """
    Return the object to read as an error, its meaning if no code word of it is known, and the service that sends such answers.

    None for an ordinary answer.
    """
    rule = _rule(body, vendor)
    if rule is not None:
        document = document_of(rule.spec.get("error", "."), body)
        if document is not None:
            return document, MEANINGS[rule.spec.get("default", INTERNAL.name)], rule.vendor.name
    error = body.get("error")
    if not isinstance(error, dict) or not _is_error(error):
        return None
    kind = body.get("object")
    if not _JOBS.isdisjoint(body) or (kind is not None and not (isinstance(kind, str) and kind in _OBJECTS)):
        return None
    # Webhooks have such objects beside what they are about; an answer that has nothing else is one.
    said = _SAID if len(body) > 1 else _SAID_ALONE
    if not any(isinstance(error.get(name), (str, int)) for name in said):
        return None
    refused = body.get("ok") is False or body.get("success") is False
    return body, INVALID if refused else INTERNAL, None


_SAID = ("message", "code")
_SAID_ALONE = (*_SAID, "error_code", "errorCode", "error_msg", "error_message")
_FLAGS_OF_FAILURE = frozenset({"error", "fail", "failure"})
_IDLE: tuple[object, ...] = (None, [], {}, "")
_FLAGGED = frozenset(reader_tables()["document"]["flagged"].split())
"""The members of an answer that says nothing but that the call failed."""


def _is_flagged(body: dict[str, object]) -> bool:
    """
    Return whether an answer says that the call failed, has no result, and describes nothing else.

    A record of something that failed has an id, a name or a kind, and its state is `failed`.
    """
    flag = body.get("status", body.get("stat"))
    said = isinstance(flag, str) and flag.lower() in _FLAGS_OF_FAILURE
    if not said and body.get("success") is not False and body.get("ok") is not False:
        return False
    return (
        _FLAGGED.issuperset(body)
        and body.get("data") in _IDLE
        and body.get("result") in _IDLE
        and not (said and "type" in body)
    )


def _decided(
    body: dict[str, object],
    vendor: str | None,
    fields: Mapping[str, str],
    now: Callable[[], float] | None,
    quoted: Waiter | None,
) -> Fault | None:
    """Return the fault of an answer whose code is a status or a code word with a meaning, else None."""
    fault = read(200, fields, body, vendor=vendor, now=now, quoted=quoted)
    if fault is None or (fault.code == INTERNAL.code and fault.status is None):
        return None
    return _as_success(fault)


def _rule(body: dict[str, object], vendor: str | None) -> Rule | None:
    """Return the rule of a service file by which a successful answer reports a failure."""
    known = index()
    sender = None if vendor is None else known.vendors.get(vendor)
    for rule in () if sender is None else sender.failed:
        if rule.holds(body):
            return rule
    return known.failures.best(body)


def _with_errors(
    body: dict[str, object],
    vendor: str | None,
    fields: Mapping[str, str],
    now: Callable[[], float] | None,
) -> Fault | None:
    """Read GraphQL's `errors` beside or instead of `data`."""
    errors = body["errors"]
    if not isinstance(errors, list) or not errors or not isinstance(errors[0], dict):
        return None
    uri = errors[0].get("type")
    if isinstance(uri, str) and uri.startswith(
        ("https://api.twitter.com/2/problems/", "https://api.x.com/2/")
    ):
        faults = [_problem_of_x(item) for item in errors[:100] if isinstance(item, dict)]
        return partial(faults) if body.get("data") else faults[0]
    graphql = "data" in body or any(
        isinstance(item, dict)
        and ("extensions" in item or "locations" in item or isinstance(item.get("path"), list))
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
    extensions = item.get("extensions")
    if not evidence.ranked and isinstance(extensions, dict):
        # A service may have a member of its own there: {"contentful": {"code": "…"}}.
        for inner in list(extensions.values())[:_NAMESPACES]:
            if isinstance(inner, dict):
                collect(inner, evidence)
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


_NAMESPACES = 8


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
    """Read the errors of a mutation: `data.<mutation>.userErrors` of Shopify, `errors` of Saleor, beside nothing that it made."""
    data = body.get("data")
    for value in data.values() if isinstance(data, dict) else ():
        if not isinstance(value, dict):
            continue
        found = next((name for name in value if name == "errors" or name.endswith("Errors")), "")
        errors = value.get(found)
        made = any(
            each not in _IDLE for name, each in value.items() if not name.endswith(("rrors", "__typename"))
        )
        first = errors[0] if isinstance(errors, list) and errors else None
        if not isinstance(first, dict) or "message" not in first or (made and found != "userErrors"):
            continue
        said = {"message": first["message"], "code": first.get("code")}
        evidence = collect(said, Evidence(proved=is_service(vendor)))
        field = first.get("field")
        if isinstance(field, list):
            field = ".".join(str(part) for part in field)
        evidence.field = field if isinstance(field, str) else None
        if found != "userErrors" and evidence.field is None and not evidence.ranked:
            continue
        sender = vendor or ("shopify" if found == "userErrors" else "graphql")
        return build(INVALID, None, evidence, sender, first_word(evidence.words()), None, None)
    return None
