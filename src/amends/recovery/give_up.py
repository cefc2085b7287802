"""
What recovery raises or returns when it gives up, as the option `raises` says, and the notes on it.

The notes are for the developer who reads the traceback. They say what was called, what was tried, why recovery gave up, what
to do, and where to read more. They contain no text of the failing service.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from amends.core.decision import REASONS, Decision
from amends.core.enums import Actor, Executed, Recovery
from amends.core.fault import Fault
from amends.core.text import one_line
from amends.core.vocabulary import vocabulary
from amends.errors.base import FaultError
from amends.recovery.events import describe_call, request_facts
from amends.recovery.history import History
from amends.recovery.stepper import Stepper

__all__ = ["ADVICE", "final_error", "notes_for", "with_fault", "with_wait"]


def final_error(stepper: Stepper, cause: BaseException | None, notes: list[str]) -> FaultError:
    """
    Return the typed error of an operation that failed, with its decision and its history.

    `fault.attempt` is the number of calls made, so that a recovery around this one counts them. `fault.executed` is about all
    of them: a repeat that was refused does not undo an earlier call that may have had its effect. If the last exception
    was a FaultError, the new one has its class and its attributes, or the more specific class of its code: `except
    OutOfStock` keeps working.
    """
    fault = stepper.fault or Fault(code="INTERNAL_ERROR")
    if stepper.tries > 1:
        fault = replace(fault, attempt=stepper.tries)
    if fault.executed is Executed.NO and not stepper.operation.read_only:
        fault = replace(fault, executed=stepper.executed)
    error = FaultError.from_fault(fault)
    if isinstance(cause, FaultError):
        kind = type(cause)
        if not isinstance(error, kind):
            error = kind.__new__(kind)
            error._set_fault(fault)  # noqa: SLF001 - an error of this package
        error.__dict__ = {**cause.__dict__, **error.__dict__}
        error.__dict__.pop("__notes__", None)
    if error.key is None:
        error.key = stepper.operation.key
    error.decision, error.history = stepper.decision, History(stepper.history)
    for note in (*notes_for(stepper), *notes):
        error.add_note(note)
    return error


_LATER = frozenset({"attempts", "uncertain-spent", "wait-too-long", "deadline", "parked", "budget"})


def with_wait(stepper: Stepper) -> Stepper:
    """
    Return the stepper whose fault says when a call makes sense again, if it was bounded for an agent.

    A host that gets no wait calls again at once. Other callers read `decision.resume_in`.
    """
    fault, decision = stepper.fault, stepper.decision
    if stepper.policy.ends_within is None or fault is None or decision.reason not in _LATER:
        return stepper
    safe = fault.executed is Executed.NO or stepper.operation.repeatable
    if not safe or fault.recovery is not Recovery.TRANSIENT or fault.retry_after is not None:
        return stepper
    own = stepper.policy.limits(fault)[1].wait(max(1, stepper.state.attempt))
    wait = own if decision.resume_in is None else decision.resume_in
    return replace(stepper, fault=replace(fault, retry_after=wait))


def with_fault(original: BaseException, error: FaultError) -> BaseException:
    """
    Return the call's own exception with the attributes and the notes of the final error.

    An exception that does not allow further attributes is returned as it is.
    """
    attributes: Any = original
    try:
        attributes.fault, attributes.decision = error.fault, error.decision
        attributes.history, attributes.key = error.history, error.key
        attributes.key_is_new = error.key_is_new
        earlier = getattr(original, "__notes__", ())
        for note in getattr(error, "__notes__", ()):
            if note not in earlier:
                original.add_note(note)
    except (AttributeError, TypeError):
        pass
    return original


_LONGEST = 1000
"""Bytes of an address in a note."""

ADVICE: Mapping[str, str] = {
    "attempts": "call again later, allow more calls with policy=Policy(attempts=…), or give a fallback=",
    "verdict": "the service asked for no further call: act on the failure itself, or give a fallback=",
    "uncertain-spent": "look at the service; further calls are allowed with policy=Policy(uncertain=…)",
    "wait-too-long": "call again after the wait (error.decision.resume_in), or allow it with policy=Policy(max_wait=…)",
    "deadline": "call again with more time, policy=Policy(deadline=…), or give a fallback=",
    "parked": "the service is down for all callers: call again later, or give a fallback=",
    "budget": "too many calls fail at the same time: call again later, or give a fallback=",
    "correctable": "change the request: error.fault.field and error.fault.suggestions say how; on_fix= can do it",
    "terminal": "a person has to act; a repeat cannot help",
    "effect-unknown": "if a repeat is safe, say so with read_only=True, Operation(idempotent=True) or "
    "Operation(keyed=True); else give verify=, which finds out whether it happened",
    "bug": "fix the code that raised it; name the class in on=, or register it with amends.register, if it is no bug",
    "not-in-on": "add the exception's class to on= if it is to be repeated",
    "delivered": "start the stream again where it ended, if the service can do that (error.delivered items were received)",
}
"""What a developer can do, by the reason of the last decision."""

_SAME_KEY = "call again later with the same key (error.key), or find out whether it happened; with a new key it may happen twice"
_CHANGED = (
    "find out whether an earlier call happened, before you send a changed request: it would be another one"
)
_PEOPLE = {
    Actor.USER: "the user of this program has to act",
    Actor.OPERATOR: "the operator of the failing service has to act",
    Actor.PROVIDER: "a provider behind the failing service has to act",
}


def notes_for(stepper: Stepper) -> list[str]:
    """Return the notes for an operation that recovery gave up on."""
    fault = stepper.fault or Fault(code="INTERNAL_ERROR")
    last = stepper.history[-1] if stepper.history else None
    method, url = request_facts(
        stepper.operation, None if last is None else last.error, None if last is None else last.result
    )
    status = "" if fault.status is None else f" (HTTP {fault.status})"
    trace = fault.trace_id or stepper.operation.trace_id
    operation = stepper.operation
    may_have_happened = Executed.MAYBE in (fault.executed, stepper.executed) and not operation.read_only
    keyed = operation.key is not None and may_have_happened
    what = one_line(describe_call(stepper.operation.name, method, url), _LONGEST)
    return [
        f"amends: called {what}, got {one_line(fault.code)}{status}"
        + (f", trace id {one_line(trace)}" if trace else ""),
        f"amends: {_tries(stepper)}; gave up: {REASONS.get(stepper.decision.reason, stepper.decision.reason)}",
        f"amends: to do: {_advice(fault, stepper.decision, keyed=keyed)}",
        f"amends: read: {_where(fault)}",
    ]


def _tries(stepper: Stepper) -> str:
    """Return how many calls were made and how long recovery waited between them."""
    history = stepper.history
    if not history:
        return "no call was sent"
    calls = "1 call" if stepper.tries == 1 else f"{stepper.tries} calls"
    waits = [f"{attempt.wait:.3g}" for attempt in history if attempt.wait >= 0.0005]
    seconds = history[-1].started + history[-1].duration - history[0].started
    waited = f", waits {', '.join(waits)} s" if waits else ""
    return f"{calls} in {seconds:.3g} s{waited}"


def _advice(fault: Fault, decision: Decision, *, keyed: bool = False) -> str:
    if decision.reason == "terminal":
        return _PEOPLE.get(fault.actor, ADVICE["terminal"])
    advice = ADVICE.get(decision.reason, "act on error.fault")
    if keyed:
        # An earlier call may have happened. Another call would have another key, so that it may happen twice.
        if decision.reason == "correctable":
            advice = _CHANGED
        elif decision.reason in _LATER or decision.reason == "verdict":
            advice = _SAME_KEY
    if decision.resume_in is not None:
        advice = f"{advice}; a call can succeed in {_number(decision.resume_in)} s"
    return advice


def _number(seconds: float) -> str:
    """Return seconds with three digits, and long times as whole numbers: 86400, not 8.64e+04."""
    return f"{seconds:.0f}" if seconds >= 100 else f"{seconds:.3g}"


def _where(fault: Fault) -> str:
    """Return where the failure is explained: the documentation it names, and the command that explains its code."""
    known = fault.code in vocabulary(fault.vocabulary).rows if fault.vocabulary in _EXPLAINED else False
    command = f"amends explain {fault.code} --vocabulary {fault.vocabulary}" if known else "docs/recovery.md"
    return command if fault.doc_uri is None else f"{one_line(fault.doc_uri, _LONGEST)}, {command}"


_EXPLAINED = frozenset({"everyday", "http", "cli", "task", "adcp", "arcp"})
