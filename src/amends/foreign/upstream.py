"""
A failure of something we called, told to the one who called us (S4's rules for chains, A18).

1. What is conformant already passes untouched, so telling twice is telling once.
2. Everything else becomes one of three words, classified from our caller's side: a rate limit, an unavailable
   service, or, only where we are told that the caller can mend it, an invalid request.
3. Nothing of the upstream's text, address or body goes along: a wait, the number of tries, whether it may have
   happened, and in the third case where to look.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from amends.carriers.extraction import extract
from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.hints import usable
from amends.core.vocabularies.adcp import VOCABULARY, is_standard_code, is_vendor_code
from amends.core.vocabulary import row_for
from amends.foreign.exceptions import from_exception, whole
from amends.foreign.rules import RULES, WAIT, Rule

__all__ = ["WAIT", "from_upstream", "from_upstreams"]

_TRACE = r"(?!0{32})[0-9a-f]{32}"
"""An id of W3C Trace Context: a number, and nothing that could be prose."""
_FIELD = r"[\w.$/~\[\]*-]{1,256}"
"""A pointer or a path, and nothing that could be prose."""
_MAX_SUGGESTION = 256
_MAX_PARTS = 100


def from_upstream(failure: Any, *, caller_can_fix: bool = False, rules: Iterable[Rule] = RULES) -> Fault:
    """
    An upstream's failure in AdCP's words, as our own caller should hear it.

    Args:
        failure: an exception, a Fault, or a response as `extract` takes it. One in which no error can be found
            counts as a failure all the same.
        caller_can_fix: our caller wrote what the upstream refused. Only then is the answer correctable, with the
            fields at fault and redacted suggestions. Refused credentials are ours and never the caller's.
        rules: the table that decides: `amends.foreign.rules.RULES`, or yours in front of it.

    >>> told = from_upstream(ConnectionResetError("billing.internal:8443"))
    >>> told.code, told.recovery.value, told.executed.value
    ('SERVICE_UNAVAILABLE', 'transient', 'maybe')
    >>> from_upstream({"status": 429, "headers": {}}).retry_after
    10.0

    """
    fault = _read(failure)
    if fault is None:
        return _told("SERVICE_UNAVAILABLE")
    if _conformant(fault):
        return fault
    facts: dict[str, Any] = {"executed": fault.executed, "attempt": fault.attempt, "trace_id": _trace(fault)}
    wait = usable(fault.vocabulary, fault.retry_after)
    everyday = row_for(fault.vocabulary, fault.code, fault.status).everyday
    for rule in rules:
        if rule.fits(fault, everyday, caller_can_fix=caller_can_fix):
            more = _fixable(fault) if rule.fixable else {}
            more |= {
                name: value for name in ("recovery", "message") if (value := getattr(rule, name)) is not None
            }
            if not rule.fixable:
                more["retry_after"] = rule.wait if wait is None else wait
            return _told(rule.code, **more, **facts)
    return _told("SERVICE_UNAVAILABLE", retry_after=wait, **facts)


def _trace(fault: Fault) -> str | None:
    """The upstream's trace id, which is what somebody asks both of us by."""
    found = fault.trace_id or fault.extensions.get("trace_id")
    return found if isinstance(found, str) and re.fullmatch(_TRACE, found) else None


def from_upstreams(
    failures: Iterable[Any], *, caller_can_fix: bool = False, rules: Iterable[Rule] = RULES
) -> Fault:
    """
    The failures of several upstreams as one, each kept in `errors` with its own code and recovery.

    A single one is told as `from_upstream` tells it.

    >>> told = from_upstreams([TimeoutError(), {"status": 429, "headers": {"Retry-After": "30"}}])
    >>> told.code, told.retry_after, [part.code for part in told.errors]
    ('SERVICE_UNAVAILABLE', 30.0, ['SERVICE_UNAVAILABLE', 'RATE_LIMITED'])

    Raises:
        ValueError: when there is none.

    """
    rules = tuple(rules)
    parts = [from_upstream(failure, caller_can_fix=caller_can_fix, rules=rules) for failure in failures]
    if not parts:
        raise ValueError("there is no failure to tell of: pass at least one")
    return parts[0] if len(parts) == 1 else whole(parts, ("SERVICE_UNAVAILABLE", VOCABULARY.name))


def _read(failure: Any) -> Fault | None:
    if type(failure) is Fault:
        return failure
    if issubclass(type(failure), BaseException):
        return from_exception(failure)
    try:
        return extract(failure)
    except Exception:  # noqa: BLE001 - it is somebody else's object
        return None


def _conformant(fault: Fault) -> bool:
    """An AdCP error, received as one or made here, with a code that AdCP allows: not any object that has a code."""
    if fault.vocabulary != VOCABULARY.name or (fault.origin is not None and fault.origin.dialect != "adcp"):
        return False
    return is_standard_code(fault.code) or is_vendor_code(fault.code)


def _told(code: str, *, executed: Executed = Executed.MAYBE, **more: Any) -> Fault:
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


def _fixable(fault: Fault) -> dict[str, Any]:
    """What the caller can correct: the fields, and redacted suggestions."""
    parts = tuple(_part(part, fault.executed) for part in fault.errors[:_MAX_PARTS])
    return {"errors": parts, **_where(fault)}


def _part(fault: Fault, executed: Executed) -> Fault:
    return _told("VALIDATION_ERROR", executed=executed, **_where(fault))


def _where(fault: Fault) -> dict[str, Any]:
    """The field at fault, and the steps that are suggested."""
    from amends.core.redaction import find, redact
    from amends.core.text import strip, truncate

    field = fault.field
    if field is not None and (re.fullmatch(_FIELD, field) is None or find(field)):
        field = None
    steps = (redact(truncate(strip(step), _MAX_SUGGESTION)) for step in fault.suggestions)
    return {"field": field, "suggestions": tuple(steps)}
