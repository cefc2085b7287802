"""
`from_upstream`: the Fault that a server returns to its own caller when a service it called failed (AdCP's rules for
chains, A18).

1. A conformant AdCP error passes unchanged, so applying the function twice gives the same as applying it once.
2. A failure that blames the request that we made ourselves (an unknown method or tool, invalid parameters) is our bug.
3. A failure of a service of our own system (`own=True`) is passed on as it was read (`amends.foreign.own_service`).
4. Every other failure gets one of three codes, from our caller's point of view: a rate limit, an unavailable service,
   or, only if `caller_can_fix` is given, an invalid request.
5. A stranger's text, address and body are left out. What is passed on: a wait, the number of tries, whether the call
   may have had its effect, a trace id, and for an invalid request the fields at fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from amends.carriers.extraction import extract
from amends.core.crosswalk import transfer_plainly
from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.core.hints import usable
from amends.core.vocabularies.adcp import VOCABULARY, is_standard_code, is_vendor_code
from amends.core.vocabulary import row_for
from amends.core.wrong_calls import explains_wrong_calls
from amends.errors.base import FaultError, is_about_a_call
from amends.foreign.bugs import bug_fault
from amends.foreign.exceptions import from_exception
from amends.foreign.groups import combine
from amends.foreign.local import is_client_error
from amends.foreign.own_service import as_own_service, blames_our_request, is_from_own_service
from amends.foreign.rules import RULES, WAIT, Rule
from amends.foreign.safe_attr import is_exception

__all__ = ["WAIT", "from_upstream", "from_upstreams", "is_conformant", "refusal_of_stranger"]

_TRACE = r"(?!0{32})[0-9a-f]{32}"
"""A trace id of W3C Trace Context. It matches no prose."""
_FIELD = r"[\w.$/~\[\]*-]{1,256}"
"""A JSON pointer or a path. It matches no prose."""
_MAX_SUGGESTION = 256
_MAX_PARTS = 100
_OPEN = frozenset({"EFFECT_UNKNOWN", "CANCELLED"})
"""Codes that leave open whether the call had its effect, whatever their recovery."""


@explains_wrong_calls
def from_upstream(
    failure: object, *, own: bool = False, caller_can_fix: bool = False, rules: Iterable[Rule] = RULES
) -> Fault:
    """
    Return the AdCP fault for our own caller, for a failure of a service that we called.

    Args:
        failure: an exception, a Fault, or a response as `extract` takes it. A response without a readable error
            counts as a failure too.
        own: the service is part of our system, so its failure is passed on as it was read. An error that a client with
            `own=True` raised has this set already.
        caller_can_fix: our caller wrote what the upstream refused. Only then is the fault correctable, with the
            fields at fault and redacted suggestions. Refused credentials are ours, so they are never correctable.
        rules: the table that decides: `amends.foreign.rules.RULES`, or your rules followed by it.

    >>> fault = from_upstream(ConnectionResetError("billing.internal:8443"))
    >>> fault.code, fault.recovery.value, fault.executed.value
    ('SERVICE_UNAVAILABLE', 'transient', 'maybe')
    >>> from_upstream({"status": 429, "headers": {}}).retry_after
    10.0
    >>> from_upstream({"status": 404, "headers": {}}).recovery.value
    'terminal'
    >>> from_upstream({"status": 404, "headers": {}}, own=True).code
    'REFERENCE_NOT_FOUND'

    """
    fault = _fault_of(failure)
    if fault is None:
        return _adcp_fault("SERVICE_UNAVAILABLE")
    if is_conformant(fault):
        return fault
    if blames_our_request(fault):
        return replace(bug_fault(VOCABULARY.name), executed=fault.executed, attempt=fault.attempt)
    if own or is_from_own_service(failure):
        return _of_own_service(fault)
    facts: dict[str, Any] = {
        "executed": fault.executed,
        "attempt": fault.attempt,
        "trace_id": _trace_id(fault),
    }
    wait = usable(fault.vocabulary, fault.retry_after)
    everyday = row_for(fault.vocabulary, fault.code, fault.status).everyday
    for rule in rules:
        if rule.fits(fault, everyday, caller_can_fix=caller_can_fix):
            if rule.own:
                return _of_own_service(fault)
            more = _corrections(fault) if rule.fixable else {}
            if rule.executed is not None and not _effect_is_open(fault):
                facts["executed"] = rule.executed
            more |= {
                name: value for name in ("recovery", "message") if (value := getattr(rule, name)) is not None
            }
            if not rule.fixable and more.get("recovery") is not Recovery.TERMINAL:
                more["retry_after"] = rule.wait if wait is None else wait
            return _adcp_fault(rule.code, **more, **facts)
    return _adcp_fault("SERVICE_UNAVAILABLE", retry_after=wait, **facts)


@explains_wrong_calls
def from_upstreams(
    failures: Iterable[object],
    *,
    own: bool = False,
    caller_can_fix: bool = False,
    rules: Iterable[Rule] = RULES,
) -> Fault:
    """
    Return one AdCP fault for the failures of several upstreams, each in `errors` with its own code and recovery.

    A single failure gives the same fault as `from_upstream`.

    >>> fault = from_upstreams([TimeoutError(), {"status": 429, "headers": {"Retry-After": "30"}}])
    >>> fault.code, fault.retry_after, [part.code for part in fault.errors]
    ('SERVICE_UNAVAILABLE', 30.0, ['SERVICE_UNAVAILABLE', 'RATE_LIMITED'])

    Raises:
        ValueError: if `failures` is empty.

    """
    rules = tuple(rules)
    parts = [
        from_upstream(failure, own=own, caller_can_fix=caller_can_fix, rules=rules) for failure in failures
    ]
    if not parts:
        raise ValueError("failures is empty: pass at least one failure")
    return parts[0] if len(parts) == 1 else combine(parts, ("SERVICE_UNAVAILABLE", VOCABULARY.name))


def _of_own_service(fault: Fault) -> Fault:
    """Return an own service's fault in AdCP's vocabulary. A bug is terminal there, wherever it was (M7)."""
    found = as_own_service(fault)
    everyday = row_for(found.vocabulary, found.code, found.status).everyday
    translated = transfer_plainly(found, VOCABULARY.name)
    if (
        found.vocabulary != VOCABULARY.name
        and everyday == "INTERNAL_ERROR"
        and found.recovery is Recovery.UNCERTAIN
    ):
        return replace(translated, recovery=Recovery.TERMINAL)
    return translated


def refusal_of_stranger(exc: BaseException) -> Fault | None:
    """
    Return what a caller is told if a service of another party refused for good what this program sent (M9, row 3).

    Neither the refusal nor its text is about the caller's request. None for any other exception: another failure, an error
    that the program itself raised for its caller, a service of our own, and a conformant AdCP error.

    >>> refusal_of_stranger(KeyError("id")) is None
    True
    """
    if isinstance(exc, FaultError):
        if not is_about_a_call(exc):
            return None
        if exc.fault.origin is None and not exc.own and not is_client_error(_reported_by(exc)):
            # Recovery gave up on an exception of the program itself, such as a missing file.
            return None
    elif not is_client_error(exc):
        return None
    if is_from_own_service(exc):
        return None
    fault = _fault_of(exc)
    if fault is None or fault.retryable or is_conformant(fault):
        return None
    if fault.origin is not None and (fault.origin.dialect, fault.origin.path) == ("envelope", "exit"):
        # A command that does not exist, or ended with a number only: it said nothing.
        return None
    return from_upstream(exc)


def _reported_by(error: FaultError) -> BaseException:
    """Return the exception of a library that a give-up of recovery is about, or the error itself."""
    last = error.history[-1].error if error.history else None
    return last or error.__cause__ or error


def _fault_of(failure: object) -> Fault | None:
    """Return the fault of an exception, a Fault or a response; None if it has none."""
    try:
        if is_exception(failure):
            return from_exception(failure)
        return failure if isinstance(failure, Fault) else extract(failure, native=True)
    except Exception:  # noqa: BLE001 - an object of another library may raise anything when it is inspected
        return None


def _effect_is_open(fault: Fault) -> bool:
    """
    Return whether the call may have had its effect although it was refused: the service itself says so, or it was cancelled.

    A refusal by status without a statement of the service had no effect (M9). What was read as "maybe" from a document, or from
    an exception without an answer, stays so.
    """
    if fault.executed is Executed.YES or fault.in_doubt or fault.intent is not None or fault.code in _OPEN:
        return True
    return fault.executed is Executed.MAYBE and (fault.status is None or _states_effect(fault))


def _states_effect(fault: Fault) -> bool:
    origin = fault.origin
    if origin is None or origin.complete:
        return True
    return origin.record is not None and origin.record.get("executed") in {"maybe", "yes"}


def _trace_id(fault: Fault) -> str | None:
    """Return the upstream's trace id, so that one id finds the failure in the logs of both services."""
    found = fault.trace_id or fault.extensions.get("trace_id")
    return found if isinstance(found, str) and re.fullmatch(_TRACE, found) else None


def is_conformant(fault: Fault) -> bool:
    """
    Return whether this is an AdCP error, received as one with any code, or made here with a code that AdCP allows.

    >>> is_conformant(Fault(code="BUDGET_TOO_LOW", vocabulary="adcp")), is_conformant(Fault(code="TIMEOUT"))
    (True, False)
    """
    if fault.vocabulary != VOCABULARY.name or (fault.origin is not None and fault.origin.dialect != "adcp"):
        return False
    if fault.origin is not None:
        return True
    return is_standard_code(fault.code) or is_vendor_code(fault.code)


def _adcp_fault(code: str, *, executed: Executed = Executed.MAYBE, **more: Any) -> Fault:
    row = VOCABULARY.row(code)
    recovery = more.pop("recovery", row.recovery)
    return Fault(
        code=code,
        message=more.pop("message", row.message),
        recovery=recovery,
        vocabulary=VOCABULARY.name,
        executed=executed,
        actor=row.actor_under(recovery),
        **more,
    )


def _corrections(fault: Fault) -> dict[str, Any]:
    """Return what our caller can correct: the fields at fault, and redacted suggestions."""
    parts = tuple(
        _adcp_fault("VALIDATION_ERROR", executed=fault.executed, **_field_and_suggestions(part))
        for part in fault.errors[:_MAX_PARTS]
    )
    return {"errors": parts, **_field_and_suggestions(fault)}


def _field_and_suggestions(fault: Fault) -> dict[str, Any]:
    from amends.core.redaction import find, redact
    from amends.core.text import strip, truncate

    field = fault.field
    if field is not None and (re.fullmatch(_FIELD, field) is None or find(field)):
        field = None
    suggestions = (redact(truncate(strip(each), _MAX_SUGGESTION)) for each in fault.suggestions)
    return {"field": field, "suggestions": tuple(suggestions)}
