"""The contexts of one task's attempts. Effects that happen once, and delegations, are recorded in the task's log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from amends.errors.base import FaultError
from amends.recovery.drivers import arecover
from amends.stores.contract import Transaction
from amends.tasks.agent import Agent
from amends.tasks.attempt import perform
from amends.tasks.capability import Capability
from amends.tasks.context import Context, InDoubt
from amends.tasks.entries import Delegated, Doubted, Effect, Failed, Record, Started
from amends.tasks.final_faults import STOPPED, delegation_failed
from amends.tasks.journal import Journal
from amends.tasks.registry import Registry
from amends.tasks.steps import StepState
from amends.tasks.values import storable, to_json_value
from amends.tasks.verification import Verification

__all__ = ["TaskContext"]

T = TypeVar("T")


class TaskContext:
    """Makes the contexts of one task's attempts, and implements `TaskServices` for them."""

    def __init__(self, registry: Registry, journal: Journal) -> None:
        self._registry, self._journal, self._guard = registry, journal, journal.guard
        self.verification = Verification(registry, journal, self.context)
        """Checks whether steps and delegations happened."""

    def context(
        self, name: str, step: StepState, agent: Agent, capability: Capability, *, undo: bool = False
    ) -> Context:
        """The context of the next attempt of a step, or of the next attempt to undo it."""
        head, clock = self._journal.state.head, self._registry.clock
        attempted = step.undo if undo else step
        key = f"{head.id}/{name}" if step.round == 1 else f"{head.id}/{name}/{step.round}"
        return Context(
            task=head.id,
            step=name,
            agent=agent.name,
            capability=capability.name,
            attempt=(0 if attempted is None else attempted.stepper.state.attempt) + 1,
            key=f"{key}/undo" if undo else key,
            undo=undo,
            answers=list(step.answers),
            services=self,
            time_left=lambda: None if head.until is None else max(0.0, head.until - clock()),
        )

    async def once(self, ctx: Context, name: str, work: Callable[[Transaction], T]) -> T:
        """See `Context.once`."""
        where, what = ctx.step, name
        if ">" in where and not ctx.undo:
            # A delegation is recorded when it is done. Until then its effects are recorded with the delegating step.
            where, what = where.partition(">")[0], f"{ctx.key}:{name}"
        step = self._journal.state.steps[where]
        effects = (step.undo.effects if step.undo is not None else {}) if ctx.undo else step.effects
        if what in effects:
            return effects[what]  # type: ignore[no-any-return]

        def record(value: T) -> Record:
            now = self._registry.clock()
            return Effect(at=now, step=where, name=what, result=to_json_value(value), undo=ctx.undo)

        return await self._journal.commit(work, record)

    async def delegate(self, ctx: Context, type: str, payload: Any, agent: str | None) -> Any:
        """See `Context.delegate`."""
        found: Agent | None = None
        began = self._registry.clock()
        try:
            found, capability = await self._registry.find(type, agent)
            name = ctx.child_name(found.name, type)
            parent = self._journal.state.steps[ctx.step.partition(">")[0]]
            if name in parent.delegations or await self._happened(name):
                return self._journal.state.steps[name].result
            sent = storable(payload, "payload")
            result = await self._perform(name, sent, found, capability, began)
        except FaultError as error:
            raise delegation_failed(error.fault, found.name if found else agent, type) from error
        made = Delegated(
            at=self._registry.clock(),
            step=name,
            agent=found.name,
            type=type,
            payload=sent,
            began=began,
            result=result,
        )
        await self._journal.write([made])
        return result

    async def _happened(self, name: str) -> bool:
        """
        Whether an earlier attempt of this delegation is known to have happened.

        Raises:
            InDoubt: that is unknown, and the delegation must not happen twice.
        """
        known = self._journal.state.steps.get(name)
        if known is None or not known.in_doubt:
            return False
        record = await self.verification.resolve(name)
        await self._journal.write([record])
        if isinstance(record, Doubted):
            raise InDoubt
        return record.happened

    async def _perform(
        self, name: str, payload: Any, agent: Agent, capability: Capability, began: float
    ) -> Any:
        """
        Run a delegation with recovery and return its result.

        Before a call that must not happen twice, its start is recorded, so that no later attempt repeats it blindly.
        """
        known = self._journal.state.steps.get(name)
        parent = self._journal.state.steps[name.partition(">")[0]]
        step = known or self._journal.state.delegation(name, agent.name, capability.name, payload, parent)
        ctx = self.context(name, step, agent, capability)

        recorded = not capability.repeatable

        async def call() -> Any:
            ctx.called = False
            work = perform(agent, capability, payload, ctx, capability.timeout, self._guard.ensure)
            return await (self._guard.run(work) if recorded else work)

        if recorded:
            started = Started(
                at=began,
                step=name,
                attempt=1,
                version=agent.version,
                agent=agent.name,
                type=capability.name,
                payload=payload,
            )
            await self._journal.write([started])
        try:
            return await arecover(
                call,
                policy=capability.policy or self._registry.policy,
                operation=capability.operation(agent.name, ctx.key),
                setup=agent.setup,
                refresh=agent.reauth,
            )
        except FaultError as error:
            if recorded:
                now = self._registry.clock()
                failed = Failed(at=now, step=name, began=began, fault=error.fault, decision=STOPPED)
                await self._journal.write([failed])
            raise
