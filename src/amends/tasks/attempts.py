"""
One try of one step, of undoing one, or of finding out whether one happened: the records of what came of it, not yet written.

Only `Started` is written from here: a step that must not happen twice is in the log before it begins.
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
from amends.tasks.attempt import connect, perform, wrapped
from amends.tasks.capability import Capability, called
from amends.tasks.context import Context, Question
from amends.tasks.entries import Asked, Doubted, Failed, Finished, Record, Started, Verified
from amends.tasks.events import tell
from amends.tasks.journal import Journal
from amends.tasks.lease_guard import held
from amends.tasks.plan import Step, filled
from amends.tasks.recovery import Judge
from amends.tasks.registry import House
from amends.tasks.state import TaskState
from amends.tasks.steps import StepState
from amends.tasks.task_context import TaskDesk

__all__ = ["Tries"]

_NO_OPERATION = Operation()
_TOO_LATE = Fault(code="TIMEOUT", vocabulary="task", recovery=Recovery.TERMINAL, executed=Executed.NO)


class Tries:
    """The tries of one task's steps by one worker."""

    def __init__(self, house: House, journal: Journal) -> None:
        self._house, self._journal = house, journal
        self._desk = TaskDesk(house, journal)

    @property
    def _state(self) -> TaskState:
        return self._journal.state

    async def step(self, name: str) -> list[Record]:
        """One try of a step."""
        step, began = self._state.steps[name], self._house.clock()
        plan = step.plan
        try:
            agent, capability = await self._house.find(plan.type, plan.agent)
            given = self._payload(plan)
        except Exception as exc:  # noqa: BLE001 - an agent elsewhere may fail in any way while it is looked up
            # Nobody was asked to do anything yet.
            fault = replace(wrapped(exc, plan.agent or "", plan.type), executed=Executed.NO)
            return await self._judge(None, None, plan).about(fault, name, step, began, _NO_OPERATION)
        ctx = self._desk.context(name, step, agent, capability)
        judge, operation = self._judge(agent, capability, plan), capability.operation(agent.name, ctx.key)
        try:
            result = await self._performed(agent, capability, given, ctx, began)
        except Question as asked:
            return [Asked(at=self._house.clock(), step=name, question=asked.question, schema=asked.schema)]
        except FaultError as error:
            return await judge.about(error.fault, name, step, began, operation, given, ctx)
        return [Finished(at=self._house.clock(), step=name, began=began, result=result)]

    async def _performed(
        self, agent: Agent, capability: Capability, given: Any, ctx: Context, began: float
    ) -> Any:
        """The result of a call, within its own time and the task's. Raises like `perform`."""
        until = self._state.head.until
        left = None if until is None else until - began
        if left is not None and left <= 0:
            late = FaultError.from_fault(_TOO_LATE)
            raise FaultError.from_fault(wrapped(late, agent.name, capability.name))
        if not capability.repeatable:
            await self._journal.write([Started(at=began, step=ctx.step, attempt=ctx.attempt)])
        await self._held()
        limits = [each for each in (capability.timeout, left) if each is not None]
        with telemetry.covering(
            at=began,
            task=ctx.task,
            agent=agent.name,
            capability=capability.name,
            step=ctx.step,
            attempt=ctx.attempt,
        ):
            work = perform(agent, capability, given, ctx, min(limits, default=None))
            return await (work if capability.repeatable else held(self._journal.lease, work))

    async def _held(self) -> None:
        """
        Before anything is done: see that nobody else can be doing it by now.

        What was written last may be known to stand only after a lost connection was made good. By then the hold on the task may
        have run out, and another worker have taken it over and found this very step undone.

        Raises:
            LeaseLostError: another worker has it.
            StoreUnavailableError: nobody can say in the time a hold lasts.
        """
        lease = self._journal.lease
        if lease.expires_in <= 0:
            await lease.extend()
            if lease.expires_in <= 0:
                raise StoreUnavailableError("the store takes longer than a task may be held: try again")

    async def undo(self, name: str) -> list[Record]:
        """
        One try of taking a step back; nothing, where there is no way to.

        At least once: it is keyed, and repeated until it works or recovery ends.
        """
        step, began = self._state.steps[name], self._house.clock()
        agent: Agent | None = None
        capability: Capability | None = None
        operation = _NO_OPERATION
        try:
            agent, capability = await self._house.find(step.plan.type, step.plan.agent)
            if capability.undo is None:
                return []
            ctx = self._desk.context(name, step, agent, capability, undo=True)
            operation = Operation(name=f"{agent.name}/{capability.name}", idempotent=True, key=ctx.key)
            await connect(agent, capability, ctx)
            # What a delegation was given is in the log as it was; what a step was given may have come from other steps.
            given = step.plan.payload if ">" in name else self._payload(step.plan)
            given = given if capability.check is None else capability.check(given)
            await called(capability.undo, given, step.result, ctx)
        except Exception as exc:  # noqa: BLE001 - whatever it raises is judged
            fault = wrapped(exc, agent.name if agent else step.plan.agent or "", step.plan.type)
            tries, judge = step.undo or StepState(step.plan), self._judge_of_undoing(agent, capability)
            records = await judge.about(fault, name, tries, began, operation)
            return [replace(each, undo=True) if isinstance(each, Failed) else each for each in records]
        return [Finished(at=self._house.clock(), step=name, began=began, undo=True)]

    async def doubt(self, name: str) -> Record:
        """A step that must not happen twice was begun, and nobody knows what became of it: look, or have somebody look."""
        step = self._state.steps[name]
        try:
            agent, capability = await self._house.find(step.plan.type, step.plan.agent)
            given = self._payload(step.plan)
        except Exception:  # noqa: BLE001 - whoever could look cannot be asked
            return Doubted(at=self._house.clock(), step=name)
        ctx = self._desk.context(name, step, agent, capability)
        seen = await self._judge(agent, capability, step.plan).verified(given, ctx)
        now = self._house.clock()
        if seen is None:
            tell(self._state, "doubt", now=now, step=name, agent=agent.name, capability=capability.name)
            return Doubted(at=now, step=name)
        return Verified(at=now, step=name, happened=seen is not False, result=None if seen is False else seen)

    def _payload(self, plan: Step) -> Any:
        """What a step is given. Of an optional step that failed, the others get nothing."""
        state = self._state
        return (
            plan.payload if state.head.single else filled(plan.payload, lambda name: state.steps[name].result)
        )

    def _judge(self, agent: Agent | None, capability: Capability | None, plan: Step) -> Judge:
        head = self._state.head
        return Judge(
            agent,
            capability,
            clock=self._house.clock,
            policy=self._house.policy,
            retry_policy=plan.retry_policy or head.retry_policy,
            until=head.until,
        )

    def _judge_of_undoing(self, agent: Agent | None, capability: Capability | None) -> Judge:
        """Without the capability's own ways, and without a deadline: it bounds the wish, not the cleaning up after it."""
        return Judge(
            agent,
            None,
            clock=self._house.clock,
            policy=(capability and capability.policy) or self._house.policy,
            retry_policy=None,
            until=None,
        )
