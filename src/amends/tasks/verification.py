"""Find out whether a step happened whose attempt was interrupted, and that must not happen twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amends.tasks.agent import Agent
from amends.tasks.capability import Capability
from amends.tasks.commands import send_command, verify
from amends.tasks.context import Context
from amends.tasks.entries import Doubted, Verified
from amends.tasks.events import publish
from amends.tasks.invoke import HookCalls, thread_key
from amends.tasks.journal import Journal
from amends.tasks.plan import Step, fill_results
from amends.tasks.recovery import StepRecovery
from amends.tasks.registry import Registry
from amends.tasks.steps import StepState

__all__ = ["Verification"]


class Verification:
    """Checks of one task's steps and delegations."""

    def __init__(
        self,
        registry: Registry,
        journal: Journal,
        context: Callable[[str, StepState, Agent, Capability], Context],
    ) -> None:
        self._registry, self._journal, self._context = registry, journal, context

    async def resolve(self, name: str, *, repeats: bool = True) -> Verified | Doubted:
        """
        Check whether an interrupted step or delegation has happened; `Doubted` if that is unknown.

        Args:
            name: the step.
            repeats: whether the step may run again. If not, a step that may be repeated is checked as well.
        """
        step, clock = self._journal.state.steps[name], self._registry.clock
        try:
            agent, capability = await self._registry.find(step.plan.type, step.plan.agent)
            payload = self.payload(step.plan)
        except Exception:  # noqa: BLE001 - without the agent, the step cannot be checked here
            return Doubted(at=clock(), step=name)
        if repeats and capability.repeatable and not self._promised_otherwise(name, step, capability):
            return Verified(at=clock(), step=name, happened=False)
        ctx = self._context(name, step, agent, capability)
        if self.watch_thread(step.plan, agent, capability, payload, ctx):
            return Doubted(at=clock(), step=name)
        recovery = self.recovery(agent, capability, step.plan, ctx.key)
        seen = await recovery.verify_step(payload, ctx)
        if seen is None:
            publish(
                self._journal.state,
                "doubt",
                now=clock(),
                step=name,
                agent=agent.name,
                capability=capability.name,
            )
            return Doubted(at=clock(), step=name)
        return Verified(
            at=clock(), step=name, happened=seen is not False, result=None if seen is False else seen
        )

    def watch_thread(
        self, plan: Step, agent: Agent, capability: Capability, payload: Any, ctx: Context
    ) -> bool:
        """If a thread of the step is still running: have its outcome recorded when it ends, and return True."""
        thread = agent.threads.running(thread_key(capability.call, ctx.key))
        if thread is None:
            return False
        recovery = self.recovery(agent, capability, plan, ctx.key, guarded=False)

        async def record(happened: bool, result: Any) -> None:
            now, name = self._registry.clock(), plan.name
            await send_command(
                self._journal.store,
                self._journal.space,
                ctx.task,
                lambda state: verify(state, now=now, happened=happened, result=result, step=name),
            )

        self._registry.late_results.watch(thread, record, lambda: recovery.verify_step(payload, ctx))
        return True

    async def changed_promises(self, name: str) -> bool:
        """
        Whether a lost worker may have begun the step under promises that the code no longer makes.

        The start of a step that may be repeated is not recorded, so what the lost worker declared decides.
        """
        step, began = self._journal.state.steps[name], self._journal.state.promises.get(name)
        if not began or began == "read_only":
            return False
        try:
            _, capability = await self._registry.find(step.plan.type, step.plan.agent)
        except Exception:  # noqa: BLE001 - the attempt will fail in the same way
            return False
        return capability.promises != began

    def _promised_otherwise(self, name: str, step: StepState, capability: Capability) -> bool:
        """Whether the interrupted attempt was begun under other promises than the code makes now."""
        began = step.promises
        if began is None:
            began = self._journal.state.promises.get(name, capability.promises)
        return began not in {"read_only", capability.promises}

    def payload(self, plan: Step) -> Any:
        """The payload of a step, with the results it refers to. An optional step that failed has the result None."""
        state = self._journal.state
        if state.head.single or ">" in plan.name:
            return plan.payload  # the log has a delegation's payload as it was sent
        return fill_results(plan.payload, lambda name: state.steps[name].result)

    def recovery(
        self,
        agent: Agent | None,
        capability: Capability | None,
        plan: Step,
        key: str,
        *,
        guarded: bool = True,
        undo: bool = False,
    ) -> StepRecovery:
        """
        Decides about the failed attempts of a step, or of undoing it: without fallbacks, `verify` and the request's retry policy.

        Args:
            agent: the agent whose capability was called; None if it was not found.
            capability: that capability.
            plan: the step.
            key: its idempotency key.
            guarded: whether this worker has to hold the task when it calls a hook.
            undo: whether the step is being undone. Its hooks may run after the task's deadline.
        """
        head, clock = self._journal.state.head, self._registry.clock
        return StepRecovery(
            agent,
            None if undo else capability,
            HookCalls(
                self._journal.guard if guarded else None,
                agent.threads if agent else None,
                capability,
                key,
                clock=clock,
                until=None if undo else head.until,
            ),
            clock=clock,
            policy=(capability and capability.policy) or self._registry.policy,
            retry_policy=None if undo else plan.retry_policy or head.retry_policy,
            until=head.until,
        )
