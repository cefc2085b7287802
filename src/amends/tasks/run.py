"""
Run one task in one worker, from the state in its log until the task is over, waits, or is taken by another worker.

Each turn reads the state, starts what can be done now, and writes the outcome in one append before anything that depends on it
starts. Only the log carries information from one turn to the next, so a crash at any point loses at most the attempts that were
under way.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from amends.core.fault import Fault
from amends.stores.errors import StoreError
from amends.tasks.attempts import Attempts
from amends.tasks.documents import Status
from amends.tasks.entries import Ended, Finished, Record, Released, Repaired, Taken, Undoing
from amends.tasks.events import publish, publish_record
from amends.tasks.final_faults import final_fault, interrupted_attempt, workers_lost
from amends.tasks.journal import Fenced, Journal
from amends.tasks.lease_guard import LeaseGuard
from amends.tasks.progress import Progress
from amends.tasks.registry import Registry
from amends.tasks.state import TaskState

__all__ = ["Run"]

_SHORT = 0.02
"""Seconds: a shorter wait is slept through here instead of going through the queue."""


class Run:
    """One task that this worker runs."""

    def __init__(self, registry: Registry, journal: Journal) -> None:
        self._registry, self._journal = registry, journal
        self.guard = LeaseGuard(journal.lease)
        """The lease on the task's message."""
        self._attempts = Attempts(registry, journal, self.guard)
        self._calls: dict[asyncio.Task[list[Record]], str] = {}
        self._wake: asyncio.Future[None] | None = None
        self._stopped = False
        self._progress = Progress(journal.state)
        self._taken_recorded = journal.state.held
        journal.on_command = self._on_command

    @property
    def state(self) -> TaskState:
        """The current state of the task."""
        return self._journal.state

    @property
    def _now(self) -> float:
        return self._registry.clock()

    async def execute(self, *, takeover: bool) -> None:
        """
        Work on the task until it is over or has to wait. The task's message is released then.

        Args:
            takeover: whether an earlier worker did not release the task.

        Raises:
            Fenced: another worker has the task.
            StoreError: the store cannot be written to; another worker will continue.
        """
        try:
            if takeover:
                await self._take_over()
            while not await self._turn():
                pass
        except asyncio.CancelledError:
            # What has ended is recorded, so that it is neither repeated nor in doubt.
            with contextlib.suppress(StoreError, Fenced):
                await self._write(await self._cancel_calls())
            raise
        finally:
            await self._cancel_calls()

    async def record_taken(self) -> None:
        """Record in the log that a worker runs the task."""
        if not self._taken_recorded:
            self._taken_recorded = True
            await self._journal.write([Taken(at=self._now, worker=self._registry.worker)], if_open=True)

    async def release(self) -> None:
        """Record in the log that no worker runs the task, and give its message back."""
        await self._journal.write([self._release_record(self._now)], if_open=True)

    async def repair(self) -> None:
        """Continue behind entries that do not fit the task; see `Repaired`."""
        await self._journal.write([Repaired(at=self._now, valid=self._journal.valid)])

    async def settle(self) -> None:
        """Wait for writes that were begun. Raises what `Journal.write` raises."""
        await self._journal.settle()

    async def read_commands(self) -> bool:
        """
        Read the commands that were appended to the log. Return whether the task was still held when they were read.

        Raises:
            Fenced: another worker has the task.
        """
        await self._journal.catch_up()
        return not self._journal.closed

    def _on_command(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
        if self.state.cancelled and not self.state.undoing and not self._stopped:
            self._stopped = True
            for call in self._calls:
                call.cancel()

    async def _cancel_calls(self) -> list[Record]:
        """Cancel the calls under way. Return the records of those that have ended all the same."""
        calls = list(self._calls)
        self._calls.clear()
        for call in calls:
            call.cancel()
        if calls:
            await asyncio.wait(calls)
        ended = [call for call in calls if not call.cancelled() and call.exception() is None]
        return [record for call in ended for record in call.result()]

    # Taking over ------------------------------------------------------------------------------------------------

    async def _take_over(self) -> None:
        """Continue after a worker that did not finish: fence it first, then check the steps it had started."""
        registry = self._registry
        await self._journal.write([Taken(at=self._now, worker=registry.worker, takeover=True)])
        state = self.state
        self._taken_recorded = True
        publish(state, "taken-over", now=self._now)
        if state.takeovers >= registry.takeovers and not state.undoing:
            await self._journal.write([Undoing(at=self._now, fault=workers_lost(state.takeovers))])
        for name in [name for name, step in state.steps.items() if step.open]:
            await self._journal.write([await self._attempts.resolve_interrupted(name)])

    # One turn ---------------------------------------------------------------------------------------------------

    async def _turn(self) -> bool:
        """Do what can be done now. Return whether this worker has finished with the task."""
        state = self.state
        if state.undoing:
            return await self._undo_turn()
        if state.cancelled:
            return await self._fail(None)
        steps = dict(self._progress.steps(state))
        broken = next((step for step in steps.values() if step.state == "failed"), None)
        if broken is not None:
            # Steps under way are completed first, so that they can be undone.
            await self._write_ended_calls(list(self._calls))
            return await self._fail(broken.fault)
        if not steps:
            return await self._end()
        now, busy = self._now, set(self._calls.values())
        waiting = {
            name: step.due for name, step in steps.items() if step.state == "ready" and name not in busy
        }
        for name in [name for name, due in waiting.items() if due <= now]:
            self._calls[asyncio.create_task(self._attempts.attempt_step(name))] = name
            del waiting[name]
        due = min(waiting.values(), default=None)
        wait = None if due is None else max(0.0, due - now)
        if self._calls:
            self._wake = asyncio.get_running_loop().create_future()
            awaited: list[asyncio.Future[Any]] = [*self._calls, self._wake]
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED, timeout=wait)
            await self._write_ended_calls([call for call in self._calls if call.done()])
        elif wait is not None and wait <= _SHORT:
            await asyncio.sleep(wait)
        else:
            return await self._release(due)
        return False

    async def _write_ended_calls(self, calls: list[asyncio.Task[list[Record]]]) -> None:
        """Wait for these calls and write their records in one append."""
        if calls:
            await asyncio.wait(calls)
        records: list[Record] = []
        for call in calls:
            name = self._calls.pop(call)
            if call.cancelled():
                records.append(interrupted_attempt(name, self._now, self._now))
            else:
                records += call.result()
        await self._write(records)

    async def _write(self, records: list[Record]) -> None:
        """Write records and publish their events. The end of a single-step task is written with its step."""
        last = records[-1] if records else None
        if len(self.state.head.steps) == 1 and isinstance(last, Finished) and not last.undo:
            # This saves one of the four commits of such a task, and about 20 % of its processor time (bench/tasks.py).
            records.append(Ended(at=last.at, status=Status.COMPLETED))
        await self._journal.write(records)
        for record in records:
            publish_record(self.state, record, now=self._now)

    async def _end(self) -> bool:
        """End a task whose steps are all settled: as failed if no step succeeded, otherwise as completed."""
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
        """Release the task until `due`, or until a command comes. Return False if a command has come meanwhile."""
        return await self._journal.write([self._release_record(due)], if_unchanged=True)

    def _release_record(self, due: float | None) -> Released:
        lease = self._journal.lease
        return Released(at=self._now, until=due, lease=lease.id, take=lease.attempt)

    # Undoing (T5) -----------------------------------------------------------------------------------------------

    async def _fail(self, fault: Fault | None) -> bool:
        """Start to undo the finished steps of a task that failed or was cancelled; end it if there are none."""
        calls = list(self._calls)
        for call in calls:
            call.cancel()
        await self._write_ended_calls(calls)
        if self.state.done:
            await self._journal.write([Undoing(at=self._now, fault=fault)])
            return False
        return await self._end_incomplete(fault)

    async def _undo_turn(self) -> bool:
        """Undo the last finished step that is not undone yet. Return whether this worker has finished with the task."""
        state = self.state
        if state.takeovers >= 2 * self._registry.takeovers:
            return await self._end_incomplete(state.fault)
        for name in reversed(state.done):
            step = state.steps[name]
            if step.undo is not None and step.undo.state != "ready":
                continue
            if step.undo is not None and step.undo.due > self._now + _SHORT:
                return await self._release(step.undo.due)
            records = await self._attempts.attempt_undo(name)
            if records:
                await self._write(records)
                return False
        return await self._end_incomplete(state.fault)

    async def _end_incomplete(self, fault: Fault | None) -> bool:
        """End a task that was not completed, as cancelled or failed."""
        state = self.state
        if state.cancelled and fault is None:
            end = Ended(at=self._now, status=Status.CANCELLED)
        else:
            end = Ended(at=self._now, status=Status.FAILED, fault=final_fault(state, fault))
        await self._write([end])
        return True
