"""
One attempt of a step, one attempt to undo it, or one check whether it happened. Each returns the records of its outcome.

The caller writes these records. Only `Started` is written here: a step that must not happen twice is in the log before it starts.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.errors.base import FaultError
from amends.stores.errors import StoreUnavailableError
from amends.tasks import telemetry
from amends.tasks.agent import Agent
from amends.tasks.attempt import connect, perform, to_task_fault
from amends.tasks.capability import Capability, invoke
from amends.tasks.context import Context, Question
from amends.tasks.entries import Asked, Doubted, Failed, Finished, Record, Started, Verified
from amends.tasks.events import publish
from amends.tasks.journal import Journal
from amends.tasks.lease_guard import LeaseGuard
from amends.tasks.plan import Step, fill_results
from amends.tasks.recovery import StepRecovery
from amends.tasks.registry import Registry
from amends.tasks.state import TaskState
from amends.tasks.steps import StepState
from amends.tasks.task_context import TaskContext

__all__ = ["Attempts"]

_NO_OPERATION = Operation()
_TOO_LATE = Fault(code="TIMEOUT", vocabulary="task", recovery=Recovery.TERMINAL, executed=Executed.NO)


class Attempts:
    """The attempts that one worker makes of one task's steps."""

    def __init__(self, registry: Registry, journal: Journal, guard: LeaseGuard) -> None:
        self._registry, self._journal, self._guard = registry, journal, guard
        self._task_context = TaskContext(registry, journal)

    @property
    def _state(self) -> TaskState:
        return self._journal.state

    async def attempt_step(self, name: str) -> list[Record]:
        """Attempt a step once and return the records of its outcome."""
        step, began = self._state.steps[name], self._registry.clock()
        plan = step.plan
        try:
            agent, capability = await self._registry.find(plan.type, plan.agent)
            payload = self._payload(plan)
        except Exception as exc:  # noqa: BLE001 - a remote agent may raise anything while its capability is looked up
            # Nothing was called yet.
            fault = replace(to_task_fault(exc, plan.agent or "", plan.type), executed=Executed.NO)
            return await self._recovery(None, None, plan).handle_failure(
                fault, name, step, began, _NO_OPERATION
            )
        ctx = self._task_context.context(name, step, agent, capability)
        recovery = self._recovery(agent, capability, plan)
        operation = capability.operation(agent.name, ctx.key)
        try:
            result = await self._perform(agent, capability, payload, ctx, began)
        except Question as asked:
            return [Asked(at=self._registry.clock(), step=name, question=asked.question, schema=asked.schema)]
        except FaultError as error:
            return await recovery.handle_failure(error.fault, name, step, began, operation, payload, ctx)
        return [Finished(at=self._registry.clock(), step=name, began=began, result=result)]

    async def _perform(
        self, agent: Agent, capability: Capability, payload: Any, ctx: Context, began: float
    ) -> Any:
        """Call the capability within its own time limit and the task's deadline. Raises what `perform` raises."""
        until = self._state.head.until
        left = None if until is None else until - began
        if left is not None and left <= 0:
            late = FaultError.from_fault(_TOO_LATE)
            raise FaultError.from_fault(to_task_fault(late, agent.name, capability.name))
        if not capability.repeatable:
            await self._journal.write([Started(at=began, step=ctx.step, attempt=ctx.attempt)])
        await self._ensure_lease()
        limits = [each for each in (capability.timeout, left) if each is not None]
        with telemetry.attempt_scope(
            at=began,
            task=ctx.task,
            agent=agent.name,
            capability=capability.name,
            step=ctx.step,
            attempt=ctx.attempt,
        ):
            work = perform(agent, capability, payload, ctx, min(limits, default=None))
            return await (work if capability.repeatable else self._guard.run(work))

    async def _ensure_lease(self) -> None:
        """
        Make sure that this worker still holds the task before it calls anything.

        The acknowledgement of the last write may have arrived only after a lost connection was restored. By then the lease may
        have run out, and another worker may have taken the task over and found that this step had not happened.

        Raises:
            LeaseLostError: another worker has the task.
            StoreUnavailableError: extending the lease takes longer than the lease lasts.
        """
        if self._guard.expires_in <= 0:
            await self._guard.extend()
            if self._guard.expires_in <= 0:
                raise StoreUnavailableError("the store answers more slowly than a lease lasts: try again")

    async def attempt_undo(self, name: str) -> list[Record]:
        """
        Attempt once to undo a step and return the records of the outcome; none if the capability has no `undo`.

        An undo runs at least once: it has an idempotency key, and is repeated until it succeeds or recovery gives up.
        """
        step, began = self._state.steps[name], self._registry.clock()
        agent: Agent | None = None
        capability: Capability | None = None
        operation = _NO_OPERATION
        try:
            agent, capability = await self._registry.find(step.plan.type, step.plan.agent)
            if capability.undo is None:
                return []
            ctx = self._task_context.context(name, step, agent, capability, undo=True)
            operation = Operation(name=f"{agent.name}/{capability.name}", idempotent=True, key=ctx.key)
            await connect(agent, capability, ctx)
            # The log has a delegation's payload as it was sent; a step's payload may refer to other steps' results.
            payload = step.plan.payload if ">" in name else self._payload(step.plan)
            payload = payload if capability.check is None else capability.check(payload)
            await invoke(capability.undo, payload, step.result, ctx)
        except Exception as exc:  # noqa: BLE001 - recovery decides about any exception
            fault = to_task_fault(exc, agent.name if agent else step.plan.agent or "", step.plan.type)
            undo, recovery = step.undo or StepState(step.plan), self._undo_recovery(agent, capability)
            records = await recovery.handle_failure(fault, name, undo, began, operation)
            return [replace(each, undo=True) if isinstance(each, Failed) else each for each in records]
        return [Finished(at=self._registry.clock(), step=name, began=began, undo=True)]

    async def resolve_interrupted(self, name: str) -> Record:
        """Check whether an interrupted step that must not happen twice has happened; `Doubted` if that is unknown."""
        step = self._state.steps[name]
        try:
            agent, capability = await self._registry.find(step.plan.type, step.plan.agent)
            payload = self._payload(step.plan)
        except Exception:  # noqa: BLE001 - without the agent, the step cannot be checked here
            return Doubted(at=self._registry.clock(), step=name)
        if capability.repeatable:
            return Verified(at=self._registry.clock(), step=name, happened=False)
        ctx = self._task_context.context(name, step, agent, capability)
        seen = await self._recovery(agent, capability, step.plan).verify_step(payload, ctx)
        now = self._registry.clock()
        if seen is None:
            publish(self._state, "doubt", now=now, step=name, agent=agent.name, capability=capability.name)
            return Doubted(at=now, step=name)
        return Verified(at=now, step=name, happened=seen is not False, result=None if seen is False else seen)

    def _payload(self, plan: Step) -> Any:
        """The payload of a step, with the results it refers to. An optional step that failed has the result None."""
        state = self._state
        if state.head.single:
            return plan.payload
        return fill_results(plan.payload, lambda name: state.steps[name].result)

    def _recovery(self, agent: Agent | None, capability: Capability | None, plan: Step) -> StepRecovery:
        head = self._state.head
        return StepRecovery(
            agent,
            capability,
            clock=self._registry.clock,
            policy=self._registry.policy,
            retry_policy=plan.retry_policy or head.retry_policy,
            until=head.until,
        )

    def _undo_recovery(self, agent: Agent | None, capability: Capability | None) -> StepRecovery:
        """Recovery without the capability's fallbacks and `verify`, and without the deadline, which does not bound undoing."""
        return StepRecovery(
            agent,
            None,
            clock=self._registry.clock,
            policy=(capability and capability.policy) or self._registry.policy,
            retry_policy=None,
            until=None,
        )
