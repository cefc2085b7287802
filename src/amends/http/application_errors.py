"""
Turn an exception raised inside an application into the fault that its caller receives.

- A FaultError keeps its own fault.
- A failure of an upstream service (an exception of an HTTP client, or an error that recovery raised about a call)
  becomes one of the three codes of `from_upstream`: the caller can neither see nor correct the request that failed.
- An exception class that the application registered (`amends.register`, `errors=`) has its code.
- A failure of the network, of a database or of another resource that the tables of `amends.foreign` know as transient is an
  upstream's failure too.
- A group of several exceptions is joined (`amends.foreign.groups`) from the faults of its parts.
- A bug (M7) and any other exception is INTERNAL_ERROR with a fixed message. The text of a foreign exception is never sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from msgspec.structs import replace

from amends.carriers.headers import lower_names, wait
from amends.core.crosswalk import transfer, transfer_plainly
from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.vocabularies.http import VOCABULARY
from amends.core.vocabulary import EVERYDAY
from amends.errors.base import FaultError, is_about_a_call
from amends.foreign import from_exception, from_upstream
from amends.foreign.bugs import is_bug
from amends.foreign.echo import repeats_cause
from amends.foreign.groups import joined, parts_of, single
from amends.foreign.in_doubt import in_doubt, lost_call
from amends.foreign.local import is_client_error
from amends.foreign.own_service import as_own_service, blames_our_request, is_from_own_service
from amends.foreign.registry import registered_fault
from amends.foreign.safe_attr import attribute
from amends.http.request_info import RequestInfo
from amends.http.responses import LOG, RawResponse, Settings, error_response
from amends.proof import Claim, Proof, rests_on
from amends.serving.tracing import further_traces, id_of, incoming

__all__ = [
    "CLIENT_DISCONNECTED",
    "INTERNAL",
    "PHRASES",
    "details_from",
    "exception_response",
    "fault_for",
    "fault_from_status",
    "has_code",
    "is_expected",
    "states",
    "with_header_wait",
]

INTERNAL = Fault(code="INTERNAL_ERROR", message=VOCABULARY.rows["INTERNAL_ERROR"].message, vocabulary="http")
"""The fault of an unexpected exception."""

CLIENT_DISCONNECTED = Fault(
    code="CANCELLED", message=VOCABULARY.rows["CANCELLED"].message, vocabulary="http", status=408
)
"""The fault of a request whose client closed the connection before the body was complete."""

_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_REPEATABLE = _READING | {"PUT", "DELETE", "TRACE"}
"""RFC 9110, 9.2.2: repeating these has no further effect, so a caller need not check first."""
_MAX_DETAIL = 500
"""Characters of a framework's detail text; a longer text is replaced by the code's own message."""
PHRASES = {status.value: status.phrase for status in HTTPStatus}


def exception_response(
    exc: BaseException, request: RequestInfo, settings: Settings, headers: Iterable[tuple[str, str]] = ()
) -> tuple[Fault, RawResponse]:
    """
    Return the fault of an exception and the response for it, with the exception's own headers and the given ones.

    An exception that the application did not raise on purpose is logged with its traceback.
    """
    raised = exc if isinstance(exc, FaultError) else single(exc)
    fault, expected = _judge(raised, request.method, settings)
    own = raised.headers if isinstance(raised, FaultError) else ()
    if own:
        fault = with_header_wait(fault, dict(own))
    response = error_response(
        fault, request, settings, headers=[*own, *headers], cause=None if expected else exc
    )
    return fault, response


def fault_for(exc: BaseException, method: str = "POST", settings: Settings | None = None) -> Fault:
    """
    Return the fault to answer with. Never raises, and includes nothing of a foreign exception's text.

    Args:
        exc: what the application raised.
        method: the request's method. A failed call to another service may have come after an effect of the handler's
            own, so it counts as "may have had its effect", except in a request that only reads (M3).
        settings: the application's settings, for its `errors`.

    """
    return _judge(exc, method, settings)[0]


def _judge(exc: BaseException, method: str, settings: Settings | None) -> tuple[Fault, bool]:
    """Return the fault to answer with, and whether the failure is an expected one, whose traceback need not be logged."""
    if isinstance(exc, FaultError):
        return _judge_one(exc, method, settings)
    judged = [_judge_one(part, method, settings) for part in parts_of(exc)]
    return joined([fault for fault, _ in judged]), all(expected for _, expected in judged)


def _judge_one(exc: BaseException, method: str, settings: Settings | None) -> tuple[Fault, bool]:
    lost = None if method in _REPEATABLE else lost_call(exc)
    if lost is not None:
        return _in_callers_trace(in_doubt(lost, "http")), False
    if isinstance(exc, FaultError):
        fault = exc.fault
        if is_about_a_call(exc):
            return _from_upstream(exc, method), False
        # M5: in HTTP's vocabulary a cancellation is transient.
        cancelled = fault.vocabulary == EVERYDAY and fault.code == "CANCELLED"
        return transfer(fault, "http") if cancelled else fault, True
    registered = registered_fault(type(exc), _errors(settings))
    if registered is not None:
        return registered, True
    if any(cls.__name__ == "ClientDisconnect" for cls in type(exc).__mro__):
        # Starlette's exception, matched by its name so that Starlette need not be installed.
        return CLIENT_DISCONNECTED, True
    if is_client_error(exc) or _is_known_transient(exc, settings):
        return _from_upstream(exc, method), False
    status = stated_status(exc)
    if status is not None:
        detail = attribute(exc, "detail")
        return fault_from_status(status, detail if isinstance(detail, str) else None, exc), True
    return INTERNAL, False


def _is_known_transient(exc: BaseException, settings: Settings | None) -> bool:
    """
    Return whether the foreign tables know the exception as a failure that passes.

    A missing file or a refused SQL statement is known too, but it is the application's own mistake, as a bug is.
    """
    known = from_exception(exc)
    return known.retryable and known.code != INTERNAL.code and not is_bug(exc, errors=_errors(settings))


def is_expected(exc: BaseException, settings: Settings | None = None) -> bool:
    """
    Return whether the application raised the error on purpose, so that its traceback need not be logged.

    A group is expected if all its exceptions are.
    """
    return all(
        not is_about_a_call(part)
        if isinstance(part, FaultError)
        else _is_registered(part, settings) or stated_status(part) is not None
        for part in parts_of(exc)
    )


def has_code(exc: BaseException, settings: Settings | None = None) -> bool:
    """Return whether an exception, or every one of a group, has a code: it is typed, or its class is registered."""
    return all(isinstance(part, FaultError) or _is_registered(part, settings) for part in parts_of(exc))


def _is_registered(exc: BaseException, settings: Settings | None) -> bool:
    return registered_fault(type(exc), _errors(settings)) is not None


def _errors(settings: Settings | None) -> Any:
    return None if settings is None else settings.errors


def _in_callers_trace(fault: Fault) -> Fault:
    """Return the fault of a call with the caller's trace id (P5). Another id, of the service below, is only logged."""
    trace = id_of(incoming())
    if fault.origin is not None or fault.trace_id is None or trace is None:
        return fault
    if further := further_traces(trace, fault.trace_id, None):
        LOG.info("a service below failed: %s [trace_id=%s]%s", fault.code, trace, further)
    return replace(fault, trace_id=trace)


@rests_on(Claim.NOT_HAPPENED, Proof.METHOD)
def _from_upstream(exc: BaseException, method: str) -> Fault:
    """Return an upstream's failure as a fault of ours; codes that HTTP also has get HTTP's vocabulary and message."""
    received = from_exception(exc)
    if blames_our_request(received):
        return INTERNAL
    own = is_from_own_service(exc) and received.vocabulary != "adcp"
    fault = transfer_plainly(as_own_service(received), "http") if own else from_upstream(exc)
    fault = _in_callers_trace(fault)
    if fault.retryable and not getattr(exc, "relayed", False):
        fault = replace(fault, executed=Executed.NO if method in _READING else Executed.MAYBE)
    if not own and fault.origin is None and fault.code in VOCABULARY.rows:
        return replace(fault, vocabulary="http", message=VOCABULARY.rows[fault.code].message)
    return fault


def fault_from_status(status: int, detail: str | None = None, raised: BaseException | None = None) -> Fault:
    """
    Return the fault for a status that a framework answered with, and the author's text if there is one.

    The code's own message replaces a detail longer than 500 characters and a bare status phrase such as "Not Found". It
    replaces the detail of a 5xx that repeats what the exceptions behind `raised` say, and of a 500 that was not raised.

    Args:
        status: the status.
        detail: the author's text.
        raised: the exception that the application raised to answer with this status, such as an `HTTPException`.

    """
    status = int(status)
    row = VOCABULARY.status_row(status)
    if (
        not detail
        or len(detail) > _MAX_DETAIL
        or _is_phrase(status, detail)
        or _is_foreign(status, detail, raised)
    ):
        detail = row.message
    return Fault(
        code=row.code,
        message=detail,
        recovery=row.recovery,
        vocabulary="http",
        status=status,
        executed=row.executed,
        actor=row.actor,
    )


def _is_foreign(status: int, detail: str, raised: BaseException | None) -> bool:
    """Return whether the text of a failure of the server may be that of a library: `HTTPException(500, str(error))`."""
    if status < 500:
        return False
    return status == 500 if raised is None else repeats_cause(detail, raised)


def states(exc: BaseException, status: int) -> bool:
    """
    Return whether an exception is a framework's way to answer with this status, such as Litestar's `HTTPException`.

    It is matched by its name, so that no framework need be installed.
    """
    return stated_status(exc) == status


def stated_status(exc: BaseException) -> int | None:
    """Return the status of an error that a framework's exception states; None for any other exception."""
    if not any(cls.__name__ == "HTTPException" for cls in type(exc).__mro__):
        return None
    for status in (attribute(exc, "status_code"), attribute(exc, "code")):
        if isinstance(status, int) and 400 <= status < 600:
            return int(status)
    return None


def details_from(status: int, detail: object, raised: BaseException) -> dict[str, Any] | None:
    """Return the `details` of a framework's exception whose detail is an object or a list; None if it may be foreign."""
    if not isinstance(detail, dict | list) or not detail:
        return None
    if status >= 500 and repeats_cause(repr(detail), raised):
        return None
    return detail if isinstance(detail, dict) else {"detail": detail}


def _is_phrase(status: int, detail: str) -> bool:
    return detail.strip().rstrip(".").lower() == PHRASES.get(status, "").lower()


def with_header_wait(fault: Fault, headers: Mapping[str, str] | None) -> Fault:
    """Return the fault with the wait that the response's headers ask for, so that body and header agree (P3)."""
    if not headers or fault.retry_after is not None:
        return fault
    seconds = wait(lower_names(headers))
    return replace(fault, retry_after=seconds) if seconds else fault
