"""
What a caller reads after a call that changes something has got no answer: that it may have happened (M2, "in doubt").

Hosts that read only the standard members of a format would repeat a TIMEOUT. So a handler whose own outgoing call was lost is
answered in the row for a doubtful effect, under a code that no specification repeats, with one text. The record says what the
failure was.

An author's own TIMEOUT, a bug and a cancellation are no lost calls, nor is what shows that nothing was sent; neither is the failure of a call that may be
repeated: one that reads, is idempotent, or has a key of the caller's that the service honours. A key that was made for the one
call does not count, because a second call of the handler makes another key.
"""

from __future__ import annotations

from msgspec.structs import replace

from amends.core.decision import Decision
from amends.core.enums import Action, Actor, Executed, Recovery
from amends.core.fault import Fault
from amends.core.vocabulary import row_for
from amends.dialects.record import IN_DOUBT
from amends.errors.base import FaultError, is_about_a_call
from amends.foreign.exceptions import from_exception
from amends.foreign.groups import parts_of
from amends.foreign.local import PROTOCOLS, is_client_error
from amends.foreign.network import is_network_failure
from amends.foreign.own_service import as_own_service, is_from_own_service
from amends.foreign.registry import registered_fault
from amends.foreign.safe_attr import attribute
from amends.proof import Claim, Proof, rests_on

__all__ = ["IN_DOUBT", "in_doubt", "lost_call"]

_CODES = {
    "adcp": "SERVICE_UNAVAILABLE",
    "task": "INTERNAL_ERROR",
    "arcp": "INTERNAL_ERROR",
    "http": "EFFECT_UNKNOWN",
    "cli": "EFFECT_UNKNOWN",
}
"""The code by vocabulary: none of them is TIMEOUT, which S2, S3 and S5 repeat."""
_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})
_SILENT = frozenset({None, "connection", "timeout"})
"""Where a fault was found that reports that no answer came."""


def lost_call(exc: BaseException, *, of_agent: bool = False) -> Fault | None:
    """
    Return the fault of the outgoing call that changes something and whose answer is missing; None for any other exception.

    Of a group, that of the first such part. The fault has no foreign text.

    >>> lost_call(KeyError("id")) is None
    True
    >>> lost_call(ConnectionResetError()) is None, lost_call(ConnectionResetError(), of_agent=True) is None
    (True, False)

    Args:
        exc: what the handler raised.
        of_agent: whether the handler is a tool or an agent, whose caller obeys the answer without looking further. Then the exception of
            any library counts that does not show that nothing happened, such as that of a lost database.

    """
    try:
        parts = (exc,) if isinstance(exc, FaultError) else parts_of(exc)
        return next((found for part in parts if (found := _lost(part, of_agent)) is not None), None)
    except Exception:  # noqa: BLE001 - an exception class may raise anything when it is inspected
        return None


def _lost(exc: BaseException, of_agent: bool) -> Fault | None:
    fault = exc.fault if isinstance(exc, FaultError) else from_exception(exc)
    if isinstance(exc, FaultError) and not is_about_a_call(exc):
        # `chain.relay` keeps the exception that it passes on, also for `raise relay(error) from None`.
        cause = (exc.passed_on or exc.__cause__) if exc.relayed else None
        return None if cause is None else _lost(cause, of_agent)
    if not (fault.in_doubt or _is_unanswered(exc, fault, of_agent) or _lost_before(exc, fault)):
        return None
    if _may_be_repeated(exc, fault):
        return None
    if is_from_own_service(exc):
        return as_own_service(fault)
    row = row_for(fault.vocabulary, fault.code, fault.status)
    plain = row_for("everyday", row.everyday)
    return Fault(
        code=row.everyday,
        message=plain.message,
        recovery=fault.recovery,
        executed=Executed.MAYBE if fault.executed is Executed.NO else fault.executed,
        attempt=fault.attempt,
        trace_id=fault.trace_id,
    )


def is_unanswered(exc: BaseException) -> bool:
    """
    Return whether a call failed without an answer, so that the service may still act on it.

    >>> is_unanswered(TimeoutError()), is_unanswered(ValueError())
    (True, False)
    """
    fault = exc.fault if isinstance(exc, FaultError) else from_exception(exc)
    late = fault.code == "TIMEOUT" or is_network_failure(exc)
    return _is_unanswered(exc, fault) or (fault.status is None and late)


def _lost_before(exc: BaseException, fault: Fault) -> bool:
    """Return whether an earlier attempt of a call got no answer, whose last one was refused: that does not undo it."""
    if not isinstance(exc, FaultError) or not fault.retryable or fault.executed is not Executed.MAYBE:
        return False
    return any(
        attempt.error is not None
        and attempt.fault is not None
        and _is_unanswered(attempt.error, attempt.fault)
        for attempt in exc.history[:-1]
    )


def _is_unanswered(exc: BaseException, fault: Fault, of_agent: bool = False) -> bool:
    """Return whether a failure reports that no answer came, and not what was answered."""
    if not fault.retryable or fault.executed is Executed.NO or fault.status is not None:
        return False
    origin = fault.origin
    if origin is not None:
        killed = origin.dialect == "envelope" and "signal" in (fault.details or {})
        return killed or (
            origin.path in _SILENT and (origin.layer == "transport" or origin.path == "timeout")
        )
    last = exc
    if isinstance(exc, FaultError) and exc.history:
        last = exc.history[-1].error or exc
    if isinstance(last, FaultError):
        # Our own clients raise it where a library has no exception, as for an answer that broke off.
        return fault.code == "TIMEOUT" or last.__cause__ is not None
    if isinstance(last, BaseExceptionGroup):
        return False  # its parts are looked at
    if not isinstance(exc, FaultError) and is_client_error(last, PROTOCOLS):
        # They also raise what a server answered; a time-out, and the failure of the library below, is silence.
        return fault.code == "TIMEOUT" or is_client_error(last.__cause__ or last)
    if of_agent and fault.recovery is Recovery.TRANSIENT:
        # A class that is registered has its author's meaning.
        return registered_fault(type(last)) is None
    if isinstance(exc, FaultError):
        return isinstance(last, TimeoutError) or is_client_error(last) or is_network_failure(last)
    # Python's own TimeoutError and ConnectionError need not be about a call that changes something.
    return is_client_error(last) or attribute(type(last), "unanswered") is True


@rests_on(Claim.MAY_REPEAT, Proof.USER, Proof.METHOD, Proof.HOST, Proof.REPLAY, Proof.ECHO)
def _may_be_repeated(exc: BaseException, fault: Fault) -> bool:
    """
    Return whether the lost call may be made again: recovery gave up although it could have repeated it, or the method says so.

    Recovery knows what was declared about the call. An exception of a library shows at most the method.
    """
    decision = attribute(exc, "decision")
    if attribute(exc, "key_is_new") is True and fault.executed is not Executed.NO:
        return False
    if isinstance(decision, Decision):
        return decision.action is not Action.VERIFY
    request = attribute(exc, "request")
    method = None if request is None else attribute(request, "method")
    return isinstance(method, str) and method.upper() in _REPEATABLE


def in_doubt(lost: Fault, vocabulary: str) -> Fault:
    """
    Return what the caller is told about a lost call, in the codes of its format (M2).

    >>> found = in_doubt(Fault(code="TIMEOUT"), "adcp")
    >>> found.code, found.recovery.value, found.retry_after, found.raised.code
    ('SERVICE_UNAVAILABLE', 'terminal', None, 'TIMEOUT')

    Args:
        lost: what `lost_call` returned.
        vocabulary: of the caller's format.

    """
    told = vocabulary in {"http", "cli"}
    return Fault(
        code=_CODES[vocabulary],
        vocabulary=vocabulary,
        message=IN_DOUBT,
        recovery=Recovery.UNCERTAIN if told else Recovery.TERMINAL,
        executed=Executed.YES if lost.executed is Executed.YES else Executed.MAYBE,
        actor=Actor.CALLER,
        suggestions=(IN_DOUBT,) if told else (),
        max_retries=0 if told else None,
        status=_status(lost) if vocabulary == "http" else None,
        attempt=lost.attempt,
        trace_id=lost.trace_id,
        raised=replace(lost, raised=None, trace_id=None),
        in_doubt=True,
    )


def _status(lost: Fault) -> int:
    if lost.status is not None and lost.status >= 400:
        return lost.status
    row = row_for(lost.vocabulary, lost.code, lost.status)
    return row.status or row_for("everyday", row.everyday).status or 500
