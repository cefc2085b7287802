"""
Virtual time: an asyncio loop whose clock jumps to the next timer, and the standard clocks patched to use it.

Nothing here waits. When no callback is ready, the loop moves its clock to the earliest timer, so an hour of sleeping
costs as much as a millisecond. Libraries that call `time.monotonic`, `time.time` or `time.sleep` use the same clock, so
their own code runs unmodified.
"""

import asyncio
import contextlib
import random
import selectors
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from unittest import mock

# The wall-clock time at virtual second 0. Any date works, if it is the same in every run.
EPOCH = 1_800_000_000.0


class _JumpingSelector(selectors.BaseSelector):
    """A selector without sockets: instead of waiting for `timeout` it moves the clock."""

    def __init__(self) -> None:
        self.loop: VirtualLoop | None = None
        self._keys: dict[int, selectors.SelectorKey] = {}

    def select(self, timeout: float | None = None) -> list:
        if timeout is None:
            raise RuntimeError("deadlock: a task waits for an event that nothing is scheduled to produce")
        if timeout > 0:
            self.loop.jump()
        return []

    # The loop registers its wake-up pipe. Nothing is ever written to it.
    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, 0, events, data)
        self._keys[id(fileobj)] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(id(fileobj))

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys[id(fileobj)]

    def get_map(self) -> dict:
        return self._keys


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs callbacks in order of virtual time; ties run in the order they were scheduled."""

    def __init__(self) -> None:
        self.now = 0.0
        selector = _JumpingSelector()
        super().__init__(selector)
        selector.loop = self

    def time(self) -> float:
        return self.now

    def wall_time(self) -> float:
        return EPOCH + self.now

    def jump(self) -> None:
        """Move the clock to the earliest timer, exactly, so that no rounding errors accumulate."""
        self.now = max(self.now, self._scheduled[0]._when)


@contextlib.contextmanager
def virtual_clocks(loop: VirtualLoop, sleep: Callable[[float], None]) -> Iterator[None]:
    """Patch the standard library's clocks to use `loop`, and blocking sleeps to use `sleep`."""
    with (
        mock.patch.object(time, "monotonic", loop.time),
        mock.patch.object(time, "perf_counter", loop.time),
        mock.patch.object(time, "time", loop.wall_time),
        mock.patch.object(time, "sleep", sleep),
    ):
        yield


def run_virtual(
    main: Callable[[VirtualLoop], Awaitable[Any]], *, seed: str, sleep: Callable[[float], None]
) -> Any:
    """Run `main(loop)` to its end in virtual time, with the global random generator seeded by `seed`."""
    state = random.getstate()
    random.seed(seed)
    loop = VirtualLoop()
    try:
        with virtual_clocks(loop, sleep):
            return loop.run_until_complete(main(loop))
    finally:
        loop.close()
        random.setstate(state)
