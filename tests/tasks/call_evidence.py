"""
What proves whether a call that came too late was made by a worker that had lost its task, or was only delayed.

A worker notes when it last made sure that it has the task, and until when its lease lasted then. The call notes when it was really
executed, by the same clock of the machine. A call of a worker that had already lost the task when it checked is a violation, and so
is one that waited for something between the check and the call. A call whose check came before the end of the lease, and which was
executed after it, was delayed: the process was suspended, or the service (here the lock of a file) kept it waiting. No orchestrator
can prevent that; docs/tasks-durable.md has the timeline.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
from typing import NamedTuple

from amends.stores.clock import SystemClock
from amends.tasks.journal import LeaseGuard

_CLOCK = SystemClock()
TOLERANCE = 0.05
"""Seconds by which the times in the log may differ from those of the calls."""


def steady() -> float:
    """The clock of the leases: all processes of the machine share it."""
    return _CLOCK.steady()


class Check:
    """The check that a worker made immediately before a call."""

    def __init__(self, guard: LeaseGuard) -> None:
        self._guard = guard
        lease = guard._lease
        self.message, self.epoch = lease.id, lease.epoch
        note_end(guard)
        self.checked = steady()
        self.awaited = False
        """Whether the event loop has done anything else since the check."""
        asyncio.get_running_loop().call_soon(self._turned)

    def _turned(self) -> None:
        self.awaited = True

    @property
    def until(self) -> float:
        """The end of the lease, with the extensions up to now."""
        return self._guard.noted_end


CHECK: contextvars.ContextVar[Check | None] = contextvars.ContextVar("CHECK", default=None)


def note_end(guard: LeaseGuard) -> None:
    """Note when the lease ends. If the process is suspended meanwhile, the noted time is later than the end, never earlier."""
    left = guard.expires_in
    guard.noted_end = steady() + left


def note_checks() -> None:
    """Note all checks and extensions of leases in this process."""
    ensure, extend = LeaseGuard.ensure, LeaseGuard.extend

    async def noting_ensure(self):
        await ensure(self)
        CHECK.set(Check(self))

    async def noting_extend(self):
        await extend(self)
        note_end(self)

    LeaseGuard.ensure, LeaseGuard.extend = noting_ensure, noting_extend


def lease_end() -> float:
    """The end of the lease for the current call: evaluated in the statement that executes the call."""
    check = CHECK.get()
    return 1e12 if check is None else check.until


class Call(NamedTuple):
    """One executed call, as it is in a table of the ledger."""

    task: str
    step: str
    worker: str
    message: str
    epoch: int
    checked: float
    """When the worker made sure that it has the task, by the steady clock."""
    awaited: bool
    """Whether the event loop did anything else between the check and the call."""
    asked: float
    """When the call was made, by the steady clock."""
    at: float
    """When it was executed, by the steady clock."""
    until: float
    """The end of the lease when the call was executed, by the steady clock."""
    wall: float
    """When it was executed, by the wall clock, which the log uses."""
    again: bool
    """Whether the log had the step as finished when the call was executed."""

    @property
    def delayed(self) -> bool:
        """Whether the worker had the task when it made sure, and the call was executed after its lease."""
        return self.checked <= self.until < self.at

    @property
    def lease_end(self) -> float:
        """The end of the lease by the wall clock."""
        return self.wall - (self.at - self.until)

    @property
    def cause(self) -> str:
        """Whether the call was kept waiting by the ledger's file, or did not leave the process."""
        return "late, kept waiting" if self.asked <= self.until else "late, suspended"


def row_of(ctx, worker: str) -> dict[str, object]:
    """The parameters of a call's row. The statement itself adds `at`, `until` and `wall`."""
    check = CHECK.get()
    in_loop = asyncio._get_running_loop() is not None
    return {
        "task": ctx.task,
        "step": ctx.step_name,
        "worker": worker,
        "message": "" if check is None else check.message,
        "epoch": 0 if check is None else check.epoch,
        "checked": -math.inf if check is None else check.checked,
        "awaited": check is not None and in_loop and check.awaited,
        "asked": steady(),
    }


def judge(calls, taken, finished):
    """
    Judge the starts of one task's steps. Return the calls that were delayed, and the violations.

    Args:
        calls: the calls, in the order in which they were executed.
        taken: the `Taken` records of the task's log.
        finished: when each finished step was finished, by the wall clock.
    """
    delayed, violations, epochs = [], [], {}
    for call in calls:
        others = [each for each in taken if each.worker != call.worker and each.at <= call.wall]
        mine = [each.at for each in taken if each.worker == call.worker and each.at <= call.wall]
        lost = any(each.at > max(mine, default=0.0) for each in others)
        fenced = call.epoch < epochs.get(call.message, 0)
        epochs[call.message] = max(call.epoch, epochs.get(call.message, 0))
        again = call.again or finished.get(call.step, math.inf) < call.wall
        if not (lost or fenced or again):
            continue
        if call.awaited or not call.delayed:
            violations.append(call)
        elif any(max(mine, default=0.0) < each.at < call.lease_end - TOLERANCE for each in others):
            violations.append(call)  # the task was taken from a worker that had it
        else:
            delayed.append(call)
    return delayed, violations


def judge_actions(calls):
    """
    Judge the effects of one step that must not happen twice. Return those that were delayed, and the violations.

    Of several effects, all but one must have been delayed. What a step does between its start and its effect takes time, so
    the event loop may have run since the check; the worker cancels the step when the lease ends.
    """
    if len(calls) < 2:
        return [], []
    delayed = [call for call in calls if call.delayed]
    return delayed, [call for call in calls if not call.delayed][1:]
