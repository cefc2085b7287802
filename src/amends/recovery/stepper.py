"""
`Stepper`: the attempts of one operation and the decisions about them.

Pure: every method returns a new Stepper; the time and random numbers are arguments.

    stepper = Stepper(policy=policy, operation=operation)
    stepper = stepper.failed(fault, started=0.0, ended=0.2, draw=0.5)
    stepper.decision            # what to do next
    stepper = stepper.waited(1.0)
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from amends.core.decision import Decision, State, choose, spent, too_late
from amends.core.enums import Action, Executed, Recovery
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.policy import DEFAULT, Policy
from amends.core.vocabulary import row_for
from amends.proof import Claim, Proof, rests_on
from amends.recovery.history import Attempt

__all__ = ["Stepper", "remedy_for"]

_NOTHING_YET = State(attempt=0)
_UNKNOWN = Operation()


def remedy_for(fault: Fault) -> str | None:
    """Return the hook that can remove the cause of this failure: "refresh", "setup", or None."""
    row = row_for(fault.vocabulary, fault.code, fault.status)
    if row.qualifier == "setup":
        return "setup"
    if row.qualifier == "reauth" or row.everyday == "UNAUTHENTICATED":
        return "refresh"
    return None


class Stepper(msgspec.Struct, frozen=True, kw_only=True):
    """
    The attempts so far and the last decision.

    Use it to drive recovery from a loop of your own; `recover` does so.

    >>> stepper = Stepper(operation=Operation(read_only=True))
    >>> stepper = stepper.failed(Fault(code="RATE_LIMITED", retry_after=2), started=0.0, ended=0.2, draw=0.0)
    >>> stepper.decision.action.value, stepper.decision.delay
    ('retry', 2.0)
    """

    policy: Policy = DEFAULT
    operation: Operation = _UNKNOWN
    state: State = _NOTHING_YET
    history: tuple[Attempt, ...] = ()
    remedies: frozenset[str] = frozenset()
    """The hooks that have run. Each is used once per operation."""
    fault: Fault | None = None
    """The last failure; None before the first."""
    verdict: Decision | None = None

    @property
    def decision(self) -> Decision:
        """
        What to do about the last failure.

        Raises:
            LookupError: before the first failure.

        """
        if self.verdict is None:
            raise LookupError("no call has failed yet, so there is no decision")
        return self.verdict

    @property
    def tries(self) -> int:
        """The number of calls made, including those of recoveries inside the calls."""
        return self.state.attempt + self.state.below

    @property
    @rests_on(Claim.NOT_HAPPENED, Proof.RECORD, Proof.VERIFIED)
    def executed(self) -> Executed:
        """Whether the operation may have had its effect: in its last call, or in an earlier one that was repeated."""
        worst = Executed.NO
        for attempt in reversed(self.history):
            fault, decision = attempt.fault, attempt.decision
            if fault is None or (decision is not None and decision.reason == "not-happened"):
                break  # a check found that nothing had happened up to here
            if fault.executed is Executed.YES:
                return Executed.YES
            if fault.executed is Executed.MAYBE:
                worst = Executed.MAYBE
        return worst

    def patience(self, now: float) -> float:
        """Return how many more seconds the operation may wait from `now`; infinity without a bound."""
        policy, state = self.policy, self.state
        left = float("inf") if policy.max_wait is None else policy.max_wait - state.waited
        if policy.deadline is not None and state.started is not None:
            left = min(left, state.started + policy.deadline - now)
        if policy.ends_within is not None and state.started is not None:
            left = min(left, state.started + policy.ends_within - state.took - now)
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
        result: object = None,
        parked: float = 0.0,
        waited_below: float = 0.0,
        unrepeatable: str | None = None,
        repeatable: bool = False,
        target: str = "",
        exact: bool = False,
        counted: bool = True,
    ) -> Stepper:
        """
        Add a failed call and decide about it.

        `waited_below` is how long recoveries inside the call waited; it counts towards the policy's bound.
        `unrepeatable` is the reason why no repeat can help, if the caller knows one. `repeatable`: a repeat after this
        failure is safe, whatever the operation declares. `target`: the target of a Failover that was called. `exact`: the
        fault's wait is the caller's own word. `counted`: the call is one of the policy's attempts.
        """
        before = self.state
        state = replace(
            before,
            attempt=before.attempt + counted,
            waited=before.waited + waited_below,
            started=started if before.started is None else before.started,
            unrepeatable=unrepeatable,
            exact=exact,
            took=max(0.0, ended - started),
        )
        operation = replace(self.operation, idempotent=True) if repeatable else self.operation
        decision = choose(fault, self.policy, state, operation, ended, draw)
        retried = decision.action is Action.RETRY
        attempt = Attempt(
            number=len(self.history) + 1,
            started=started,
            duration=ended - started,
            parked=parked,
            fault=fault,
            error=error,
            result=result,
            decision=decision,
            target=target,
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

    def succeeded(self, *, started: float, ended: float, parked: float = 0.0, target: str = "") -> Stepper:
        """Add the call that succeeded."""
        state = replace(self.state, attempt=self.state.attempt + 1)
        attempt = Attempt(
            number=state.attempt, started=started, duration=ended - started, parked=parked, target=target
        )
        return replace(self, state=state, history=(*self.history, attempt))

    def waited(self, seconds: float) -> Stepper:
        """Add a wait. It counts towards the policy's bound and is noted in the last attempt."""
        history = self.history
        if history:
            last = history[-1]
            history = (*history[:-1], replace(last, wait=last.wait + seconds))
        return replace(self, state=replace(self.state, waited=self.state.waited + seconds), history=history)

    def remedied(self, name: str, reason: str, now: float) -> Stepper:
        """Decide to repeat the call, because the hook `name` removed the cause, if the bounds allow it."""
        attempts, _, _ = self.policy.limits(self._failure)
        if self.state.most is not None:
            attempts = self.state.most if attempts is None else min(attempts, self.state.most)
        # The fault describes the situation before the remedy, so only attempts and time limit the repeat.
        stop = spent(_BARE, self.state, attempts, 0) or too_late(self.policy, self.state, now, 0.0)
        if stop is None:
            again = replace(self, remedies=self.remedies | {name})
            return again.with_decision(Decision(action=Action.RETRY, delay=0.0, reason=reason))
        return self.gave_up(stop)

    def moved(self, now: float) -> Stepper:
        """Decide to call another target of a Failover at once, if the bounds allow a call; else keep the decision."""
        attempts, _, _ = self.policy.limits(self._failure)
        if spent(_BARE, self.state, attempts, 0) or too_late(self.policy, self.state, now, 0.0):
            return self
        return self.with_decision(Decision(action=Action.RETRY, delay=0.0, reason="next-target"))

    @rests_on(Claim.NOT_HAPPENED, Proof.VERIFIED)
    def not_happened(self, now: float, draw: float | None = None) -> Stepper:
        """Decide again, after `verify` found that the failed call had no effect."""
        state = self.state
        # `failed` has already added the fault's own attempts to the state.
        fault = replace(self._failure, executed=Executed.NO, attempt=None)
        decision = choose(fault, self.policy, state, self.operation, now, draw)
        if decision.action is Action.RETRY:
            state = replace(state, uncertain=state.uncertain + (fault.recovery is Recovery.UNCERTAIN))
            decision = replace(decision, reason="not-happened")
        return replace(self, state=state).with_decision(decision)

    def gave_up(self, reason: str, resume_in: float | None = None) -> Stepper:
        """Decide to give up, or to fall back if there is a fallback, for a reason outside the fault."""
        action = Action.FALLBACK if self.policy.fallback else Action.ESCALATE
        return self.with_decision(Decision(action=action, delay=None, reason=reason, resume_in=resume_in))

    def with_decision(self, decision: Decision) -> Stepper:
        """Replace the decision about the last failure."""
        history = self.history
        if history:
            history = (*history[:-1], replace(history[-1], decision=decision))
        return replace(self, history=history, verdict=decision)

    @property
    def _failure(self) -> Fault:
        if self.fault is None:
            raise LookupError("no call has failed yet")
        return self.fault


_BARE = Fault(code="SERVICE_UNAVAILABLE")
