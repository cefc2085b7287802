"""
One task in one worker's hands, from where its log says it is until it is over, waits, or is taken away.

Every turn looks at the state, does what can be done now, and writes what came of it in one append before anything that
depends on it begins. Nothing but the log is remembered between turns, so a crash between any two lines costs at most the
tries that were under way.
"""

from __future__ import annotations

import asyncio
from typing import Any

from amends.core.fault import Fault
from amends.stores.contract import Lease
from amends.tasks.attempts import Tries
from amends.tasks.documents import Status
from amends.tasks.entries import Ended, Finished, Record, Released, Taken, Undoing
from amends.tasks.events import tell, told
from amends.tasks.final_faults import final_fault, interrupted, lost_workers
from amends.tasks.journal import Journal
from amends.tasks.progress import Progress
from amends.tasks.registry import House
from amends.tasks.state import TaskState

__all__ = ["Run"]

_SHORT = 0.02
"""A wait shorter than this is not worth a round through the queue."""


class Run:
    """One task being worked on."""

    def __init__(self, house: House, journal: Journal) -> None:
        self._house, self._journal = house, journal
        self._tries = Tries(house, journal)
        self._calls: dict[asyncio.Task[list[Record]], str] = {}
        self._inline: asyncio.Task[Any] | None = None
        self._wake: asyncio.Future[None] | None = None
        self._stopped = False
        self._progress = Progress(journal.state)
        journal.heard = self._heard
        self._declared = journal.state.held

    @property
    def state(self) -> TaskState:
        """The task as it stands."""
        return self._journal.state

    @property
    def lease(self) -> Lease:
        """The hold on the message that brought it."""
        return self._journal.lease

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
        if not self._declared:
            self._declared = True
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
        self._declared = True
        tell(state, "taken-over", now=self._now)
        if state.takeovers >= house.takeovers and not state.undoing:
            await self._journal.write([Undoing(at=self._now, fault=lost_workers(state.takeovers))])
        for name in [name for name, step in state.steps.items() if step.open]:
            await self._journal.write([await self._tries.doubt(name)])

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
        task = asyncio.get_running_loop().create_task(self._tries.step(name))
        self._calls[task] = name

    async def _inline_call(self, name: str) -> list[Record]:
        """The only step: in this very task, which costs less, and can be interrupted all the same."""
        began = self._now
        self._inline = asyncio.current_task()
        try:
            return await self._tries.step(name)
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
            told(self.state, record, now=self._now)

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
        return Released(at=self._now, until=due, lease=self.lease.id, take=self.lease.attempt)

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
        """Take back the last thing that is not taken back yet. Whether that ended this worker's part."""
        state = self.state
        if state.takeovers >= 2 * self._house.takeovers:
            return await self._over(state.fault)
        for name in reversed(state.done):
            step = state.steps[name]
            if step.undo is not None and step.undo.state != "ready":
                continue
            if step.undo is not None and step.undo.due > self._now + _SHORT:
                return await self._release(step.undo.due)
            records = await self._tries.undo(name)
            if records:
                await self._write(records)
                return False
        return await self._over(state.fault)

    async def _over(self, fault: Fault | None) -> bool:
        """The end of what was not completed."""
        state = self.state
        if state.cancelled and fault is None:
            end = Ended(at=self._now, status=Status.CANCELLED)
        else:
            end = Ended(at=self._now, status=Status.FAILED, fault=final_fault(state, fault))
        await self._write([end])
        return True
