"""
What to do about a failure. Pure: the clock and the dice are arguments.

Only the code, the recovery class, `executed`, and numbers take part. Text never does (A20): a message that says
"please retry" changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from amends.core.backoff import Backoff
from amends.core.enums import CORRECTABLE, NOT_EXECUTED, TERMINAL, TRANSIENT, UNCERTAIN, Action
from amends.core.fault import Fault
from amends.core.hints import usable
from amends.core.operation import Operation
from amends.core.policy import DEFAULT, Policy
from amends.core.validate import check_fault
from amends.core.vocabulary import row_for

__all__ = ["REASONS", "Decision", "State", "decide"]

REASONS: Mapping[str, str] = {
    "hint": "the failing side said how long to wait",
    "row-wait": "the code's own wait, because the failing side named none",
    "backoff": "the failing side named no wait, so ours grows",
    "uncertain": "it may or may not help: one more try is worth it",
    "correctable": "the same request fails again; it has to change first",
    "terminal": "no program can help; somebody has to act",
    "effect-unknown": "it may have happened, and a repeat is not known to be safe",
    "verdict": "the failing side asked for no further try",
    "attempts": "every allowed try was made",
    "uncertain-spent": "one more try was made and did not help",
    "wait-too-long": "the wait asked for is longer than the waiting that is left",
    "deadline": "the time for this operation is over before another try could start",
    "refreshed": "the credentials were renewed, so the same request can succeed",
    "set-up": "what was missing has been set up, so the same request can succeed",
    "changed": "the request was changed, so it is worth sending",
    "not-happened": "somebody looked: it had not happened, so a repeat is safe",
    "parked": "the service did not come back within the waiting that is left",
    "budget": "too many of the calls are repeats already, for longer than the waiting that is left",
    "non-fatal": "the call succeeded; this is a remark on part of it",
    "nothing-found": "no structured error was found",
}
"""Every reason a decision can have, in words. The keys are stable and few, fit for metrics."""


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What has happened to an operation so far, the failure being decided included. Replaced, never changed."""

    attempt: int = 1
    """Calls made so far; 1 at the first failure."""
    below: int = 0
    """Further tries that somebody below made during the calls before this one."""
    waited: float = 0.0
    """Seconds waited so far."""
    uncertain: int = 0
    """Retries already spent on uncertain failures."""
    started: float | None = None
    """When the first call began, on the clock `now` is read from."""
    until: float | None = None
    """When the time of an operation around this one is over, on the same clock."""


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What to do, after how many seconds, and why (a key of REASONS)."""

    action: Action
    delay: float | None
    reason: str
    resume_in: float | None = None
    """When giving up because of time: seconds after which it makes sense to come back."""


_FIRST = State()
_UNKNOWN = Operation()

_RETRY, _ESCALATE = Action.RETRY, Action.ESCALATE
_FIX = Decision(action=Action.FIX, delay=None, reason="correctable")
_TERMINAL = Decision(action=Action.ESCALATE, delay=None, reason="terminal")
_VERIFY = Decision(action=Action.VERIFY, delay=None, reason="effect-unknown")
NON_FATAL = Decision(action=Action.NONE, delay=None, reason="non-fatal")
NOTHING_FOUND = Decision(action=Action.GENERIC, delay=None, reason="nothing-found")


def decide(
    fault: Fault,
    *,
    policy: Policy = DEFAULT,
    state: State = _FIRST,
    operation: Operation = _UNKNOWN,
    now: float | None = None,
    draw: float | None = None,
) -> Decision:
    """
    What to do about `fault`.

    Args:
        fault: the failure.
        policy: how far recovery may go.
        state: what has happened to the operation so far.
        operation: whether a repeat is safe. Says nothing: only what surely did not happen is repeated.
        now: the clock; needed for `policy.deadline` together with `state.started`.
        draw: a random number from 0 to 1 for jitter; None: no jitter.

    >>> decide(Fault(code="RATE_LIMITED", vocabulary="adcp", retry_after=5.2))
    Decision(action=<Action.RETRY: 'retry'>, delay=6.0, reason='hint', resume_in=None)

    """
    if fault.__class__ is not Fault:
        check_fault("decide", fault)
    recovery = fault.recovery
    if recovery is CORRECTABLE:
        return _fix(fault, policy) if policy.fallback else _FIX
    if recovery is TERMINAL:
        return _give_up(policy, _TERMINAL)
    if fault.executed is not NOT_EXECUTED and not operation.repeatable:
        return _VERIFY

    attempts, backoff, uncertain = policy.limits(fault)
    hint = None if fault.retry_after is None else usable(fault.vocabulary, fault.retry_after)
    if attempts is not None or fault.max_retries is not None or recovery is not TRANSIENT:
        stop = spent(fault, state, attempts, uncertain)
        if stop is not None:
            asked = None if hint is None else _asked(fault, hint)
            return _give_up(policy, Decision(action=_ESCALATE, delay=None, reason=stop, resume_in=asked))

    delay, reason = (hint, "hint") if hint is not None else _own_wait(fault, state, backoff)
    jittered = delay
    if draw is not None:
        # A wait that was asked for is jittered upwards only; one of our own downwards.
        jittered = (backoff.jitter if reason == "backoff" else backoff.above)(delay, draw)
    if recovery is UNCERTAIN:
        reason = "uncertain"
    if policy.max_wait is not None or now is not None:
        late = too_late(policy, state, now, min(delay, jittered))
        if late is not None:
            asked = delay if hint is None else _asked(fault, hint)
            return _give_up(policy, Decision(action=_ESCALATE, delay=None, reason=late, resume_in=asked))
        # Jitter never carries a wait past a bound it kept without it.
        if jittered > delay and too_late(policy, state, now, jittered) is not None:
            jittered = delay
    return Decision(action=_RETRY, delay=jittered, reason=reason)


def _asked(fault: Fault, hint: float) -> float:
    """The whole wait that was asked for: no call waits longer than an hour, but coming back sooner is of no use."""
    retry_after = fault.retry_after
    return hint if retry_after is None or retry_after < hint else float(retry_after)


def _own_wait(fault: Fault, state: State, backoff: Backoff) -> tuple[float, str]:
    """How long to wait where nobody says, and why."""
    row_wait = row_for(fault.vocabulary, fault.code, fault.status).wait
    delay = backoff.wait(state.attempt)
    # M4: a row's wait is the first one, and the least one later: no second try comes sooner than the first did.
    if row_wait is not None and (state.attempt == 1 or row_wait > delay):
        return row_wait, "row-wait"
    return delay, "backoff"


def spent(fault: Fault, state: State, attempts: int | None, uncertain: int) -> str | None:
    """Why no further try is allowed, or None. Tries made below us count, so that layers do not multiply."""
    made = state.attempt + state.below
    if attempts is not None:
        if fault.attempt is not None and fault.attempt > 1:
            made += fault.attempt - 1
        if made >= attempts:
            return "attempts"
    allowed = fault.max_retries
    if allowed is not None and 0 <= allowed < made:
        return "verdict"
    if fault.recovery is UNCERTAIN and state.uncertain >= uncertain:
        return "uncertain-spent"
    return None


def too_late(policy: Policy, state: State, now: float | None, delay: float) -> str | None:
    """Which bound of time a wait of `delay` would break, or None."""
    if policy.max_wait is not None and state.waited + delay > policy.max_wait:
        return "wait-too-long"
    if now is None:
        return None
    over = state.until
    if policy.deadline is not None and state.started is not None:
        own = state.started + policy.deadline
        over = own if over is None else min(own, over)
    return "deadline" if over is not None and now + delay >= over else None


def _fix(fault: Fault, policy: Policy) -> Decision:
    """Something has to change first; where that is a missing connection or sign-in, the other way will do (T9)."""
    missing = row_for(fault.vocabulary, fault.code, fault.status).qualifier in {"setup", "reauth"}
    return _give_up(policy, _FIX) if missing else _FIX


def _give_up(policy: Policy, escalation: Decision) -> Decision:
    """The declared other way where there is one, else the escalation."""
    if not policy.fallback:
        return escalation
    return Decision(
        action=Action.FALLBACK, delay=None, reason=escalation.reason, resume_in=escalation.resume_in
    )
