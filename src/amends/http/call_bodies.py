"""
What client bindings read from answers, all in the same way: failures, within bounds.

- The service is the vendor that the user names (`vendor=` on the transport or the Upstream), else that of the host. Answers
  of a known vendor, and of GraphQL, are looked into for failures; routes that only compute are repeatable without a key.
- The body of a failed answer is read up to `LIMIT` bytes and for at most `SECONDS`. If it breaks off, the answer still has
  its status and headers.
- A successful answer whose body breaks off, or is still arriving when the deadline is over, is a failure of the call: it
  is repeated if the whole body was asked for and a repeat is safe, and raised as a typed error otherwise.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from time import time
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from amends.carriers.extraction import extract
from amends.core.decision import Decision, State, decide
from amends.core.enums import Action, Executed
from amends.core.fault import Fault
from amends.errors.base import FaultError
from amends.http.key_support import KEY
from amends.recovery.async_library import time_limit
from amends.recovery.classify import fault_of
from amends.recovery.clock import CLOCK
from amends.serving.effect_unknown import EFFECT_UNKNOWN
from amends.vendors.computing import route_computes
from amends.vendors.registry import check, vendor, vendor_of_origin
from amends.vendors.watch import StreamWatch

if TYPE_CHECKING:
    from amends.http.calls import Call

__all__ = [
    "ENCODED_LIMIT",
    "GRACE",
    "LIMIT",
    "PEEKED",
    "SECONDS",
    "SLACK",
    "BodyReading",
    "FailedBody",
    "Service",
    "WatchedBody",
    "broken_body_error",
    "error_from_response",
    "in_time",
    "is_effect_unknown",
    "service_of",
]

LIMIT = 1024 * 1024
"""Bytes of a failed answer's body that are read; a larger body is not parsed."""
ENCODED_LIMIT = 64 * 1024
"""The same for a compressed body, which may be a thousand times larger when decompressed."""
PEEKED = 64 * 1024
"""Bytes of a stream that are read in search of the first output, before the answer is returned."""
SLACK = 0.02
"""Seconds that a socket's time-out may be early."""
GRACE = 0.05
"""Seconds in which the body of a failed answer is read at least: the deadline leaves as much for our own answer."""
SECONDS = 10.0
"""How long a failed answer's body is read; one that takes longer is not parsed."""


class FailedBody:
    """The body of a failed answer while it is read. `complete` is False if it was too large, too slow or broke off."""

    def __init__(self, call: Call, *, encoded: bool) -> None:
        now = CLOCK.now()
        until = now + SECONDS
        # A service that answers when its caller's time is nearly over sends the body with the headers, or just after them.
        self.until = until if call.until is None else max(min(until, call.until), now + GRACE)
        self.limit = ENCODED_LIMIT if encoded else LIMIT
        self.parts: list[bytes] = []
        self.size = 0
        self.complete = False

    def read(self, source: Iterator[bytes]) -> None:
        """Read a body within the bounds."""
        self.complete = all(self.add(part) for part in source)

    async def aread(self, source: AsyncIterator[bytes]) -> None:
        """
        Read a body within the bounds.

        Raises:
            TimeoutError: the time is over.

        """
        async with time_limit(self.left):
            async for part in source:
                if not self.add(part):
                    return
            self.complete = True

    def add(self, part: bytes) -> bool:
        """Add a part and return whether to read on."""
        self.parts.append(part)
        self.size += len(part)
        return self.size <= self.limit and CLOCK.now() < self.until

    @property
    def left(self) -> float:
        """The seconds left for reading."""
        return max(0.0, self.until - CLOCK.now())


class BodyReading(msgspec.Struct):
    """The body of a successful answer while the caller reads it, within the deadline of the operation."""

    call: Call
    until: float | None = None
    """When the deadline is over, on the recovery clock."""
    whole: bool = False
    """Whether the client asked for the whole body. If so, a break is repeated where that is safe."""

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
            call.upstream.begin()
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


def broken_body_error(error: Exception, made: int) -> FaultError:
    """Return the error of a body that broke off, counting the attempts that were made before, for `recover`."""
    fault = fault_of(error)
    typed = error if isinstance(error, FaultError) else FaultError.from_fault(fault)
    typed.fault = replace(fault, attempt=made) if made > 1 else fault
    typed.__cause__ = None if typed is error else error
    return typed


def error_from_response(
    status: int,
    headers: Mapping[str, str],
    body: bytes | None,
    response: object,
    *,
    vendor: str | None = None,
    own: bool = False,
) -> FaultError:
    """
    Return the typed error of a failed response.

    Args:
        status: the response's status.
        headers: the response's headers.
        body: the response's body, or None if it is too large or incomplete.
        response: the client library's response, which becomes the error's attribute `response`.
        vendor: the service that was called, if it is known by its host or by the user's word.
        own: whether it is part of the user's own system.

    """
    found = extract(
        {"status": status, "headers": dict(headers), "body": body},
        "http",
        vendor=vendor,
        native=False,
        own=own,
    )
    fault = found or Fault(code="INTERNAL_ERROR", status=status)
    if fault.code == EFFECT_UNKNOWN:
        # Not repeated with its key, even if the service says so: the effect has to be verified first (M3).
        fault = replace(fault, max_retries=0)
    error = FaultError.from_fault(fault)
    error.response = response  # type: ignore[attr-defined]
    return error


def is_effect_unknown(error: FaultError) -> bool:
    """
    Return whether the server does not know if an earlier attempt with this key had its effect (design, section 8).

    If so, the error's decision becomes `verify`.
    """
    if error.fault.code != EFFECT_UNKNOWN:
        return False
    error.decision = Decision(action=Action.VERIFY, delay=None, reason="effect-unknown")
    return True


# The service ---------------------------------------------------------------------------------------------------

_DOCUMENTS = ("json", "xml", "multipart/mixed")
_STREAMS = ("event-stream", "ndjson", "jsonl", "json-seq", "stream+json")
_ENDLESS = frozenset({"kubernetes", "docker-registry"})
"""Vendors whose successful answers are data of any kind and size, and never report a failure."""


class Service(msgspec.Struct, frozen=True):
    """The facts about the service of one request."""

    vendor: str | None = None
    graphql: bool = False
    computes: bool = False
    """The route only computes, such as a chat or an embedding: a repeat is safe without a key, if the request names nothing else
    (`amends.vendors.computing`)."""
    key_header: str = KEY
    """The header that carries an idempotency key."""

    @property
    def key_field(self) -> str:
        """The header with the key, in lower case."""
        return self.key_header.lower()

    @property
    def inspected(self) -> bool:
        """Whether successful answers of the service are looked into."""
        return self.graphql or (self.vendor is not None and self.vendor not in _ENDLESS)

    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> Fault | None:
        """Return the failure inside the whole body of a successful answer, or None."""
        if not self.inspected or not 200 <= status < 300 or not 0 < len(body) <= LIMIT:
            return None
        kind = headers.get("content-type") or ""
        if kind and not any(each in kind for each in (*_DOCUMENTS, *_STREAMS)):
            return None
        response = {"status": status, "headers": dict(headers), "body": body}
        return extract(response, "http", vendor=self.vendor or "graphql", native=False, in_success=True)

    def watch(self, status: int, headers: Mapping[str, str]) -> StreamWatch | None:
        """Return what watches the stream of a model, or None if the answer is none."""
        if not self.computes or status != 200 or headers.get("content-encoding"):
            return None
        kind = headers.get("content-type") or ""
        return StreamWatch(self.vendor, time) if any(each in kind for each in _STREAMS) else None


_UNKNOWN = Service()
_GRAPHQL = Service(graphql=True)


def service_of(name: str | None, origin: str, path: str, method: str) -> Service:
    """
    Return the facts about the service of a request.

    >>> service_of(None, "https://api.openai.com", "/v1/chat/completions", "POST").computes
    True

    Args:
        name: the vendor that the user names; None: the host says it.
        origin: the scheme, host and port of the request.
        path: the path of its address.
        method: its method.

    Raises:
        LookupError: for an unknown vendor.

    """
    graphql = path.rstrip("/").endswith("/graphql")
    name = vendor_of_origin(origin) if name is None else check(name)
    if name is None:
        return _GRAPHQL if graphql else _UNKNOWN
    known = vendor(name)
    computes = route_computes(known, method, path)
    keys = known.keys
    header = KEY if keys is None or keys.header is None else keys.header
    return Service(name, graphql or name == "graphql", computes, header)
