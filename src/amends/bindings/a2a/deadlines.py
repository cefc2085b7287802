"""How long the client waits: for a whole operation, and for each event of a stream."""

from __future__ import annotations

import asyncio
from typing import Any, Self

from a2a.types.a2a_pb2 import StreamResponse

from amends.bindings.a2a.faults import failure
from amends.bindings.a2a.http_recorder import HEARD, Heard
from amends.core.policy import Policy
from amends.recovery.clock import CLOCK
from amends.recovery.scope import time_left

__all__ = ["Clock", "Events"]


class Events:
    """The events of an SDK's stream, each waited for no longer than allowed; what it raises is a typed error."""

    def __init__(self, source: Any, clock: Clock, timeout: float) -> None:
        self._source = source
        self._clock = clock
        self._timeout = timeout
        self._heard = Heard()
        self._patience = _Patience()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._patience.end()
        await self._source.aclose()

    async def next(self) -> StreamResponse | None:
        """The next one; None when there is none any more."""
        before = HEARD.set(self._heard)
        self._patience.begin(self._clock.left(self._timeout))
        try:
            event: StreamResponse = await anext(self._source)
        except StopAsyncIteration:
            return None
        except asyncio.CancelledError as exc:
            if not self._patience.ran_out():
                raise
            raise failure(TimeoutError(), self._heard) from exc
        except Exception as exc:
            raise failure(exc, self._heard) from exc
        finally:
            self._patience.pause()
            HEARD.reset(before)
        return event


class _Patience:
    """
    One timer for all the waits of a stream, where `asyncio.timeout` would set and cancel one for each.

    It cancels the task that waits, as that does, and takes its own cancellation back.
    """

    __slots__ = ("_before", "_due", "_expired", "_task", "_timer")

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[Any] | None = None
        self._due = 0.0
        self._before = 0
        self._expired = False

    def begin(self, seconds: float) -> None:
        """Wait for no longer than this."""
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._before = self._task.cancelling() if self._task is not None else 0
        self._due = loop.time() + seconds
        if self._timer is not None and self._timer.when() > self._due:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = loop.call_at(self._due, self._look, loop)

    def pause(self) -> None:
        """Nobody waits now."""
        self._task = None

    def end(self) -> None:
        """Nobody will wait any more."""
        if self._timer is not None:
            self._timer.cancel()

    def ran_out(self) -> bool:
        """Whether a cancellation was this one's, and nobody else's too."""
        return self._expired and self._task is not None and self._task.uncancel() <= self._before

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        if self._task is None:
            return
        if loop.time() < self._due:
            self._timer = loop.call_at(self._due, self._look, loop)
        else:
            self._expired = True
            self._task.cancel()


class Clock:
    """When the time for a whole operation is over."""

    def __init__(self, policy: Policy) -> None:
        left = time_left()
        own = policy.deadline
        seconds = own if left is None else left if own is None else min(own, left)
        self._until = None if seconds is None else CLOCK.now() + seconds

    def left(self, most: float) -> float:
        """Seconds that may still be waited, and no more than `most`."""
        return most if self._until is None else max(0.0, min(most, self._until - CLOCK.now()))

    def over(self) -> bool:
        """Whether no time is left."""
        return self._until is not None and CLOCK.now() >= self._until
