"""
One operation's way through its attempts. Pure: every step returns a new Stepper, the clock and dice are arguments.

    stepper = Stepper(policy=policy, operation=operation)
    stepper = stepper.failed(fault, started=0.0, ended=0.2, draw=0.5)
    stepper.decision            # what to do about it
    stepper = stepper.waited(1.0)
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from amends.core.decision import Decision, State, decide, spent, too_late
from amends.core.enums import Action, Executed, Recovery
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.policy import DEFAULT, Policy
from amends.core.vocabulary import row_for
from amends.recovery.history import Attempt

__all__ = ["Stepper", "remedy_for"]

_NOTHING_YET = State(attempt=0)
_UNKNOWN = Operation()


def remedy_for(fault: Fault) -> str | None:
    """What may turn this failure into one worth repeating: "refresh" credentials, run the "setup", or None."""
    row = row_for(fault.vocabulary, fault.code, fault.status)
    if row.qualifier == "setup":
        return "setup"
    if row.qualifier == "reauth" or row.everyday == "UNAUTHENTICATED":
        return "refresh"
    return None


class Stepper(msgspec.Struct, frozen=True, kw_only=True):
    """What has been tried so far, and what was decided last."""

    policy: Policy = DEFAULT
    operation: Operation = _UNKNOWN
    state: State = _NOTHING_YET
    history: tuple[Attempt, ...] = ()
    remedies: frozenset[str] = frozenset()
    """Those used already: each helps once."""
    fault: Fault | None = None
    """The last failure; None before the first."""
    verdict: Decision | None = None

    @property
    def decision(self) -> Decision:
        """What to do about the last failure. Asked before there is one, it is a programming mistake."""
        if self.verdict is None:
            raise LookupError("nothing has failed yet, so nothing is decided")
        return self.verdict

    @property
    def tries(self) -> int:
        """Calls made in all, those that somebody below made included."""
        return self.state.attempt + self.state.below

    def patience(self, now: float) -> float:
        """How many more seconds may be waited from `now`; infinite without a bound."""
        policy, state = self.policy, self.state
        left = float("inf") if policy.max_wait is None else policy.max_wait - state.waited
        if policy.deadline is not None and state.started is not None:
            left = min(left, state.started + policy.deadline - now)
        if state.until is not None:
            left = min(left, state.until - now)
        return max(0.0, left)

    def failed(
        self,
        fault: Fault,
        *,
        started: float,
        ended: float,
        draw: float | None = None,
        error: BaseException | None = None,
        result: Any = None,
        parked: float = 0.0,
        waited_below: float = 0.0,
    ) -> Stepper:
        """After a call that failed: with the decision about it. `waited_below` is what a nested recovery waited."""
        before = self.state
        state = replace(
            before,
            attempt=before.attempt + 1,
            waited=before.waited + waited_below,
            started=started if before.started is None else before.started,
        )
        decision = decide(
            fault, policy=self.policy, state=state, operation=self.operation, now=ended, draw=draw
        )
        retried = decision.action is Action.RETRY
        attempt = Attempt(
            number=state.attempt,
            started=started,
            duration=ended - started,
            parked=parked,
            fault=fault,
            error=error,
            result=result,
            decision=decision,
        )
        return replace(
            self,
            state=replace(
                state,
                below=state.below + max(0, (fault.attempt or 1) - 1),
                uncertain=state.uncertain + (retried and fault.recovery is Recovery.UNCERTAIN),
            ),
            history=(*self.history, attempt),
            fault=fault,
            verdict=decision,
        )

    def succeeded(self, *, started: float, ended: float, parked: float = 0.0) -> Stepper:
        """After the call that succeeded."""
        state = replace(self.state, attempt=self.state.attempt + 1)
        attempt = Attempt(number=state.attempt, started=started, duration=ended - started, parked=parked)
        return replace(self, state=state, history=(*self.history, attempt))

    def waited(self, seconds: float) -> Stepper:
        """After waiting, which counts towards the policy's bound and is written to the last attempt."""
        history = self.history
        if history:
            last = history[-1]
            history = (*history[:-1], replace(last, wait=last.wait + seconds))
        return replace(self, state=replace(self.state, waited=self.state.waited + seconds), history=history)

    def remedied(self, name: str, reason: str, now: float) -> Stepper:
        """After a hook removed the cause: the same request once more, where the bounds allow it."""
        attempts, _, _ = self.policy.limits(self._failure)
        # The verdict of the failing side, and its class, were about the world before the remedy; attempts still count.
        stop = spent(_BARE, self.state, attempts, 0) or too_late(self.policy, self.state, now, 0.0)
        if stop is None:
            again = replace(self, remedies=self.remedies | {name})
            return again.overruled(Decision(action=Action.RETRY, delay=0.0, reason=reason))
        return self.gave_up(stop)

    def not_happened(self, now: float, draw: float | None = None) -> Stepper:
        """After somebody looked and found no effect: decided again, knowing that a repeat is safe."""
        state = self.state
        # What the fault said about tries below is in the state by now.
        fault = replace(self._failure, executed=Executed.NO, attempt=None)
        decision = decide(
            fault, policy=self.policy, state=state, operation=self.operation, now=now, draw=draw
        )
        if decision.action is Action.RETRY:
            state = replace(state, uncertain=state.uncertain + (fault.recovery is Recovery.UNCERTAIN))
            decision = replace(decision, reason="not-happened")
        return replace(self, state=state).overruled(decision)

    def gave_up(self, reason: str, resume_in: float | None = None) -> Stepper:
        """No further try, for a reason outside the fault: the declared other way where there is one."""
        action = Action.FALLBACK if self.policy.fallback else Action.ESCALATE
        return self.overruled(Decision(action=action, delay=None, reason=reason, resume_in=resume_in))

    def overruled(self, decision: Decision) -> Stepper:
        """With another decision about the last failure."""
        history = self.history
        if history:
            history = (*history[:-1], replace(history[-1], decision=decision))
        return replace(self, history=history, verdict=decision)

    @property
    def _failure(self) -> Fault:
        if self.fault is None:
            raise LookupError("nothing has failed yet")
        return self.fault


_BARE = Fault(code="SERVICE_UNAVAILABLE")
