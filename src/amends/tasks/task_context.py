"""What a capability may ask of the task it works for, kept in the task's log: effects that happen once, and delegations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from amends.errors.base import FaultError
from amends.recovery.drivers import arecover
from amends.stores.contract import Transaction
from amends.tasks.agent import Agent
from amends.tasks.attempt import perform
from amends.tasks.capability import Capability
from amends.tasks.context import Context
from amends.tasks.entries import Delegated, Effect, Record, stored
from amends.tasks.final_faults import delegation_failed
from amends.tasks.journal import Journal
from amends.tasks.plan import Step
from amends.tasks.registry import House
from amends.tasks.steps import StepState

__all__ = ["TaskDesk"]

T = TypeVar("T")


class TaskDesk:
    """The `Desk` of one task in one worker's hands."""

    def __init__(self, house: House, journal: Journal) -> None:
        self._house, self._journal = house, journal

    def context(
        self, name: str, step: StepState, agent: Agent, capability: Capability, *, undo: bool = False
    ) -> Context:
        """What the next try of a step, or of undoing it, is given beside its input."""
        head, clock = self._journal.state.head, self._house.clock
        tried = step.undo if undo else step
        key = f"{head.id}/{name}" if step.round == 1 else f"{head.id}/{name}/{step.round}"
        return Context(
            task=head.id,
            step=name,
            agent=agent.name,
            capability=capability.name,
            attempt=(0 if tried is None else tried.stepper.state.attempt) + 1,
            key=f"{key}/undo" if undo else key,
            undo=undo,
            answers=list(step.answers),
            desk=self,
            time_left=lambda: None if head.until is None else max(0.0, head.until - clock()),
        )

    async def once(self, ctx: Context, name: str, work: Callable[[Transaction], T]) -> T:
        """See `Context.once`."""
        where, what = ctx.step, name
        if ">" in where and not ctx.undo:
            # A delegation is in the log when it is done: until then its effects stand with the step it is done for.
            where, what = where.partition(">")[0], f"{ctx.key}:{name}"
        step = self._journal.state.steps[where]
        effects = (step.undo.effects if step.undo is not None else {}) if ctx.undo else step.effects
        if what in effects:
            return effects[what]  # type: ignore[no-any-return]

        def record(value: T) -> Record:
            now = self._house.clock()
            return Effect(at=now, step=where, name=what, result=stored(value), undo=ctx.undo)

        return await self._journal.commit(work, record)

    async def delegate(self, ctx: Context, type: str, payload: Any, agent: str | None) -> Any:
        """See `Context.delegate`."""
        found: Agent | None = None
        began = self._house.clock()
        try:
            found, capability = await self._house.find(type, agent)
            name = ctx.child_name(found.name, type)
            parent = self._journal.state.steps[ctx.step.partition(">")[0]]
            if name in parent.delegations:
                return parent.delegations[name]
            plan = Step(name=name, type=type, payload=stored(payload), agent=found.name)
            result = await self._performed(StepState(plan, round=parent.round_of(name)), found, capability)
        except FaultError as error:
            raise delegation_failed(error.fault, found.name if found else agent, type) from error
        made = Delegated(
            at=self._house.clock(),
            step=name,
            agent=found.name,
            type=type,
            payload=plan.payload,
            began=began,
            result=result,
        )
        await self._journal.write([made])
        return result

    async def _performed(self, step: StepState, agent: Agent, capability: Capability) -> Any:
        """What comes of a delegation, with recovery on the spot: its tries are not in the log."""
        below = self.context(step.plan.name, step, agent, capability)

        async def call() -> Any:
            return await perform(agent, capability, step.plan.payload, below, capability.timeout)

        return await arecover(
            call,
            policy=capability.policy or self._house.policy,
            operation=capability.operation(agent.name, below.key),
            setup=agent.setup,
            refresh=agent.reauth,
        )
