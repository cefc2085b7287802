"""
Decide what to do about a failure. Pure: the clock and the random number are arguments.

A decision depends on the code, the recovery class, `executed`, and numbers. It never depends on text (A20): a message
that says "please retry" changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from amends.core.backoff import Backoff
from amends.core.enums import Action, Executed, Recovery
from amends.core.fault import Fault, check_fault
from amends.core.hints import usable
from amends.core.named_options import NamedOptions
from amends.core.operation import Operation
from amends.core.policy import DEFAULT, Policy
from amends.core.validate import check_count, check_kind, check_seconds
from amends.core.vocabulary import row_for
from amends.core.wrong_calls import explains_wrong_calls

__all__ = ["REASONS", "Decision", "State", "choose", "decide"]

REASONS: Mapping[str, str] = {
    "hint": "the failing service said how long to wait",
    "row-wait": "the failing service named no wait; this is the default of the code",
    "backoff": "the failing service named no wait; ours grows with every try",
    "uncertain": "another try may or may not help; at most two are made",
    "correctable": "the same request would fail again; it has to change first",
    "terminal": "no program can help; a person has to act",
    "effect-unknown": "the call may have had its effect, and a repeat is not known to be safe",
    "verdict": "the failing service asked for no further try",
    "attempts": "every allowed try was made",
    "uncertain-spent": "the tries that an uncertain failure gets did not help",
    "wait-too-long": "the wait asked for is longer than the waiting time left",
    "deadline": "the time for this operation ends before another try could start",
    "refreshed": "the credentials were renewed, so the same request can succeed",
    "set-up": "what was missing has been set up, so the same request can succeed",
    "changed": "the request was changed, so it can be sent again",
    "next-target": "another service can do the same, so it is called instead",
    "not-happened": "a check found that it had not happened, so a repeat is safe",
    "queued": "other calls of the service failed, so this one waits for its turn",
    "parked": "the service did not recover within the waiting time left",
    "budget": "too many calls are retries already, for longer than the waiting time left",
    "bug": "the called code has a bug, so the same call would fail again",
    "not-in-on": "the option `on` does not name this exception",
    "delivered": "a part of the stream was delivered, so it does not start again",
    "non-fatal": "the call succeeded; the error is about a part of it",
    "nothing-found": "no structured error was found",
}
"""Every reason a decision can have, with its explanation. The keys are stable and few, so they can label metrics."""


class State(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True, metaclass=NamedOptions):
    """
    What happened to an operation so far, including the failure that is being decided. Immutable.

    Pass it to `decide` if you make the calls yourself; `recover` keeps it for you.

    >>> decide(Fault(code="RATE_LIMITED"), state=State(attempt=5)).reason
    'attempts'
    """

    attempt: int = 1
    """Calls made so far; 1 at the first failure."""
    below: int = 0
    """Further tries that lower layers made during the calls before this one."""
    waited: float = 0.0
    """Seconds waited so far."""
    uncertain: int = 0
    """Retries already spent on uncertain failures."""
    started: float | None = None
    """When the first call began, on the same clock as `now`."""
    took: float = 0.0
    """Seconds that the failed call took."""
    until: float | None = None
    """When the deadline of an enclosing operation ends, on the same clock."""
    most: int | None = None
    """Calls in all that the caller of this program has left; the policy's number counts if it is smaller."""
    unrepeatable: str | None = None
    """Why no repeat can help, a key of REASONS, if the caller knows that: the failure is a bug of the called code."""
    exact: bool = False
    """
    Whether the fault's wait is the caller's own word, as from `on=`. It is kept; one that a service names is not shorter
    than our own after the first repeat.
    """


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """
    What to do, after how many seconds, and why (a key of REASONS). `decide` returns it.

    >>> found = decide(Fault(code="RATE_LIMITED", retry_after=7.0))
    >>> str(found.action), found.delay, REASONS[found.reason]
    ('retry', 7.0, 'the failing service said how long to wait')
    """

    action: Action
    delay: float | None
    reason: str
    resume_in: float | None = None
    """When recovery gives up because of time: seconds after which another try makes sense."""


_FIRST = State()
_UNKNOWN = Operation()

_RETRY, _ESCALATE = Action.RETRY, Action.ESCALATE
_FIX = Decision(action=Action.FIX, delay=None, reason="correctable")
_TERMINAL = Decision(action=Action.ESCALATE, delay=None, reason="terminal")
_VERIFY = Decision(action=Action.VERIFY, delay=None, reason="effect-unknown")
NON_FATAL = Decision(action=Action.NONE, delay=None, reason="non-fatal")
NOTHING_FOUND = Decision(action=Action.GENERIC, delay=None, reason="nothing-found")


def _check_state(state: State) -> None:
    """Raise TypeError for a state with wrong values. Not in State itself, because recovery makes one for every call."""
    for name, count in (("attempt", state.attempt), ("below", state.below), ("uncertain", state.uncertain)):
        check_count(name, count)
    check_seconds("waited", state.waited)
    check_seconds("took", state.took)
    if state.started is not None:
        check_seconds("started", state.started)
    if state.until is not None:
        check_seconds("until", state.until)
    if state.most is not None:
        check_count("most", state.most)


@explains_wrong_calls
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
    Decide what to do about `fault`.

    Args:
        fault: the failure.
        policy: how far recovery may go.
        state: what happened to the operation so far.
        operation: whether a repeat is safe. The default promises nothing: only a call that had no effect is repeated.
        now: the current time; `policy.deadline` needs it together with `state.started`.
        draw: a random number from 0 to 1 for jitter; None: no jitter.

    >>> decide(Fault(code="RATE_LIMITED", vocabulary="adcp", retry_after=5.2))
    Decision(action=<Action.RETRY: 'retry'>, delay=6.0, reason='hint', resume_in=None)

    """
    check_fault("decide", fault)
    check_kind("policy", policy, Policy, "Policy(attempts=3)")
    check_kind("state", state, State, "State(attempt=2)")
    check_kind("operation", operation, Operation, "Operation(read_only=True)")
    _check_state(state)
    if now is not None:
        check_seconds("now", now)
    if draw is not None:
        check_seconds("draw", draw)
        if not 0 <= draw <= 1:
            raise ValueError("draw is a random number from 0 to 1")
    return choose(fault, policy, state, operation, now, draw)


def choose(
    fault: Fault, policy: Policy, state: State, operation: Operation, now: float | None, draw: float | None
) -> Decision:
    """Same as `decide`, for recovery, whose values need no check."""
    if not fault.fatal:
        return NON_FATAL
    recovery = fault.recovery
    if recovery is Recovery.CORRECTABLE:
        return _fix(fault, policy) if policy.fallback else _FIX
    if recovery is Recovery.TERMINAL:
        if fault.in_doubt and not operation.repeatable:
            return _VERIFY
        return _give_up(policy, _terminal(fault))
    if fault.executed is not Executed.NO and not operation.repeatable:
        if state.unrepeatable is not None:
            return Decision(action=Action.VERIFY, delay=None, reason=state.unrepeatable)
        return _VERIFY

    hint = None if fault.retry_after is None else usable(fault.vocabulary, fault.retry_after)
    if state.unrepeatable is not None:
        asked = None if hint is None else _asked(fault, hint)
        stopped = Decision(action=_ESCALATE, delay=None, reason=state.unrepeatable, resume_in=asked)
        return _give_up(policy, stopped)
    attempts, backoff, uncertain = policy.limits(fault)
    if state.most is not None:
        attempts = state.most if attempts is None else min(attempts, state.most)
    if attempts is not None or fault.max_retries is not None or recovery is not Recovery.TRANSIENT:
        stop = spent(fault, state, attempts, uncertain)
        if stop is not None:
            asked = None if hint is None else _asked(fault, hint)
            return _give_up(policy, Decision(action=_ESCALATE, delay=None, reason=stop, resume_in=asked))

    delay, reason = (hint, "hint") if hint is not None else _own_wait(fault, state, backoff)
    jittered = delay
    if draw is not None:
        # Jitter lengthens a wait that the service asked for, and shortens one of our own.
        jittered = (backoff.jitter if reason == "backoff" else backoff.above)(delay, draw)
    if hint is not None and state.attempt > 1 and not (state.exact or _at_once(fault, hint)):
        # One repeat may come as early as the service says. Then it was wrong, so later ones do not come before our own.
        own = backoff.wait(state.attempt)
        if hint < backoff.jitter(own, 1.0):
            delay, jittered, reason = own, max(backoff.jitter(own, draw), jittered), "backoff"
    if recovery is Recovery.UNCERTAIN:
        reason = "uncertain"
    if policy.max_wait is not None or now is not None:
        late = too_late(policy, state, now, min(delay, jittered))
        if late is not None:
            asked = delay if hint is None else max(delay, _asked(fault, hint))
            return _give_up(policy, Decision(action=_ESCALATE, delay=None, reason=late, resume_in=asked))
        # Jitter must not push a wait over a bound that it kept without jitter.
        if jittered > delay and too_late(policy, state, now, jittered) is not None:
            jittered = delay
    return Decision(action=_RETRY, delay=jittered, reason=reason)


def _at_once(fault: Fault, hint: float) -> bool:
    """Return whether the code itself says that the same call may be made again immediately (exit 7 of S2)."""
    return hint == 0.0 and row_for(fault.vocabulary, fault.code, fault.status).wait == 0.0


def _terminal(fault: Fault) -> Decision:
    """Return the decision for a terminal fault. A quota that starts again at a known time says when to come back."""
    if fault.retry_after is None or fault.code != "QUOTA_EXCEEDED":
        return _TERMINAL
    return Decision(
        action=_ESCALATE, delay=None, reason="terminal", resume_in=max(0.0, float(fault.retry_after))
    )


def _asked(fault: Fault, hint: float) -> float:
    """Return the whole wait that was asked for, also above an hour: a call before that time would fail again."""
    retry_after = fault.retry_after
    return hint if retry_after is None or retry_after < hint else float(retry_after)


def _own_wait(fault: Fault, state: State, backoff: Backoff) -> tuple[float, str]:
    """Return how long to wait if the service does not say, and the reason."""
    row_wait = row_for(fault.vocabulary, fault.code, fault.status).wait
    delay = backoff.wait(state.attempt)
    # M4: a row's wait is the first wait, and the shortest of the later ones.
    if row_wait is not None and (state.attempt == 1 or row_wait > delay):
        return row_wait, "row-wait"
    return delay, "backoff"


def spent(fault: Fault, state: State, attempts: int | None, uncertain: int) -> str | None:
    """
    Return why no further try is allowed, or None.

    Tries of lower layers count (M8), so that layers do not multiply them. A further call is expected to cost as many tries
    as the last one; it is made only if that exceeds the limit by at most one.
    """
    made = state.attempt + state.below
    if attempts is not None:
        cost = 1 if fault.attempt is None else max(1, fault.attempt)
        made += cost - 1
        if made >= attempts or made + cost > attempts + 1:
            return "attempts"
    allowed = fault.max_retries
    if allowed is not None and 0 <= allowed < made:
        return "verdict"
    if fault.recovery is Recovery.UNCERTAIN and state.uncertain >= uncertain:
        return "uncertain-spent"
    return None


def too_late(policy: Policy, state: State, now: float | None, delay: float) -> str | None:
    """Return which bound of time a wait of `delay` would exceed, or None."""
    if policy.max_wait is not None and state.waited + delay > policy.max_wait:
        return "wait-too-long"
    if now is None:
        return None
    # The next call is expected to take as long as the failed one.
    ends = now + delay + state.took
    if (
        policy.ends_within is not None
        and state.started is not None
        and ends > state.started + policy.ends_within
    ):
        return "deadline"
    over = state.until
    if policy.deadline is not None and state.started is not None:
        own = state.started + policy.deadline
        over = own if over is None else min(own, over)
    return "deadline" if over is not None and now + delay >= over else None


def _fix(fault: Fault, policy: Policy) -> Decision:
    """Decide about a correctable fault: fall back if a connection or a sign-in is missing (T9), else fix the request."""
    missing = row_for(fault.vocabulary, fault.code, fault.status).qualifier in {"setup", "reauth"}
    return _give_up(policy, _FIX) if missing else _FIX


def _give_up(policy: Policy, escalation: Decision) -> Decision:
    """Return a fallback if the policy has one, else the escalation."""
    if not policy.fallback:
        return escalation
    return Decision(
        action=Action.FALLBACK, delay=None, reason=escalation.reason, resume_in=escalation.resume_in
    )
