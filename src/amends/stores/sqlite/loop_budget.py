"""
Limit how much time the event loop spends on writes, and decide whether it may wait for the disk.

After `_BUDGET` seconds of writes without a turn for other tasks, the next write goes to the thread and is awaited. So does
one write in `_MAX_CONSECUTIVE`, whether or not other tasks had turns; the thread then also checkpoints the write-ahead
log. After a write that took long, or that the loop waited for without result, the loop makes no writes for a while; the
pause doubles each time, up to `_MAX_PAUSE`.

A commit that waits for the disk cannot be interrupted, so the loop runs it only on a disk that has proved fast: the last
`_REQUIRED` commits in a row, run by the thread, were quick. One slow commit resets that count. Each commit that blocks the
loop for longer than `_STALL` doubles the required number, so a disk that stalls from time to time is soon left to the
thread, and must be quick for long before the number is halved again.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop

__all__ = ["LoopBudget"]

_BUDGET = 0.004
_MAX_CONSECUTIVE = 256
# Longer than a preemption on a busy machine, shorter than a delay that users notice.
_SLOW = 0.02
_MAX_PAUSE = 1.0
_FIRST_PAUSE = 0.002
# Several fsyncs of a fast disk, with a margin for a busy machine.
_QUICK = 0.001
_STALL = 0.004
_REQUIRED = 32
_MAX_REQUIRED = 1 << 16
# This many times the required number of quick commits halves that number again.
_RECOVERY = 16


class LoopBudget:
    """The budget of one store: it is given the duration of each write and decides where the next one runs."""

    __slots__ = (
        "_commits_wait",
        "_consecutive",
        "_loop",
        "_pause",
        "_paused_until",
        "_quick",
        "_required",
        "_reset_scheduled",
        "_spent",
        "trusts_disk",
    )

    def __init__(self, loop: AbstractEventLoop, *, commits_wait: bool) -> None:
        self._loop = loop
        self._commits_wait = commits_wait
        self.trusts_disk = not commits_wait
        """Whether the loop may run a commit itself."""
        self._consecutive = 0
        self._spent = 0.0
        self._reset_scheduled = False
        self._pause = 0.0
        self._paused_until = 0.0
        self._quick = 0
        self._required = _REQUIRED

    def allows_write(self, now: float) -> bool:
        """Whether the loop has time for a write at all."""
        return self._spent <= _BUDGET and self._consecutive < _MAX_CONSECUTIVE and now >= self._paused_until

    @property
    def checkpoint_due(self) -> bool:
        """Whether the loop has made so many writes that the thread should checkpoint."""
        return self._consecutive >= _MAX_CONSECUTIVE

    def record_write(self, begin: float, end: float) -> None:
        """Record a write that the loop ran itself."""
        took = end - begin
        self._consecutive += 1
        self._spend(took)
        if took > _SLOW:
            self._pause_writes(end)
        else:
            self._pause /= 2
        if self._commits_wait:
            if took > _STALL:
                self._required = min(2 * self._required, _MAX_REQUIRED)
            self._judge(quick=took < _QUICK)

    def record_wait(self, begin: float, end: float) -> None:
        """Record that the loop waited for the thread and got the result."""
        self._spend(end - begin)
        self._pause /= 2
        if self._commits_wait:
            self._judge(quick=end - begin < _QUICK)

    def record_timeout(self, begin: float, end: float) -> None:
        """Record that the loop waited for the thread and continued without a result."""
        self._spend(end - begin)
        self._pause_writes(begin)
        if self._commits_wait:
            self._judge(quick=False)

    def record_handover(self) -> None:
        """Record that a write went to the thread and is awaited, so that other tasks have a turn."""
        self._spent = 0.0
        self._consecutive = 0

    def _reset(self) -> None:
        self._reset_scheduled = False
        self._spent = 0.0

    def _spend(self, took: float) -> None:
        self._spent += took
        if self._spent > _BUDGET / 2 and not self._reset_scheduled:
            # Not below half: scheduling the reset costs as much as a short write.
            self._reset_scheduled = True
            self._loop.call_soon(self._reset)

    def _judge(self, *, quick: bool) -> None:
        self._quick = self._quick + 1 if quick else 0
        self.trusts_disk = self._quick >= self._required
        if self._quick >= _RECOVERY * self._required > _RECOVERY * _REQUIRED:
            self._required //= 2

    def _pause_writes(self, now: float) -> None:
        """Pause the loop's writes: briefly after one slow commit, longer each time while the disk stays slow."""
        self._pause = min(max(2 * self._pause, _FIRST_PAUSE), _MAX_PAUSE)
        self._paused_until = now + self._pause
