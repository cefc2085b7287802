"""
The request, message, task or command that is being handled: its trace, and the tries and the time that its caller has left.

Code that answers a caller notes here what the caller sent; everything that it calls meanwhile belongs to the same trace, makes
no more calls than the caller has left, and ends before the caller stops waiting. OpenTelemetry is not imported: an
application that uses it has imported it already.

What the caller has left is one text in every format: the header `Amends-Left`, `amends/left` in MCP's `_meta` and A2A's and
ARCP's metadata, and AMENDS_LEFT in the environment of a child process:

    3;deadline-ms=4500;call=…

The number of calls, the milliseconds that the caller still waits, and the id of this call (`amends.foreign.trust`). Each part
may be missing, and wrong parts count as missing.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from amends.foreign.trust import new_call
from amends.recovery.clock import CLOCK

if TYPE_CHECKING:
    from opentelemetry.trace import Span

__all__ = [
    "ENVIRONMENT",
    "HEADER",
    "MEMBER",
    "NOTHING",
    "TRACEPARENT",
    "Left",
    "add_source",
    "continued_trace",
    "current_span",
    "from_environment",
    "handled_trace",
    "handling",
    "id_of",
    "incoming",
    "left",
    "left_in",
    "new_left",
    "outgoing_left",
    "traceparent",
]


def _random_id(bits: int) -> int:
    """Return a random number. `random` is imported by the first one: a program that needs none does not load it."""
    global _random_id  # noqa: PLW0603 - replaced by the method itself

    from random import Random

    # Of our own: the program's own random numbers stay as they are, and a system call costs 1.5 µs.
    source = Random()  # noqa: S311 - ids are no secrets
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=source.seed)  # no two processes choose the same ids
    _random_id = source.getrandbits  # type: ignore[assignment]
    return source.getrandbits(bits)


T = TypeVar("T")

HEADER = "Amends-Left"
MEMBER = "amends/left"
ENVIRONMENT = "AMENDS_LEFT"
TRACEPARENT = "TRACEPARENT"
"""The environment variable with the trace of a command."""

# W3C Trace Context: version, trace id, parent id, flags. Version ff and an id of zeros are invalid.
_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?"
)
_LONGEST_TEXT = 256
_LEFT = re.compile(r"(\d{0,7})((?:;[a-z-]{1,16}=[\w.]{0,80}){0,8})", re.ASCII)
_MOST = 1_000_000
_LONGEST_MS = 366 * 86_400_000
_SHARE, _LEAST = 0.05, 0.05
"""What is kept of a deadline for the own answer: 5 %, at least 50 ms."""


class Left(NamedTuple):
    """What the caller of the present request has left."""

    tries: int | None = None
    """Calls, for all layers together; None if the caller states no limit."""
    until: float | None = None
    """When the calls have to be over, on the recovery clock: before the caller stops waiting, so that the answer arrives."""
    call: str | None = None
    """The id of the call that is being answered, as the caller sent it."""


NOTHING = Left()


class _Handled(msgspec.Struct, frozen=True):
    traceparent: str | None
    left: Left = NOTHING


class _Source(NamedTuple):
    request: ContextVar[Any]
    read: Callable[[Any], object]
    left: Callable[[Any], tuple[object, float]] | None


_HANDLED: ContextVar[_Handled | None] = ContextVar("amends_handled", default=None)
_SOURCES: list[_Source] = []


def add_source(
    request: ContextVar[T | None],
    read: Callable[[T], object],
    *,
    left: Callable[[T], tuple[object, float]] | None = None,
    first: bool = False,
) -> None:
    """
    Find what a caller sent in a context variable that a module keeps anyway.

        add_source(CURRENT, lambda request: request.headers.get("traceparent"))

    Args:
        request: the request that is being handled, or None.
        read: returns the `traceparent` of a request.
        left: returns what the caller has left, as it was received, and when the request arrived, on the recovery clock.
        first: look here before the sources that were added earlier.

    """
    _SOURCES.insert(0 if first else len(_SOURCES), _Source(request, read, left))


class handling:  # noqa: N801 - used as a verb
    """A context whose code belongs to a caller's trace and limits. A value that is no `traceparent` changes nothing."""

    __slots__ = ("_handled", "_token")

    def __init__(self, traceparent: object, given: object = None, *, waited: float = 0.0) -> None:
        """
        Args:
            traceparent: the caller's trace (W3C Trace Context).
            given: what the caller has left, as it was received.
            waited: the seconds since it was received.

        """
        known = str(traceparent) if id_of(traceparent) is not None else None
        stated = NOTHING if given is None else left_in(given, CLOCK.now() - waited)
        self._handled = None if known is None and stated is NOTHING else _Handled(known, stated)
        self._token: Token[_Handled | None] | None = None

    def __enter__(self) -> None:
        if self._handled is not None:
            self._token = _HANDLED.set(self._handled)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _HANDLED.reset(self._token)


def incoming() -> str | None:
    """
    Return the `traceparent` of the request or task that is being handled, or None.

    >>> with handling("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"):
    ...     continued_trace()
    '4bf92f3577b34da6a3ce929d0e0e4736'
    """
    found = _HANDLED.get()
    if found is not None and found.traceparent is not None:
        return found.traceparent
    for source in _SOURCES:
        handled = source.request.get()
        parent = None if handled is None else source.read(handled)
        if isinstance(parent, str) and id_of(parent) is not None:
            return parent
    return None


def handled_trace() -> str | None:
    """Return the trace id that `handling` was entered with, or None."""
    found = _HANDLED.get()
    return None if found is None else id_of(found.traceparent)


def left() -> Left:
    """
    Return what the caller of the present request has left.

    >>> with handling(None, "2"):
    ...     left().tries
    2
    """
    found = _HANDLED.get()
    if found is not None and found.left is not NOTHING:
        return found.left
    for source in _SOURCES:
        handled = source.request.get()
        if handled is not None and source.left is not None:
            text, arrived = source.left(handled)
            if text is not None:
                return left_in(text, arrived)
    return NOTHING


def left_in(text: object, arrived: float) -> Left:
    """
    Return what a caller stated. Wrong values count as absent.

    >>> left_in("2;deadline-ms=2000", 100.0), left_in("many", 0.0), left_in(7, 0.0)
    (Left(tries=2, until=101.9, call=None), Left(tries=None, until=None, call=None), Left(tries=None, until=None, call=None))
    """
    if not isinstance(text, str) or len(text) > _LONGEST_TEXT:
        return NOTHING
    found = _LEFT.fullmatch(text)
    if found is None:
        return NOTHING
    tries = min(int(found[1]), _MOST) if found[1] else None
    members = dict(each.split("=", 1) for each in found[2].split(";")[1:])
    deadline = members.get("deadline-ms", "")
    until = None
    if deadline.isdecimal() and len(deadline) <= 12:
        seconds = min(int(deadline), _LONGEST_MS) / 1000
        until = arrived + max(0.0, seconds - max(seconds * _SHARE, _LEAST))
    # A caller that waits for an answer has made its call, so one call is left at least.
    return Left(None if tries is None else max(1, tries), until, members.get("call"))


def outgoing_left(tries: int | None, seconds: float | None, call: str | None = None) -> str | None:
    """
    Return what an outgoing call states; None if nothing is limited.

    >>> outgoing_left(2, 1.5)
    '2;deadline-ms=1500'

    Args:
        tries: the calls that the called service may make, together with all below it.
        seconds: how long the caller waits.
        call: the id of the call.

    """
    if tries is None and seconds is None and call is None:
        return None
    text = "" if tries is None else str(max(1, min(tries, _MOST)))
    if seconds is not None and 0 <= seconds * 1000 <= _LONGEST_MS:
        text += f";deadline-ms={int(seconds * 1000)}"
    if call is not None:
        text += f";call={call}"
    return text or None


def from_environment(environment: Mapping[str, str]) -> handling:
    """Return the context of a command, whose caller sent its trace and what it has left in the environment."""
    return handling(environment.get(TRACEPARENT), environment.get(ENVIRONMENT))


def new_left(tries: int | None, seconds: float | None) -> tuple[str | None, str | None]:
    """Return what an outgoing call states, with a new id in a process that has the secret of a system, and the id."""
    call = new_call()
    return outgoing_left(tries, seconds, call), call


# Traces --------------------------------------------------------------------------------------------------------


def id_of(traceparent: object) -> str | None:
    """
    Return the trace id in a `traceparent`, or None for any other value.

    >>> id_of("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), id_of("none")
    ('4bf92f3577b34da6a3ce929d0e0e4736', None)
    """
    found = _TRACEPARENT.fullmatch(traceparent) if isinstance(traceparent, str) else None
    return found[1] if found else None


def continued_trace() -> str:
    """Return the id of the trace that is being handled, or a new one."""
    parent = incoming()
    return (None if parent is None else id_of(parent)) or f"{_random_id(128) or 1:032x}"


def traceparent(trace: str) -> str:
    """
    Return the `traceparent` header of one outgoing request (W3C Trace Context).

    Within an OpenTelemetry span it names that span. Otherwise it names the given trace and a new span, marked as sampled:
    a service that records traces then records this one.

    Args:
        trace: the trace id of the operation, 32 hexadecimal digits.

    """
    span = current_span()
    if span is None:
        # An id of zeros is invalid.
        return f"00-{trace}-{_random_id(64) or 1:016x}-01"
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def current_span() -> Span | None:
    """Return the current OpenTelemetry span, or None if there is none."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    span: Span = trace.get_current_span()
    return span if span.get_span_context().is_valid else None
