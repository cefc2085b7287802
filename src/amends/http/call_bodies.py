"""
Reading the bodies of answers, the same way in every client binding.

- The body of a failed answer is read up to `LIMIT` bytes and for at most `SECONDS`. If it breaks off, the answer still has
  its status and headers.
- A successful answer whose body breaks off, or is still arriving when the deadline is over, is a failure of the call: it
  is repeated if the whole body was asked for and a repeat is safe, and raised as a typed error otherwise.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from amends.core.decision import State, decide
from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.errors.base import FaultError
from amends.recovery.classify import fault_of
from amends.recovery.clock import CLOCK
from amends.recovery.scope import time_left

if TYPE_CHECKING:
    from amends.http.calls import Call
    from amends.vendors.watch import StreamWatch

__all__ = [
    "ENCODED_LIMIT",
    "LIMIT",
    "PEEKED",
    "SECONDS",
    "SLACK",
    "BodyReading",
    "FailedBody",
    "WatchedBody",
    "broken_body_error",
    "in_time",
]

LIMIT = 1024 * 1024
"""Bytes of a failed answer's body that are read; a larger body is not parsed."""
ENCODED_LIMIT = 64 * 1024
"""The same for a compressed body, which may be a thousand times larger when decompressed."""
PEEKED = 64 * 1024
"""Bytes of a stream that are read in search of the first output, before the answer is returned."""
SLACK = 0.02
"""Seconds that a socket's time-out may be early."""
SECONDS = 10.0
"""How long a failed answer's body is read; one that takes longer is not parsed."""


class FailedBody:
    """The body of a failed answer while it is read. `complete` is False if it was too large, too slow or broke off."""

    def __init__(self, *, encoded: bool) -> None:
        left = time_left()
        self.until = CLOCK.now() + (SECONDS if left is None else min(SECONDS, left))
        self.limit = ENCODED_LIMIT if encoded else LIMIT
        self.parts: list[bytes] = []
        self.size = 0
        self.complete = False

    def add(self, part: bytes) -> bool:
        """Add a part and return whether to read on."""
        self.parts.append(part)
        self.size += len(part)
        return self.size <= self.limit and CLOCK.now() < self.until

    @property
    def left(self) -> float:
        """The seconds left for reading."""
        return max(0.0, self.until - CLOCK.now())

    @property
    def content(self) -> bytes:
        """What was read."""
        return b"".join(self.parts)


class BodyReading:
    """The body of a successful answer while the caller reads it, within the deadline of the operation."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.whole = False
        """Whether the client asked for the whole body. If so, a break is repeated where that is safe."""
        left = time_left()
        self.until = None if left is None else CLOCK.now() + left

    def check_time(self, slack: float = 0.0) -> None:
        """Raise a time-out error if the deadline is over; `slack` is the inaccuracy of a library's own time-out."""
        if self.until is not None and CLOCK.now() >= self.until - slack:
            raise late_body_error()

    @property
    def left(self) -> float | None:
        """The seconds left until the deadline; None without one."""
        return None if self.until is None else max(0.0, self.until - CLOCK.now())

    def broke(self, error: Exception) -> BaseException:
        """
        Return what to raise for a body that broke off, and report the failure to the Upstream.

        If the whole body was asked for, the error is returned as it is: the binding repeats the call, which reports it.
        """
        call, options = self.call, self.call.options
        if self.whole:
            return error
        fault = fault_of(error)
        if call.upstream is not None:
            call.upstream.join()
            call.upstream.failed(fault, CLOCK.now(), call.sent, CLOCK.draw())
        if options.raises == "nothing" and not isinstance(error, FaultError):
            return error
        typed = error if isinstance(error, FaultError) else FaultError.from_fault(fault)
        typed.decision = decide(
            replace(fault, attempt=None),
            policy=options.policy,
            state=State(attempt=call.made),
            operation=call.operation,
        )
        if options.raises == "original" and typed is not error:
            error.fault, error.decision = fault, typed.decision  # type: ignore[attr-defined]
            return error
        if typed is not error:
            typed.__cause__ = error
        return typed


class WatchedBody:
    """
    The stream of a model while it is read: a failure before the first output is raised at once, a later one in its place.

    With `raises="nothing"` a later failure is left in the stream, for the library that reads it.
    """

    def __init__(self, watch: StreamWatch, call: Call) -> None:
        self.watch, self.call = watch, call
        self.parts: list[bytes] = []
        self.size = 0
        self.fault: Fault | None = None

    @property
    def peeking(self) -> bool:
        """Whether to read on in search of the first output."""
        return self.fault is None and not self.watch.delivered and self.size < PEEKED

    def add(self, part: bytes) -> None:
        """Add a part that was read before the first output."""
        good, self.fault = self.watch.feed(part)
        self.parts.append(part if self.call.options.raises == "nothing" else good)
        self.size += len(part)

    def early(self) -> FaultError | None:
        """Return the error of a failure that was found before any output, or None."""
        fault = self.fault
        if fault is None and not self.watch.delivered and self.size < PEEKED:
            fault = self.watch.end()
        return None if fault is None or self.watch.delivered else FaultError.from_fault(fault)

    def error(self, fault: Fault) -> FaultError:
        """Return the error of a failure after the first output: `delivered` is the number of events before it."""
        error = FaultError.from_fault(fault)
        error.delivered = self.watch.delivered
        return error

    def judge(self, part: bytes) -> tuple[bytes, FaultError | None]:
        """Return what of a part comes before a failure, and its error."""
        if self.call.options.raises == "nothing":
            return part, None
        good, fault = self.watch.feed(part)
        return good, None if fault is None else self.error(fault)

    def rest(self, source: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the rest of the stream; raise the typed error of a failure in it."""
        if self.fault is not None and self.call.options.raises != "nothing":
            raise self.error(self.fault)
        for part in source:
            good, error = self.judge(part)
            yield good
            if error is not None:
                raise error
        self._raise_at_end()

    async def arest(self, source: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Same as `rest`, for async streams."""
        if self.fault is not None and self.call.options.raises != "nothing":
            raise self.error(self.fault)
        async for part in source:
            good, error = self.judge(part)
            yield good
            if error is not None:
                raise error
        self._raise_at_end()

    def _raise_at_end(self) -> None:
        fault = None if self.call.options.raises == "nothing" else self.watch.end()
        if fault is not None:
            raise self.error(fault)


def in_time(error: Exception, reading: BodyReading) -> Exception:
    """Return the error that ended a body: a time-out error instead if the deadline is over, because it ended the read."""
    try:
        reading.check_time(SLACK)
    except FaultError as late:
        late.__cause__ = error
        return late
    return error


def late_body_error() -> FaultError:
    """Return the error of a body that was still arriving when the deadline was over."""
    return FaultError.from_fault(
        Fault(
            code="TIMEOUT",
            message="The deadline was over before the body had arrived",
            executed=Executed.MAYBE,
        )
    )


def broken_body_error(error: Exception, made: int) -> Any:
    """Return the error of a body that broke off, counting the attempts that were made before, for `recover`."""
    fault = fault_of(error)
    typed = error if isinstance(error, FaultError) else FaultError.from_fault(fault)
    typed.fault = replace(fault, attempt=made) if made > 1 else fault
    typed.__cause__ = None if typed is error else error
    return typed
