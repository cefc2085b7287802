"""Compares the fault of an SDK's exception with the facts that a case expects."""

import msgspec

from amends import Operation, decide, from_exception

PROSE = "hunter2 said so in prose"
"""The message of every answer. It must not be in any fault."""
ANSWERS = {
    "quota": {"code": "QUOTA_EXCEEDED", "recovery": "terminal", "executed": "no", "action": "escalate"},
    "throttle": {"code": "RATE_LIMITED", "recovery": "transient", "executed": "no", "action": "retry"},
    "overload": {"code": ("OVERLOADED", "SERVICE_UNAVAILABLE"), "recovery": "transient"},
    "unavailable": {"code": ("OVERLOADED", "SERVICE_UNAVAILABLE", "BAD_GATEWAY"), "recovery": "transient", "executed": "maybe", "action": "verify"},
    "context": {"code": ("CONTEXT_TOO_LONG", "CONTENT_TOO_LARGE"), "recovery": "correctable", "executed": "no", "action": "fix"},
    "content": {"code": "CONTENT_REFUSED", "recovery": "correctable", "executed": "no", "action": "fix"},
    "credentials": {"code": "UNAUTHENTICATED", "recovery": "correctable", "executed": "no", "action": "fix"},
    "permission": {"code": "PERMISSION_DENIED", "recovery": "terminal", "executed": "no", "action": "escalate"},
    "missing": {"code": "NOT_FOUND", "recovery": "correctable", "executed": "no", "action": "fix"},
    "invalid": {"code": ("VALIDATION_ERROR", "BAD_REQUEST"), "recovery": "correctable", "executed": "no", "action": "fix"},
    "conflict": {"code": "CONFLICT", "recovery": "correctable", "executed": "no", "action": "fix"},
    # OpenAI's own SDK repeats its 409. A framework's exception may not say that the service was OpenAI, and one of the
    # application may have done more than the call that failed.
    "openai conflict": {"code": "CONFLICT", "recovery": ("correctable", "transient"), "executed": ("no", "maybe")},
    "again": {"code": "CONFLICT", "recovery": "transient", "executed": "no", "action": "retry"},
    "internal": {"code": "INTERNAL_ERROR", "recovery": "uncertain", "executed": "maybe", "action": "verify"},
    "refused": {"code": "SERVICE_UNAVAILABLE", "recovery": "transient", "executed": "no", "action": "retry"},
    "lost": {"code": "SERVICE_UNAVAILABLE", "recovery": "transient", "executed": "maybe", "action": "verify"},
    "not-started": {"code": "TIMEOUT", "recovery": "transient", "executed": "no", "action": "retry"},
    "timeout": {"code": "TIMEOUT", "recovery": "transient", "executed": "maybe", "action": "verify"},
    "cancelled": {"code": "CANCELLED", "recovery": "terminal"},
    "card": {"code": "PAYMENT_REQUIRED", "recovery": "correctable", "executed": "no", "action": "fix"},
    "permanent": {"recovery": "terminal", "action": "escalate"},
    "untrusted": {"code": "SERVICE_UNAVAILABLE", "recovery": "terminal", "executed": "no", "action": "escalate"},
}  # fmt: skip
"""A kind of failure → the facts of its fault."""


def facts(error):
    """Return the facts of an exception's fault."""
    fault = from_exception(error)
    return {
        "code": fault.code,
        "recovery": fault.recovery.value,
        "executed": fault.executed.value,
        "actor": fault.actor.value,
        "retry_after": fault.retry_after,
        "field": fault.field,
        "word": (fault.details or {}).get("code"),
        "trace_id": fault.trace_id,
        "doc_uri": fault.doc_uri,
        "attempt": fault.attempt,
        "status": fault.status,
        "action": decide(fault, operation=Operation()).action.value,
        "prose": "hunter2" in str(msgspec.to_builtins(fault)),
    }


def difference(error, kind, **more):
    """Return the facts that are not those of a kind and of `more`: name → (expected, found)."""
    found = facts(error)
    expected = {"prose": False, **(ANSWERS[kind] if kind else {}), **more}
    return {
        name: (value, found[name])
        for name, value in expected.items()
        if not (found[name] in value if isinstance(value, tuple) else _same(found[name], value))
    }


def _same(found, value):
    return abs(found - value) <= 0.01 if isinstance(value, float) and found is not None else found == value


def raised(call, *arguments, **more):
    """Return the exception of a call."""
    try:
        call(*arguments, **more)
    except BaseException as error:
        return error
    raise AssertionError("the call raised nothing")


def wrong(cases, call):
    """Return the cases that are not read as expected; `call(answer)` makes the SDK raise."""
    found = {}
    for name, answer, kind, *more in cases:
        try:
            error = raised(call, answer)
        except AssertionError:
            found[name] = "raised nothing"
            continue
        if differs := difference(error, kind, **(more[0] if more else {})):
            found[name] = (type(error).__name__, differs)
    return found
