"""How long the client waits: for a whole operation, and for each event of a stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Self

from a2a.types.a2a_pb2 import StreamResponse

from amends.bindings.a2a.faults import failure
from amends.bindings.a2a.http_recorder import Recording
from amends.core.policy import Policy
from amends.recovery.clock import CLOCK
from amends.recovery.scope import time_left
from amends.serving.deadlines import Deadlines, Limit

__all__ = ["Deadline", "EventReader"]


class EventReader:
    """Reads the events of an SDK stream, with a time limit for each. Use it with `async with`."""

    def __init__(self, source: AsyncIterator[StreamResponse], deadline: Deadline, timeout: float) -> None:
        """
        Args:
            source: the async generator of an SDK method.
            deadline: the deadline of the operation.
            timeout: seconds to wait for one event, if the deadline is not nearer.

        """
        self._source = source
        self._deadline = deadline
        self._timeout = timeout
        self._limits = Deadlines()
        self._recording = Recording()
        self._count = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._limits.close()
        if isinstance(self._source, AsyncGenerator):
            await self._source.aclose()

    @property
    def streamed(self) -> bool:
        """Whether the agent streamed the events. Without streaming the SDK makes one event of the response."""
        return self._recording.streamed or self._count > 1

    async def next(self) -> StreamResponse | None:
        """
        Return the next event, or None at the end of the stream.

        Raises:
            FaultError: the stream failed, or no event came in time.

        """
        try:
            with self._recording, Limit(self._limits, self._deadline.seconds_left(self._timeout)):
                event: StreamResponse | None = await anext(self._source, None)
        except Exception as exc:
            raise failure(exc, self._recording) from exc
        if event is not None:
            self._count += 1
        return event


class Deadline:
    """The deadline of an operation: the policy's, or that of the recovery around it, whichever is nearer."""

    def __init__(self, policy: Policy) -> None:
        around = time_left()
        own = policy.deadline
        seconds = own if around is None else around if own is None else min(own, around)
        self._until = None if seconds is None else CLOCK.now() + seconds

    def seconds_left(self, most: float) -> float:
        """Return the seconds until the deadline, at most `most`."""
        return most if self._until is None else max(0.0, min(most, self._until - CLOCK.now()))

    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return self._until is not None and CLOCK.now() >= self._until
