"""
One attempt of a step, or one attempt to undo it. Each returns the records of its outcome.

The caller writes these records. Only `Started` is written here: a step that must not happen twice is in the log before it starts.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from msgspec.structs import replace

import amends.tasks.telemetry as task_hooks
from amends.core.enums import Executed
from amends.core.operation import Operation
from amends.effects.current import within_scope
from amends.errors.base import FaultError
from amends.serving.tracing import handling
from amends.tasks.agent import Agent
from amends.tasks.attempt import connect, perform, to_task_fault
from amends.tasks.capability import HOOK_SECONDS, Capability
from amends.tasks.context import Context, InDoubt, Question
from amends.tasks.entries import Asked, Doubted, Failed, Finished, Record, Started
from amends.tasks.final_faults import DEADLINE, STOPPED
from amends.tasks.journal import Journal
from amends.tasks.registry import Registry
from amends.tasks.state import TaskState
from amends.tasks.steps import StepState
from amends.tasks.task_context import TaskContext

__all__ = ["Attempts"]

_NO_OPERATION = Operation()
_STOP_SECONDS = 1.0
"""Seconds for an undo whose end was requested."""


class Attempts:
    """The attempts that one worker makes of one task's steps."""

    def __init__(self, registry: Registry, journal: Journal) -> None:
        self._registry, self._journal, self._guard = registry, journal, journal.guard
        self._task_context = TaskContext(registry, journal)
        self.verification = self._task_context.verification
        """Checks whether interrupted steps happened."""
        self._under_way: dict[str, tuple[Capability, Context]] = {}

    @property
    def _state(self) -> TaskState:
        return self._journal.state

    async def attempt_step(self, name: str) -> list[Record]:
        """Attempt a step once and return the records of its outcome."""
        step, began, check = self._state.steps[name], self._registry.clock(), self.verification
        plan = step.plan
        self._under_way.pop(name, None)
        try:
            agent, capability = await self._registry.find(plan.type, plan.agent)
            payload = check.payload(plan)
        except Exception as exc:  # noqa: BLE001 - a remote agent may raise anything while its capability is looked up
            # Nothing was called yet.
            fault = replace(to_task_fault(exc, plan.agent or "", plan.type), executed=Executed.NO)
            return await check.recovery(None, None, plan, name).handle_failure(
                fault, name, step, began, _NO_OPERATION
            )
        ctx = self._task_context.context(name, step, agent, capability)
        self._under_way[name] = capability, ctx
        recovery = check.recovery(agent, capability, plan, ctx.key)
        operation = capability.operation(agent.name, ctx.key)
        try:
            result = await self._perform(agent, capability, payload, ctx, began)
        except Question as asked:
            return [Asked(at=self._registry.clock(), step=name, question=asked.question, schema=asked.schema)]
        except InDoubt:
            return []  # the log says which delegation has to be verified
        except FaultError as error:
            if not capability.repeatable and check.watch_thread(plan, agent, capability, payload, ctx):
                return [Doubted(at=self._registry.clock(), step=name)]
            return await recovery.handle_failure(error.fault, name, step, began, operation, payload, ctx)
        return [
            Finished(at=self._registry.clock(), step=name, began=began, result=result, version=agent.version)
        ]

    def may_have_happened(self, name: str) -> bool:
        """Whether an attempt under way has called a capability that may have changed something."""
        found = self._under_way.get(name)
        return found is not None and found[1].called and not found[0].read_only

    async def _perform(
        self, agent: Agent, capability: Capability, payload: Any, ctx: Context, began: float
    ) -> Any:
        """Call the capability within its own time limit and the task's deadline. Raises what `perform` raises."""
        until = self._state.head.until
        left = None if until is None else until - began
        if left is not None and left <= 0:
            late = FaultError.from_fault(DEADLINE)
            raise FaultError.from_fault(to_task_fault(late, agent.name, capability.name))
        if not capability.repeatable:
            started = Started(at=began, step=ctx.step, attempt=ctx.attempt, version=agent.version)
            await self._journal.write([started])
        else:
            await self._journal.write_announced()
        limits = [each for each in (capability.timeout, left) if each is not None]
        scope = task_hooks.attempt_scope(
            at=began,
            task=ctx.task,
            agent=agent.name,
            capability=capability.name,
            step=ctx.step,
            attempt=ctx.attempt,
            trace=self._state.head.trace,
        )
        # An attempt that is made again has the same scope of effects, so that the effects inside it are recognised.
        trace = self._state.head.trace
        with (
            scope,
            within_scope(f"task/{ctx.task}/{ctx.step}"),
            handling(trace) if trace else nullcontext(),
        ):
            work = perform(
                agent, capability, payload, ctx, min(limits, default=None), hold=self._guard.ensure
            )
            return await (work if capability.repeatable else self._guard.run(work))

    # Undoing ----------------------------------------------------------------------------------------------------

    def undo_due(self, name: str) -> float | None:
        """
        When a step may be undone; None if its capability has no `undo`.

        If a worker was lost that may have been running the step, its call may still be under way: the step is undone when that
        call must have ended.
        """
        step = self._state.steps[name]
        due = 0.0 if step.undo is None else step.undo.due
        capability = self._registry.known_capability(step.plan)
        if capability is not None and capability.undo is None:
            return None
        longest = HOOK_SECONDS if capability is None else capability.longest
        return due if step.contested is None else max(due, step.contested + longest)

    async def attempt_undo(self, name: str) -> list[Record]:
        """
        Attempt once to undo a step and return the records of the outcome; none if the capability has no `undo`.

        An undo runs at least once: it has an idempotency key, and is repeated until it succeeds or recovery gives up. After the
        task's deadline it gets one attempt.
        """
        step, began = self._state.steps[name], self._registry.clock()
        undo, stopping = step.undo or StepState(step.plan), self._state.stop_undo
        agent: Agent | None = None
        capability: Capability | None = None
        operation = _NO_OPERATION
        try:
            agent, capability = await self._registry.find(step.plan.type, step.plan.agent)
            if capability.undo is None:
                return []
            ctx = self._task_context.context(name, step, agent, capability, undo=True)
            operation = Operation(name=f"{agent.name}/{capability.name}", idempotent=True, key=ctx.key)
            started = Started(at=began, step=name, attempt=ctx.attempt, undo=True, version=agent.version)
            await self._journal.write([started])
            await connect(agent, capability, ctx)
            payload = self.verification.payload(step.plan)
            payload = payload if capability.check is None else capability.check(payload)
            hooks = self.verification.recovery(agent, capability, step.plan, ctx.key, undo=True).hooks
            most = _STOP_SECONDS if stopping else None
            await hooks.call(capability.undo, payload, step.result, ctx, most=most)
        except Exception as exc:  # noqa: BLE001 - recovery decides about any exception
            fault = to_task_fault(exc, agent.name if agent else step.plan.agent or "", step.plan.type)
            recovery = self.verification.recovery(agent, capability, step.plan, name, undo=True)
            records = await recovery.handle_failure(fault, name, undo, began, operation)
            failed = [replace(each, undo=True) for each in records if isinstance(each, Failed)]
            return [replace(each, decision=STOPPED) if stopping else each for each in failed]
        return [Finished(at=self._registry.clock(), step=name, began=began, undo=True, version=agent.version)]
