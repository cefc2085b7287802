"""
What the ASGI and WSGI middlewares share about a request with an `Idempotency-Key`: the key, its caller, the request's
fingerprint, what a failure means for the key, and the result of a `verify` hook.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from amends.carriers.extraction import extract
from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.core.vocabularies.http import VOCABULARY
from amends.dialects.problem import MEDIA_TYPE
from amends.errors.base import FaultError
from amends.http.application_errors import fault_for, is_expected
from amends.http.current import current_request
from amends.http.redirects import is_credential
from amends.http.responses import LOG, RawResponse, quote_path
from amends.proof import Claim, Proof, rests_on

__all__ = [
    "KeyedRequest",
    "after_failure",
    "caller_of",
    "ended_early_fault",
    "fingerprint",
    "invalid_key_error",
    "kept_headers",
    "not_stored_fault",
    "parse_key",
    "store_down_fault",
    "too_large_fault",
    "verified_response",
    "warn_unkeyed",
]

_IDENTITY = re.compile(r"cookie|(?:^|-)(?:user|principal|identity|client-cert|client-id|tenant)(?:-|$)")
"""Headers beside credentials that say who the caller is."""
_NOT_IDENTITY = re.compile(r"csrf|xsrf|signature|^user-agent$|^idempotency-key$")
"""Headers that may differ between a request and its repeat."""
_NOT_REPLAYED = frozenset(
    {"date", "server", "connection", "transfer-encoding", "set-cookie", "idempotency-key"}
)
"""Headers that belong to one response and are not stored with it."""


class KeyedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """
    A request whose effect is in doubt, as a `verify` hook gets it.

    The values are those of the first request with the key; a repeat that differs is refused before the hook is called.

        async def verify(request: KeyedRequest) -> object:
            payment = await find_payment(request.key)
            return (201, payment) if payment else False

        app = Idempotent(Problems(app), "sqlite:///keys.db", verify=verify)
    """

    key: str
    caller: str
    """The id that `caller` returned for the request."""
    method: str
    path: str
    query: str
    body: bytes | None
    """None if the request was streamed."""
    status: int
    """The status that the first request was answered with; 0 if its process died."""


def caller_of(headers: Iterable[tuple[str, str]], more: str = "") -> str:
    """
    Return an id for the sender of a request: a hash of all its headers that carry credentials, and its cookies.

    >>> caller_of([("X-Api-Key", "a")]) == caller_of([("X-Api-Key", "b")])
    False
    >>> caller_of([("Accept", "text/html")]) == caller_of([])
    True
    """
    parts = []
    for spelled, value in headers:
        name = spelled.lower()
        if (is_credential(name) or _IDENTITY.search(name)) and not _NOT_IDENTITY.search(name):
            # The order of cookies says nothing.
            values = (
                sorted(each.strip() for each in value.split(";")) if name == "cookie" else [value.strip()]
            )
            parts.append(f"{name}:{';'.join(values)}")
    parts.sort()
    return sha256("\n".join([*parts, more] if more else parts).encode("utf-8", "surrogateescape")).hexdigest()


def parse_key(values: Sequence[str]) -> str | None:
    """
    Return the key without the quotes of a structured field; None without a header.

    Raises:
        FaultError: there are several keys, or the key is not valid.

    """
    if not values:
        return None
    key = values[0].strip()
    quoted = len(key) > 1 and key[0] == key[-1] == '"'
    # A proxy or a WSGI server joins two headers with a comma.
    if len(values) > 1 or ("," in key and not (quoted and '"' not in key[1:-1])):
        raise invalid_key_error(
            "A request has one Idempotency-Key; put a key that contains a comma into quotes"
        )
    if quoted:
        key = key[1:-1]
    if not (0 < len(key) <= 255 and key.isascii() and key.isprintable()):
        raise invalid_key_error()
    return key


def invalid_key_error(
    message: str = "This request needs an Idempotency-Key of 1 to 255 visible characters",
) -> FaultError:
    """Return the error for a missing or invalid key."""
    return FaultError(message, code="BAD_REQUEST", vocabulary="http", status=400, field="Idempotency-Key")


def store_down_fault() -> Fault:
    """Return the fault of a request with a key while the store cannot be reached. The request did not run."""
    return FaultError(
        code="SERVICE_UNAVAILABLE", vocabulary="http", retry_after=5.0, executed=Executed.NO
    ).fault


def not_stored_fault() -> Fault:
    """Return the fault for a repeat of a request that succeeded and whose response was not stored."""
    return Fault(
        code="CONFLICT",
        vocabulary="http",
        status=409,
        message="This request succeeded before, but its response was not stored",
        suggestions=("Read the resource that it created instead of sending the request again",),
        executed=Executed.YES,
    )


def ended_early_fault() -> Fault:
    """Return the fault of a request whose client disconnected before its body was complete. The request did not run."""
    return FaultError("The request ended early", code="BAD_REQUEST", vocabulary="http", status=400).fault


def too_large_fault() -> Fault:
    """Return the fault of a request that needs a key and whose body is too large for one."""
    return FaultError(code="CONTENT_TOO_LARGE", vocabulary="http", status=413).fault


def fingerprint(method: str, path: str, query: bytes, body: bytes | None) -> str:
    """Return a hash of method, path and query, and one of the body unless it is streamed."""
    digest = sha256()
    for part in (method.encode(), path.encode("utf-8", "surrogateescape"), query):
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return f"{digest.hexdigest()}:{'' if body is None else sha256(body).hexdigest()}"


@rests_on(Claim.NOT_HAPPENED, Proof.STATED, Proof.STATUS)
def after_failure(fault: Fault | None, status: int, content_type: str = "", body: bytes = b"") -> str:
    """
    Return what a failed request means for its key (M3). Without a fault, a problem document in the response is read.

    "release": it had no effect, and the key can be used again. "doubt": it may have had its effect, and may succeed if it
    is repeated. "keep": it may have had its effect, and a repeat would fail again; repeats get the same response.
    """
    if fault is None and content_type.startswith(MEDIA_TYPE):
        # The application answers for itself.
        fault = extract({"status": status, "headers": {}, "body": body}, via="http", native=False, own=True)
    facts: Any = fault or VOCABULARY.status_row(status)
    if facts.executed is Executed.NO:
        return "release"
    return "doubt" if facts.recovery in {Recovery.TRANSIENT, Recovery.UNCERTAIN} else "keep"


def fault_of_raised(exc: BaseException | None, method: str) -> Fault | None:
    """
    Return the fault of an exception that a layer around will answer, if the application gave it a meaning.

    An exception without a code of its own says nothing about the effect of the request.
    """
    settings = current_request()[1]
    if exc is None or not is_expected(exc, settings):
        return None
    return fault_for(exc, method, settings)


def kept_headers(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the headers of a response that a repeat gets too."""
    return tuple((name, value) for name, value in headers if name.lower() not in _NOT_REPLAYED)


def verified_response(result: Any) -> RawResponse | bool | None:
    """
    Return what a `verify` hook found: a response to replay, True (it happened), False (it did not), None (unknown).

    A response is a `RawResponse`, a pair of status and body, or a response of Starlette, Flask or Django. A body that is
    neither bytes nor a string is written as JSON.
    """
    if result is None or isinstance(result, bool | RawResponse):
        return result
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], int):
        status, body = result
        if isinstance(body, bytes | str):
            return RawResponse(int(status), [], body if isinstance(body, bytes) else body.encode())
        return RawResponse(int(status), [("content-type", "application/json")], msgspec.json.encode(body))
    body = getattr(result, "body", None) or getattr(result, "content", None)
    if body is None and hasattr(result, "get_data"):
        body = result.get_data()
    if isinstance(getattr(result, "status_code", None), int) and isinstance(body, bytes):
        headers = [(str(name), str(value)) for name, value in result.headers.items()]
        return RawResponse(result.status_code, headers, body)
    raise TypeError(
        f"verify returns True, False, None, a response or a pair of status and body, not {type(result).__name__}"
    )


def warn_unkeyed(method: str, path: str, limit: int) -> None:
    """Log that a request with a key runs without the protection of the key."""
    LOG.warning(
        "%s %s has an Idempotency-Key and a body of more than %d bytes (max_body): it runs without the key",
        method,
        quote_path(path),
        limit,
    )
