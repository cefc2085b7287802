"""
Run one task in one worker, from the state in its log until the task is over, waits, or is taken by another worker.

Each turn reads the state, starts what can be done now, and writes the outcome in one append before anything that depends on it
starts. Only the log carries information from one turn to the next, so a crash at any point loses at most the attempts that were
under way.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from amends.core.fault import Fault
from amends.stores.errors import StoreError
from amends.tasks.attempts import Attempts
from amends.tasks.documents import ENDED, Status
from amends.tasks.entries import Ended, Failed, Finished, Record, Released, Repaired, Taken, Undoing
from amends.tasks.events import publish, publish_record
from amends.tasks.faults import (
    DEADLINE,
    STOPPED,
    cancelled_fault,
    final_fault,
    interrupted_attempt,
    workers_lost,
)
from amends.tasks.journal import Fenced, Journal
from amends.tasks.registry import Registry
from amends.tasks.state import StepState, TaskState

__all__ = ["Progress", "Run"]

_SHORT = 0.02
"""Seconds: a shorter wait is slept through here instead of going through the queue."""
_SIBLINGS = 2.0
"""Seconds for the other steps of a plan to end by themselves after one has failed; then they are cancelled."""
_STOPPING = 5.0
"""Seconds to wait for a call to end after it was cancelled."""
_UNDO_STOPPING = 1.0
"""Seconds for an undo to end by itself after its end was requested."""


class Run:
    """One task that this worker runs."""

    def __init__(self, registry: Registry, journal: Journal) -> None:
        self._registry, self._journal = registry, journal
        self.guard = journal.guard
        """The lease on the task's message."""
        self._attempts = Attempts(registry, journal)
        self._calls: dict[asyncio.Task[list[Record]], str] = {}
        self._interrupted: list[str] = []
        """Steps whose calls were cancelled and may have happened."""
        self._undo: asyncio.Task[list[Record]] | None = None
        self._wake: asyncio.Future[None] | None = None
        self._stopped = False
        self._progress = Progress(journal.state)
        journal.on_command = self._on_command

    @property
    def state(self) -> TaskState:
        """The current state of the task."""
        return self._journal.state

    @property
    def _now(self) -> float:
        return self._registry.clock()

    async def execute(self, *, takeover: bool, alone: bool = False) -> None:
        """
        Work on the task until it is over or has to wait. The task's message is released then.

        Args:
            takeover: whether an earlier worker did not release the task.
            alone: whether this worker runs nothing else meanwhile.

        Raises:
            Fenced: another worker has the task.
            StoreError: the store cannot be written to; another worker will continue.
        """
        try:
            if takeover:
                await self._take_over(alone)
            else:
                self._journal.announce(self._taken_record())
            await self._resolve([name for name, step in self.state.steps.items() if step.open])
            while not await self._turn():
                pass
        except asyncio.CancelledError:
            # What has ended is recorded, so that it is neither repeated nor in doubt.
            with contextlib.suppress(StoreError, Fenced):
                await self._write(await self._cancel_calls())
            raise
        finally:
            await self._cancel_calls()

    def _taken_record(self, *, takeover: bool = False, alone: bool = False) -> Taken:
        registry, head, key = self._registry, self.state.head, self._journal.lease.key or ""
        return Taken(
            at=self._now,
            worker=registry.worker,
            message=None if key == head.id else key,
            takeover=takeover,
            alone=alone,
            promises=registry.promises(head.steps),
        )

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
        if self.state.stop_undo and self._undo is not None:
            asyncio.get_running_loop().call_later(_UNDO_STOPPING, self._undo.cancel)

    async def _cancel_calls(self) -> list[Record]:
        """Cancel the calls under way. Return the records of those that have ended all the same."""
        calls = list(self._calls)
        self._calls.clear()
        for call in calls:
            call.cancel()
        if calls:
            await asyncio.wait(calls, timeout=_STOPPING)
        ended = [call for call in calls if call.done() and not call.cancelled() and call.exception() is None]
        return [record for call in ended for record in call.result()]

    # Taking over ------------------------------------------------------------------------------------------------

    async def _take_over(self, alone: bool) -> None:
        """Continue after a worker that did not finish: fence it first, then check the steps it may have started."""
        limit, blamed = self._registry.takeovers, self.state.alone
        changed = [
            name
            for name, step in self._progress.steps(self.state)
            if step.state == "ready" and not step.open and await self._attempts.changed_promises(name)
        ]
        await self._journal.write([self._taken_record(takeover=True, alone=alone)])
        state = self.state
        publish(state, "taken-over", at=self._now)
        if blamed and state.takeovers > limit and not state.undoing:
            await self._journal.write([Undoing(at=self._now, fault=workers_lost(state.takeovers))])
        await self._resolve(changed, repeats=False)

    async def _resolve(self, names: list[str], *, repeats: bool = True) -> None:
        """Check whether interrupted steps happened, and record what is known."""
        for name in names:
            record = await self._attempts.resolve(name, repeats=repeats)
            await self._journal.write([record])

    # One turn ---------------------------------------------------------------------------------------------------

    async def _turn(self) -> bool:
        """Do what can be done now. Return whether this worker has finished with the task."""
        state = self.state
        if state.undoing:
            return await self._undo_turn()
        if state.cancelled:
            return await self._fail(None)
        steps, now = dict(self._progress.steps(state)), self._registry.clock()
        broken = next((step for step in steps.values() if step.state == "failed"), None)
        if broken is not None:
            await self._write_ended_calls(await self._wait_for_siblings())
            return await self._fail(broken.fault)
        if not steps:
            return await self._end()
        busy = set(self._calls.values())
        waiting = {
            name: step.due
            for name, step in steps.items()
            if step.state == "ready" and name not in busy and not _delegation_waits(state, name)
        }
        for name in [name for name, due in waiting.items() if due <= now]:
            self._calls[asyncio.create_task(self._attempts.attempt_step(name))] = name
            del waiting[name]
        due = min(waiting.values(), default=None)
        wait = None if due is None else max(0.0, due - now)
        if self._calls:
            self._wake = asyncio.get_running_loop().create_future()
            awaited: list[asyncio.Task[list[Record]] | asyncio.Future[None]] = [*self._calls, self._wake]
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED, timeout=wait)
            await self._write_ended_calls([call for call in self._calls if call.done()])
        elif wait is not None and wait <= _SHORT:
            await asyncio.sleep(wait)
        elif due is None and state.head.until is not None and state.head.until <= now:
            return await self._fail(DEADLINE)  # before the answer or the verification came
        else:
            return await self._release(due)
        return False

    async def _wait_for_siblings(self) -> list[asyncio.Task[list[Record]]]:
        """Give the calls under way some time to end, so that they can be undone. Return those that have ended."""
        if self._calls:
            await asyncio.wait(self._calls, timeout=_SIBLINGS)
        return [call for call in self._calls if call.done()]

    async def _write_ended_calls(self, calls: list[asyncio.Task[list[Record]]]) -> None:
        """Write the records of these calls, which have ended, in one append."""
        records: list[Record] = []
        for call in calls:
            name = self._calls.pop(call)
            if not call.cancelled():
                records += call.result()
            elif self._attempts.may_have_happened(name):
                self._interrupted.append(name)
            else:
                records.append(interrupted_attempt(name, self._now, self._now))
        await self._write(records)

    async def _write(self, records: list[Record]) -> None:
        """Write records and publish their events. The end of a single-step task is written with its step."""
        state, last = self.state, records[-1] if records else None
        single = len(state.head.steps) == 1 and isinstance(last, Finished) and not last.undo
        if last is not None and single and not state.cancelled and not state.undoing:
            # This saves one of the four commits of such a task, and about 20 % of its processor time (bench/tasks.py).
            # If a cancellation came meanwhile, the step is undone instead.
            whole = [*records, Ended(at=last.at, status=Status.COMPLETED)]
            if await self._journal.write(whole, if_unchanged=True):
                records = whole
            else:
                await self._journal.write(records)
        else:
            await self._journal.write(records)
        state = self.state
        for record in records:
            publish_record(state, record)

    async def _end(self) -> bool:
        """End a task whose steps are all settled: as failed if no step succeeded, otherwise as completed."""
        state = self.state
        if state.status in ENDED:
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
        lease, until = self._journal.lease, self.state.head.until
        waits = due is None and until is not None and self.state.waits
        return Released(
            at=self._now, until=until if waits else due, waits=waits, lease=lease.id, take=lease.attempt
        )

    # Undoing (T5) -----------------------------------------------------------------------------------------------

    async def _fail(self, fault: Fault | None) -> bool:
        """
        Start to undo the finished steps of a task that failed or was cancelled; end it if there are none.

        Calls under way are cancelled. Those that may have happened are verified, so that they can be undone too.
        """
        for call in self._calls:
            call.cancel()
        if self._calls:
            await asyncio.wait(self._calls, timeout=_STOPPING)
        await self._write_ended_calls([call for call in self._calls if call.done()])
        interrupted = dict.fromkeys([*self._interrupted, *self._calls.values()])  # some calls may still go on
        interrupted |= dict.fromkeys(name for name, step in self.state.steps.items() if step.open)
        self._calls.clear()
        await self._resolve(list(interrupted), repeats=False)
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
            due = self._attempts.undo_due(name)
            if due is None:
                continue
            if due > self._now + _SHORT and not state.stop_undo:
                return await self._release(due)
            records = await self._attempt_undo(name)
            if records:
                await self._write(records)
                return False
        return await self._end_incomplete(state.fault)

    async def _attempt_undo(self, name: str) -> list[Record]:
        """Attempt to undo a step, in an asyncio task of its own, so that a command can end it."""
        began = self._now
        self._undo = asyncio.create_task(self._attempts.attempt_undo(name))
        try:
            await asyncio.wait([self._undo])
            if not self._undo.cancelled():
                return self._undo.result()
        finally:
            if not self._undo.done():
                self._undo.cancel()
                await asyncio.wait([self._undo], timeout=_STOPPING)
            self._undo = None
        fault = interrupted_attempt(name, began, self._now).fault
        return [Failed(at=self._now, step=name, began=began, fault=fault, decision=STOPPED, undo=True)]

    async def _end_incomplete(self, fault: Fault | None) -> bool:
        """End a task that was not completed, as cancelled or failed."""
        state = self.state
        if state.cancelled and fault is None:
            end = Ended(at=self._now, status=Status.CANCELLED, fault=cancelled_fault(state))
        else:
            end = Ended(at=self._now, status=Status.FAILED, fault=final_fault(state, fault))
        await self._write([end])
        return True


def _delegation_waits(state: TaskState, name: str) -> bool:
    """Whether a delegation of a step has to be verified, or needs an answer, before the step can go on."""
    prefix = f"{name}>"
    return any(
        step.state in {"asking", "doubt"} and each.startswith(prefix) for each, step in state.steps.items()
    )


class Progress:
    """
    The steps of one task that are unblocked and not settled, updated as steps settle.

    Checking all steps after each step would make the cost of a plan grow with the square of its length.
    """

    def __init__(self, state: TaskState) -> None:
        self._blocked = {step.name: len(step.after) for step in state.head.steps}
        self._dependents: dict[str, list[str]] = {}
        for step in state.head.steps:
            for earlier in step.after:
                self._dependents.setdefault(earlier, []).append(step.name)
        self._open = dict.fromkeys(name for name, count in self._blocked.items() if count == 0)

    def steps(self, state: TaskState) -> Iterator[tuple[str, StepState]]:
        """The unblocked steps that are not settled, after an update from the task's current state."""
        found = list(self._open)
        while found:
            name = found.pop()
            if not state.steps[name].settled:
                continue
            del self._open[name]
            for following in self._dependents.get(name, ()):
                self._blocked[following] -= 1
                if self._blocked[following] == 0:
                    self._open[following] = None
                    found.append(following)
        names = list(self._open)
        return zip(names, map(state.steps.__getitem__, names), strict=True)
