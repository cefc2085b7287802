"""
What of its time the event loop gives to writes, and whether it trusts the disk with it.

The loop lends its time: after `_LENT` seconds of writes without a turn for others the next one is the thread's, and awaited.
So is one in `_IN_A_ROW`, whoever had turns: the thread then moves the write-ahead log into the file, too. After a
write that took long, or that the loop waited for in vain, it is spared for a while; for ever longer, if that goes on.

A commit that waits for the disk cannot be left half way, so the loop does it only on a disk that has earned it: the last
`_PROOF` commits in a row, done by the thread, were quick. One that is not quick ends that, and all of it has to be shown
again. After one that held the loop up for longer than `_STALL` it is twice as much each time: a disk that
stalls now and then is soon left to the thread for good, and has to be quick for long to be forgiven.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop

__all__ = ["Patience"]

_LENT = 0.004
_IN_A_ROW = 256
# More than being preempted on a busy machine, less than anybody would call responsive.
_SLOW = 0.02
_SPARED = 1.0
_SPARED_FIRST = 0.002
# Several fsyncs of a fast disk, with room for a busy machine, and nothing anybody notices.
_QUICK = 0.001
_STALL = 0.004
_PROOF = 32
_MOST_PROOF = 1 << 16
# So many times the proof it takes to be forgiven one stall.
_FORGIVEN = 16


class Patience:
    """One store's: told how long each write took, it says who does the next."""

    __slots__ = (
        "_counting",
        "_in_a_row",
        "_lent",
        "_loop",
        "_proof",
        "_quick",
        "_spare",
        "_spared_until",
        "_waits",
        "trusts",
    )

    def __init__(self, loop: AbstractEventLoop, *, commits_wait: bool) -> None:
        self._loop = loop
        self._waits = commits_wait
        self.trusts = not commits_wait
        """Whether the loop may do a commit itself."""
        self._in_a_row = 0
        self._lent = 0.0
        self._counting = False
        self._spare = 0.0
        self._spared_until = 0.0
        self._quick = 0
        self._proof = _PROOF

    def left(self, now: float) -> bool:
        """Whether the loop has time for a write at all."""
        return self._lent <= _LENT and self._in_a_row < _IN_A_ROW and now >= self._spared_until

    @property
    def worn(self) -> bool:
        """Whether it is a while since the thread had a write."""
        return self._in_a_row >= _IN_A_ROW

    def did(self, begin: float, end: float) -> None:
        """The loop did a write itself."""
        took = end - begin
        self._in_a_row += 1
        self._lend(took)
        if took > _SLOW:
            self._lose(end)
        else:
            self._spare /= 2
        if self._waits:
            if took > _STALL:
                self._proof = min(2 * self._proof, _MOST_PROOF)
            self._judge(quick=took < _QUICK)

    def waited(self, begin: float, end: float) -> None:
        """It waited for the thread, and had its answer."""
        self._lend(end - begin)
        self._spare /= 2
        if self._waits:
            self._judge(quick=end - begin < _QUICK)

    def waited_in_vain(self, begin: float, end: float) -> None:
        """It waited, and went on without one."""
        self._lend(end - begin)
        self._lose(begin)
        if self._waits:
            self._judge(quick=False)

    def gave(self) -> None:
        """It left a write to the thread, and gives others a turn."""
        self._lent = 0.0
        self._in_a_row = 0

    def _turn(self) -> None:
        self._counting = False
        self._lent = 0.0

    def _lend(self, took: float) -> None:
        self._lent += took
        if self._lent > _LENT / 2 and not self._counting:
            # Before that it does not matter whether others had a turn, and asking costs as much as a short write.
            self._counting = True
            self._loop.call_soon(self._turn)

    def _judge(self, *, quick: bool) -> None:
        self._quick = self._quick + 1 if quick else 0
        self.trusts = self._quick >= self._proof
        if self._quick >= _FORGIVEN * self._proof > _FORGIVEN * _PROOF:
            self._proof //= 2

    def _lose(self, now: float) -> None:
        """One slow commit costs little; a disk that stays slow is tried ever more rarely."""
        self._spare = min(max(2 * self._spare, _SPARED_FIRST), _SPARED)
        self._spared_until = now + self._spare
