"""
One task in one worker's hands, from where its log says it is until it is over, waits, or is taken away.

Every turn looks at the state, does what can be done now, and writes what came of it in one append before anything that
depends on it begins. Nothing but the log is remembered between turns, so a crash between any two lines costs at most the
tries that were under way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec.structs import replace

from amends.core.decision import Decision
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.terms import Action, Executed, Recovery
from amends.errors.base import FaultError
from amends.errors.task import TimeoutError as TaskTimeoutError
from amends.recovery.drivers import arecover
from amends.stores.contract import Lease, Transaction
from amends.tasks import telemetry
from amends.tasks.agent import Agent, Capability, called
from amends.tasks.attempt import perform, wrapped
from amends.tasks.context import Context, Question
from amends.tasks.documents import Status
from amends.tasks.ending import delegation_failed, final_fault, interrupted, lost_workers
from amends.tasks.entries import (
    Asked,
    Delegated,
    Doubted,
    Effect,
    Ended,
    Failed,
    Finished,
    Record,
    Released,
    Started,
    Taken,
    Undoing,
    Verified,
    stored,
)
from amends.tasks.house import House
from amends.tasks.journal import Journal
from amends.tasks.judging import Judge
from amends.tasks.plan import Step, filled
from amends.tasks.progress import Progress
from amends.tasks.state import StepState, TaskState

__all__ = ["Run"]

T = TypeVar("T")
_log = logging.getLogger("amends.tasks")

# A wait shorter than this is not worth a round through the queue.
_SHORT = 0.02
_NO_OPERATION = Operation()
_NOT_FOUND = Decision(action=Action.ESCALATE, delay=None, reason="terminal")


def _not_undone(name: str, fault: Fault, now: float) -> Failed:
    """Nobody here knows how to take it back."""
    return Failed(at=now, step=name, began=now, fault=fault, decision=_NOT_FOUND, undo=True)


def _of_undo(record: Record) -> Record:
    """A record about a try of undoing, rather than of doing."""
    return replace(record, undo=True) if isinstance(record, Failed) else record


class Run:
    """One task being worked on. Also its `Desk`."""

    def __init__(self, house: House, journal: Journal, lease: Lease) -> None:
        self._house = house
        self._journal = journal
        self._lease = lease
        self._calls: dict[asyncio.Task[list[Record]], str] = {}
        self._inline: asyncio.Task[Any] | None = None
        self._wake: asyncio.Future[None] | None = None
        self._stopped = False
        self._progress = Progress(journal.state)
        journal.heard = self._heard
        self.began = house.clock()
        self.declared = journal.state.held

    @property
    def state(self) -> TaskState:
        """The task as it stands."""
        return self._journal.state

    @property
    def lease(self) -> Lease:
        """The hold on the message that brought it."""
        return self._lease

    @property
    def _now(self) -> float:
        return self._house.clock()

    async def go(self, *, takeover: bool) -> None:
        """
        Work until it is over, or nothing can be done for now. The message is let go of then.

        Raises:
            Fenced: another worker has it.
            StoreError: the store cannot be written to; somebody else will go on.
        """
        try:
            if takeover:
                await self._take_over()
            while not await self._turn():
                pass
        finally:
            await self._drop_calls()

    async def declare(self) -> None:
        """Say in the log that somebody is at it."""
        if not self.declared:
            self.declared = True
            await self._journal.write([Taken(at=self._now, worker=self._house.worker)], in_passing=True)

    async def release(self) -> None:
        """Say that nobody is at it, unless that is said already."""
        await self._journal.write([self._released(self._now)], in_passing=True)

    async def listen(self) -> bool:
        """Hear what was said from outside; whether it was heard in time. Raises Fenced when another worker has it."""
        await self._journal.catch_up()
        return not self._journal.let_go

    def _heard(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
        if self.state.cancelled and not self.state.undoing and not self._stopped:
            self._stopped = True
            for call in self._calls:
                call.cancel()
            if self._inline is not None:
                self._inline.cancel()

    async def _drop_calls(self) -> None:
        calls = list(self._calls)
        self._calls.clear()
        for call in calls:
            call.cancel()
        if calls:
            await asyncio.wait(calls)

    # Taking over ------------------------------------------------------------------------------------------------

    async def _take_over(self) -> None:
        """After a worker that did not finish: fence it first, then look at what it was in the middle of."""
        house, state = self._house, self.state
        await self._journal.write([Taken(at=self._now, worker=house.worker, takeover=True)])
        self.declared = True
        self._tell("taken-over")
        if state.takeovers >= house.takeovers and not state.undoing:
            await self._journal.write([Undoing(at=self._now, fault=lost_workers(state.takeovers))])
        for name in [name for name, step in state.steps.items() if step.open]:
            await self._journal.write([await self._doubted(name, self.state.steps[name])])

    async def _doubted(self, name: str, step: StepState) -> Record:
        """A step that must not happen twice was begun, and nobody knows what became of it: look, or wait for somebody."""
        try:
            agent, capability = await self._house.find(step.plan.type, step.plan.agent)
            given = self._payload(step.plan)
        except FaultError:
            return Doubted(at=self._now, step=name)
        ctx = self._context(name, step, agent, capability)
        seen = await self._judge(agent, capability, step.plan).verified(given, ctx)
        if seen is None:
            self._tell("doubt", step=name, agent=agent.name, capability=capability.name)
            return Doubted(at=self._now, step=name)
        return Verified(
            at=self._now, step=name, happened=seen is not False, result=None if seen is False else seen
        )

    # One turn ---------------------------------------------------------------------------------------------------

    async def _turn(self) -> bool:
        """Do what can be done now. Whether that ended this worker's part."""
        state = self.state
        if state.undoing:
            return await self._undo_turn()
        if state.cancelled:
            return await self._give_up(None)
        steps = dict(self._progress.steps())
        broken = next((step for step in steps.values() if step.state == "failed"), None)
        if broken is not None:
            # What is under way is let finish: it will be undone properly then.
            await self._settle(list(self._calls))
            return await self._give_up(broken.fault)
        if not steps:
            return await self._end()
        now, busy = self._now, set(self._calls.values())
        waiting = {
            name: step.due for name, step in steps.items() if step.state == "ready" and name not in busy
        }
        for name in [name for name, due in waiting.items() if due <= now]:
            if len(state.head.steps) == 1:
                await self._write(await self._inline_call(name))
                return state.over
            self._start(name)
            del waiting[name]
        due = min(waiting.values(), default=None)
        wait = None if due is None else max(0.0, due - now)
        if self._calls:
            self._wake = asyncio.get_running_loop().create_future()
            awaited: list[asyncio.Future[Any]] = [*self._calls, self._wake]
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED, timeout=wait)
            await self._settle([call for call in self._calls if call.done()])
        elif wait is not None and wait <= _SHORT:
            await asyncio.sleep(wait)
        else:
            return await self._release(due)
        return False

    def _start(self, name: str) -> None:
        task = asyncio.get_running_loop().create_task(self._step(name))
        self._calls[task] = name

    async def _inline_call(self, name: str) -> list[Record]:
        """The only step: in this very task, which costs less, and can be interrupted all the same."""
        began = self._now
        self._inline = asyncio.current_task()
        try:
            return await self._step(name)
        except asyncio.CancelledError:
            if not self._stopped or self._inline is None:
                raise
            self._inline.uncancel()
            return [interrupted(name, began, self._now)]
        finally:
            self._inline = None

    async def _settle(self, calls: list[asyncio.Task[list[Record]]]) -> None:
        """Write what ended calls found out, all in one append."""
        if calls:
            await asyncio.wait(calls)
        records: list[Record] = []
        for call in calls:
            name = self._calls.pop(call)
            if call.cancelled():
                records.append(interrupted(name, self._now, self._now))
            else:
                records += call.result()
        await self._write(records)

    async def _write(self, records: list[Record]) -> None:
        """Write what happened; together with the end, where this was the last of it."""
        last = records[-1] if records else None
        if len(self.state.head.steps) == 1 and isinstance(last, Finished) and not last.undo:
            # One append instead of two for the commonest task of all.
            records.append(Ended(at=last.at, status=Status.COMPLETED))
        await self._journal.write(records)
        for record in records:
            self._told(record)

    async def _end(self) -> bool:
        """All steps are settled: it is over, well unless not a single one worked."""
        state = self.state
        if state.over:
            return True
        if not state.done:
            failed = next(step for step in state.steps.values() if step.fault is not None)
            fault = final_fault(state, failed.fault)
            end = Ended(at=self._now, status=Status.FAILED, fault=fault)
        else:
            end = Ended(at=self._now, status=Status.COMPLETED)
        await self._write([end])
        return True

    async def _release(self, due: float | None) -> bool:
        """Let go of it: until the next step is due, or until somebody says what is wanted."""
        # An answer may come in between: then there is something to do, and nobody would ring again.
        return await self._journal.write([self._released(due)], as_seen=True)

    def _released(self, due: float | None) -> Released:
        return Released(at=self._now, until=due, lease=self._lease.id, take=self._lease.attempt)

    # One step ---------------------------------------------------------------------------------------------------

    async def _step(self, name: str) -> list[Record]:
        """One try of one step: the records of what came of it, not yet written."""
        step = self.state.steps[name]
        plan, began = step.plan, self._now
        until = self.state.head.until
        try:
            agent, capability = await self._house.find(plan.type, plan.agent)
            given = self._payload(plan)
        except Exception as exc:  # noqa: BLE001 - an agent elsewhere may fail in any way while it is looked up
            # Nobody was asked to do anything yet.
            fault = replace(wrapped(exc, plan.agent or "", plan.type), executed=Executed.NO)
            return await self._judge(None, None, plan).about(fault, name, step, began, _NO_OPERATION)
        ctx = self._context(name, step, agent, capability)
        operation = capability.operation(agent.name, ctx.key)
        judge = self._judge(agent, capability, plan)
        left = None if until is None else until - began
        if left is not None and left <= 0:
            late = Fault(code="TIMEOUT", vocabulary="task", recovery=Recovery.TERMINAL, executed=Executed.NO)
            late = wrapped(TaskTimeoutError.from_fault(late), agent.name, plan.type)
            return await judge.about(late, name, step, began, operation, given, ctx)
        if not capability.repeatable:
            await self._journal.write([Started(at=began, step=name, attempt=ctx.attempt)])
        limits = [each for each in (capability.timeout, left) if each is not None]
        try:
            with telemetry.covering(
                at=began,
                task=ctx.task,
                agent=agent.name,
                capability=capability.name,
                step=name,
                attempt=ctx.attempt,
            ):
                result = await perform(agent, capability, given, ctx, min(limits, default=None))
        except Question as asked:
            return [Asked(at=self._now, step=name, question=asked.question, schema=asked.schema)]
        except FaultError as error:
            return await judge.about(error.fault, name, step, began, operation, given, ctx)
        return [Finished(at=self._now, step=name, began=began, result=result)]

    def _payload(self, plan: Step) -> Any:
        return plan.payload if self.state.head.single else filled(plan.payload, self._result)

    def _result(self, step: str) -> Any:
        """What a settled step gave: nothing, where it failed and the whole can do without it."""
        return self.state.steps[step].result

    def _judge(self, agent: Agent | None, capability: Capability | None, plan: Step) -> Judge:
        head = self.state.head
        return Judge(
            agent,
            capability,
            clock=self._house.clock,
            policy=self._house.policy,
            retry_policy=plan.retry_policy or head.retry_policy,
            until=head.until,
        )

    def _context(
        self, name: str, step: StepState, agent: Agent, capability: Capability, *, undo: bool = False
    ) -> Context:
        head = self.state.head
        tried = step.undo.stepper if undo and step.undo is not None else step.stepper
        key = f"{head.id}/{name}" if step.round == 1 else f"{head.id}/{name}/{step.round}"
        return Context(
            task=head.id,
            step=name,
            agent=agent.name,
            capability=capability.name,
            attempt=(0 if undo and step.undo is None else tried.state.attempt) + 1,
            key=f"{key}/undo" if undo else key,
            undo=undo,
            answers=list(step.answers),
            desk=self,
            time_left=lambda: None if head.until is None else max(0.0, head.until - self._now),
        )

    # Undoing (T5) -----------------------------------------------------------------------------------------------

    async def _give_up(self, fault: Fault | None) -> bool:
        """It cannot be finished, or is not wanted: take back what was done, then say so."""
        calls = list(self._calls)
        for call in calls:
            call.cancel()
        await self._settle(calls)
        if self.state.done:
            await self._journal.write([Undoing(at=self._now, fault=fault)])
            return False
        return await self._over(fault)

    async def _undo_turn(self) -> bool:
        state = self.state
        if state.takeovers >= 2 * self._house.takeovers:
            return await self._over(state.fault)
        for name in reversed(state.done):
            step = state.steps[name]
            if step.undo is not None and step.undo.state != "ready":
                continue
            try:
                agent, capability = await self._house.find(step.plan.type, step.plan.agent)
            except FaultError as error:
                gone = wrapped(error, step.plan.agent or "", step.plan.type)
                await self._write([_not_undone(name, gone, self._now)])
                continue
            if capability.undo is None:
                continue
            if step.undo is not None and step.undo.due > self._now + _SHORT:
                return await self._release(step.undo.due)
            await self._undo(name, step, agent, capability)
            return False
        return await self._over(state.fault)

    async def _undo(self, name: str, step: StepState, agent: Agent, capability: Capability) -> None:
        """One try of taking one step back. At least once: it is keyed, and repeated until it works or recovery ends."""
        began = self._now
        ctx = self._context(name, step, agent, capability, undo=True)
        assert capability.undo is not None
        try:
            if capability.requires:
                ctx.mcp = {
                    each: await agent.connections.connected(each, capability.name)
                    for each in capability.requires
                }
            given = self._payload(step.plan) if ">" not in name else step.plan.payload
            given = given if capability.check is None else capability.check(given)
            await called(capability.undo, given, step.result, ctx)
        except Exception as exc:  # noqa: BLE001 - whatever it raises is judged
            fault = wrapped(exc, agent.name, capability.name)
            tries = step.undo or StepState(step.plan)
            # A deadline bounds the wish, not the cleaning up after it.
            judge = Judge(
                agent,
                None,
                clock=self._house.clock,
                policy=self._house.policy if capability.policy is None else capability.policy,
                retry_policy=None,
                until=None,
            )
            safe = Operation(name=f"{agent.name}/{capability.name}", idempotent=True, key=ctx.key)
            records = await judge.about(fault, name, tries, began, safe)
            await self._write([_of_undo(record) for record in records])
        else:
            await self._write([Finished(at=self._now, step=name, began=began, undo=True)])

    async def _over(self, fault: Fault | None) -> bool:
        """The end of what was not completed."""
        state = self.state
        if state.cancelled and fault is None:
            end = Ended(at=self._now, status=Status.CANCELLED)
        else:
            end = Ended(at=self._now, status=Status.FAILED, fault=final_fault(state, fault))
        await self._write([end])
        return True

    # The desk ---------------------------------------------------------------------------------------------------

    async def once(self, ctx: Context, name: str, work: Callable[[Transaction], T]) -> T:
        """See `Context.once`."""
        step = self.state.steps[ctx.step]
        effects = (step.undo.effects if step.undo is not None else {}) if ctx.undo else step.effects
        if name in effects:
            return effects[name]  # type: ignore[no-any-return]

        def record(value: T) -> Record:
            return Effect(at=self._now, step=ctx.step, name=name, result=stored(value), undo=ctx.undo)

        return await self._journal.commit(work, record)

    async def delegate(self, ctx: Context, type: str, payload: Any, agent: str | None) -> Any:
        """See `Context.delegate`."""
        found: Agent | None = None
        began = self._now
        try:
            found, capability = await self._house.find(type, agent)
            name = ctx.child_name(found.name, type)
            parent = self.state.steps[ctx.step.partition(">")[0]]
            if name in parent.delegations:
                return parent.delegations[name]
            given = stored(payload)
            plan = Step(name=name, type=type, payload=given, agent=found.name)
            below = self._context(name, StepState(plan, round=parent.round), found, capability)

            async def call() -> Any:
                return await perform(found, capability, given, below, capability.timeout)

            result = await arecover(
                call,
                policy=capability.policy or self._house.policy,
                operation=capability.operation(found.name, below.key),
                setup=found.setup,
                refresh=found.reauth,
            )
        except FaultError as error:
            raise delegation_failed(error.fault, found.name if found else agent, type) from error
        made = Delegated(
            at=self._now, step=name, agent=found.name, type=type, payload=given, began=began, result=result
        )
        await self._journal.write([made])
        return result

    # Telling ----------------------------------------------------------------------------------------------------

    def _told(self, record: Record) -> None:
        """What happened, to those who watch."""
        if isinstance(record, Finished):
            self._tell("undone" if record.undo else "finished", step=record.step, began=record.began)
        elif isinstance(record, Failed):
            kind = "undo-failed" if record.undo else "failed"
            if record.decision.action is Action.RETRY:
                kind = "retry"
            elif (
                record.decision.action is Action.FALLBACK and self.state.steps[record.step].state != "failed"
            ):
                kind = "fallback"
            self._tell(
                kind,
                step=record.step,
                began=record.began,
                fault=record.fault,
                delay=record.decision.delay,
                reason=record.decision.reason,
            )
        elif isinstance(record, Asked):
            self._tell("asked", step=record.step)
        elif isinstance(record, Ended):
            self._tell("ended", status=record.status, fault=record.fault, began=self.state.began)

    def _tell(self, kind: str, *, step: str | None = None, agent: str | None = None, **facts: Any) -> None:
        state = self.state
        known = state.steps.get(step) if step is not None else None
        if known is not None:
            facts.setdefault("capability", known.plan.type)
            facts.setdefault("attempt", known.stepper.state.attempt)
            agent = agent or known.plan.agent
        telemetry.tell(kind, at=self._now, task=state.head.id, step=step, agent=agent or state.agent, **facts)
