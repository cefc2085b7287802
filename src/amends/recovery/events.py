"""
What recovery reports of an operation: the Event, the hooks that receive it, and how it is logged.

An event contains names, numbers and the address of the call; never arguments, messages or results. Method and URL come from
the operation, or from the request that the exceptions and responses of HTTP libraries carry (httpx, requests, aiohttp,
urllib3, urllib).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from threading import Lock

import msgspec
from msgspec.structs import replace

from amends.core import recording
from amends.core.enums import Recovery
from amends.core.operation import Operation
from amends.core.wrong_calls import explains_wrong_calls
from amends.dialects.outgoing import outgoing
from amends.logs import logger
from amends.recovery.incoming import id_of, incoming
from amends.recovery.stepper import Stepper

__all__ = [
    "LONG_WAIT",
    "Event",
    "EventHook",
    "add_hook",
    "describe_call",
    "log_close_failed",
    "log_event",
    "log_late_call",
    "log_level",
    "make_event",
    "only_hooks",
    "plain_url",
    "publish",
    "record_event",
    "remove_hook",
    "request_facts",
    "set_hooks",
]

_LONGEST = 300


def request_facts(operation: Operation, error: object, result: object) -> tuple[str, str]:
    """Return the method and the URL of a call, each empty if it is not known."""
    if operation.url:
        return operation.method, plain_url(operation.url)
    from amends.foreign.safe_attr import attribute

    for holder in (error, result):
        if holder is None:
            continue
        response = attribute(holder, "response")
        for request in (
            attribute(holder, "request"),
            attribute(holder, "request_info"),
            attribute(response, "request"),
            attribute(response, "request_info"),
            holder,
        ):
            method, url = attribute(request, "method"), attribute(request, "url")
            if url is not None and not callable(url):
                return method.upper() if isinstance(method, str) else operation.method, plain_url(url)
    return operation.method, ""


def plain_url(url: object) -> str:
    """
    Return a URL without user, query and fragment, and without parts that look like credentials.

    >>> plain_url("https://ada:secret@api.example.com/v1/orders?token=x#top")
    'https://api.example.com/v1/orders'
    """
    from amends.core.redaction import SECRETS, redact
    from amends.core.redaction.text import hide_keys

    try:
        text = str(url)[: 4 * _LONGEST]
    except Exception:  # noqa: BLE001 - an object of another library
        return ""
    text = text.partition("?")[0].partition("#")[0]
    scheme, separator, rest = text.partition("://")
    if separator:
        host, slash, path = rest.partition("/")
        text = f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
    text = "".join(each for each in text if each.isprintable())
    return redact(hide_keys(text), kinds=SECRETS)[:_LONGEST]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """
    Something that recovery did for one operation.

    Hooks are called with it: those of `add_hook`, and `recover(on_event=)`.

    >>> from amends import recover
    >>> from amends.testing import FakeClock, Script
    >>> seen: list[Event] = []
    >>> with FakeClock():
    ...     page = recover(Script(TimeoutError(), "page 1"), read_only=True, on_event=seen.append)
    >>> [(event.kind, event.code) for event in seen]
    [('retry', 'TIMEOUT'), ('recovered', 'TIMEOUT')]
    """

    kind: str
    """retry · queued · gave-up · recovered · fallback · refresh · setup · verify · fix"""
    operation: str
    """`Operation.name`."""
    code: str
    vocabulary: str
    recovery: Recovery
    attempt: int
    """The number of calls made so far."""
    delay: float | None
    """For a retry, the seconds recovery will wait; for a queued call, those it is expected to wait, or has waited."""
    reason: str
    """A key of `amends.core.decision.REASONS`."""
    elapsed: float
    """Seconds since the first call was sent."""
    method: str = ""
    """The HTTP method of the call, if it is known."""
    url: str = ""
    """Its URL without query, if it is known."""
    status: int | None = None
    """The HTTP status of the failure, if it has one."""
    trace_id: str | None = None
    """The trace id of the failure, else that of the operation."""
    target: str = ""
    """The target of a `Failover` that was called last."""


EventHook = Callable[[Event], AbstractContextManager[object] | None]
"""Receives an event. For a retry it may return a context manager, which recovery holds open during the wait."""


def make_event(kind: str, stepper: Stepper, now: float) -> Event:
    """Return the event of an operation whose last call failed."""
    assert stepper.fault is not None
    fault, decision, operation = outgoing(stepper.fault, "telemetry"), stepper.decision, stepper.operation
    last = stepper.history[-1] if stepper.history else None
    method, url = request_facts(
        operation, None if last is None else last.error, None if last is None else last.result
    )
    return Event(
        kind=kind,
        operation=operation.name,
        code=fault.code,
        vocabulary=fault.vocabulary,
        recovery=fault.recovery,
        attempt=stepper.state.attempt,
        delay=decision.delay,
        reason=decision.reason,
        elapsed=now - (stepper.state.started or 0.0),
        method=method,
        url=url,
        status=fault.status,
        trace_id=fault.trace_id or operation.trace_id or None,
        target="" if last is None else last.target,
    )


_log = logger("amends.recovery")


LONG_WAIT = 2.0
"""Seconds. A longer wait is logged as a warning, because a person may be waiting for the call."""


def describe_call(operation: str, method: str, url: str) -> str:
    """
    Return what was called, as one short text.

    >>> describe_call("search", "GET", "https://api.example.com/v1"), describe_call("", "", "")
    ('search GET https://api.example.com/v1', 'operation')
    """
    # The HTTP clients name an operation "GET api.example.com"; the URL says more.
    name = "" if url and method and operation.startswith(f"{method} ") else operation
    return " ".join(dict.fromkeys(each for each in (name, method, url) if each)) or "operation"


_WAITS = frozenset({"retry", "queued"})


def log_level(event: Event) -> int:
    """Return the level of an event: WARNING for a long wait and when recovery gives up, otherwise INFO."""
    if event.kind == "gave-up" or (event.kind in _WAITS and (event.delay or 0.0) > LONG_WAIT):
        return logging.WARNING
    return logging.INFO


def log_event(event: Event) -> None:
    """
    Log one event to the logger "amends.recovery". `record.amends` is a dict of the event's fields.

    The message has the kind, what was called (the operation's name, the method and the URL without query), the code, the
    HTTP status, the number of calls so far, the reason, the wait and the trace id, as far as they are known. The trace id is that
    of the request that is being handled, if there is one; another one of the failure is its `upstream_trace_id`.
    """
    level = log_level(event)
    if not _log.isEnabledFor(level):
        return
    called = describe_call(event.operation, event.method, event.url)
    facts = [event.reason]
    if event.delay is not None:
        facts.append(f"{event.delay:.3g} s")
    caller = id_of(incoming())
    if trace := caller or event.trace_id:
        facts.append(f"trace id {trace}")
    if caller and event.trace_id and event.trace_id != caller:
        # A span that began a trace of its own, or a service that has its own ids.
        facts.append(f"upstream_trace_id={event.trace_id}")
    _log.log(
        level,
        "%s %s: %s%s after attempt %d (%s)",
        event.kind,
        called,
        event.code,
        "" if event.status is None else f" {event.status}",
        event.attempt,
        ", ".join(facts),
        extra={"amends": msgspec.structs.asdict(event)},
    )


_late: set[str] = set()
_MOST_LATE = 100


def log_close_failed(error: Exception) -> None:
    """Log that a stream could not be closed, without the text of the exception."""
    _log.warning("a stream could not be closed: %s", type(error).__name__)


def log_late_call(call: Callable[..., object], timeout: float) -> None:
    """Log, once per function, that a plain call took longer than its time-out: a thread cannot be stopped."""
    name = getattr(call, "__qualname__", type(call).__name__)
    if name in _late or len(_late) >= _MOST_LATE:
        return
    _late.add(name)
    _log.warning(
        "%s took longer than timeout=%g: a running function cannot be stopped. Give its client a time-out "
        "(amends.recovery.time_left() has the seconds left), or use arecover, which cancels the call",
        name,
        timeout,
    )


_lock = Lock()
_hooks: tuple[EventHook, ...] | None = None  # None: no hooks were set, so `log_event` is the only one


def set_hooks(*hooks: EventHook) -> None:
    """
    Use exactly these hooks from now on. Without arguments no events are sent. The default is a logging hook.

    >>> set_hooks()  # no events
    >>> set_hooks(log_event)  # the default
    """
    global _hooks  # noqa: PLW0603 - the hooks belong to the process
    with _lock:
        _hooks = hooks


@contextmanager
def only_hooks(*hooks: EventHook) -> Iterator[None]:
    """Use exactly these hooks in a block, and afterwards those that were there before."""
    global _hooks  # noqa: PLW0603
    with _lock:
        before, _hooks = _hooks, hooks
    try:
        yield
    finally:
        with _lock:
            _hooks = before


@explains_wrong_calls
def add_hook(hook: EventHook) -> None:
    """
    Add a hook. Adding one that is there already changes nothing.

        add_hook(lambda event: statistics.count(event.kind, event.code))
    """
    global _hooks  # noqa: PLW0603
    if not callable(hook):
        raise TypeError(f"hook is a function that takes an Event, not {type(hook).__name__}")
    with _lock:
        present = _current()
        if hook not in present:
            _hooks = (*present, hook)


@explains_wrong_calls
def remove_hook(hook: EventHook) -> None:
    """
    Remove a hook. Removing one that is not there changes nothing.

    >>> add_hook(print)
    >>> remove_hook(print)
    """
    global _hooks  # noqa: PLW0603
    with _lock:
        _hooks = tuple(each for each in _current() if each != hook)


def _current() -> tuple[EventHook, ...]:
    return (log_event,) if _hooks is None else _hooks


def publish(
    kind: str,
    stepper: Stepper,
    now: float,
    own: EventHook | None = None,
    *,
    upstream: object = None,
    trace: str = "",
    target: str = "",
) -> AbstractContextManager[object]:
    """
    Send an event to every hook. Return a context that holds the context managers they returned open.

    An exception of a hook is logged and changes nothing else. While thousands of calls wait, each has this context: if no
    hook returned a context manager, it is one that all calls share.

    Args:
        kind: the kind of the event.
        stepper: the operation.
        now: the time.
        own: the hook of this operation; it is called first.
        upstream: the Upstream of the operation, for the recorder.
        trace: the trace id for the recorder, if neither the operation nor the failure has one.
        target: the target that was called last, if it is not that of the last failure.

    """
    hooks = _current() if own is None else (own, *_current())
    event = make_event(kind, stepper, now) if hooks else None
    if event is not None and target:
        event = replace(event, target=target)
    if recording.active():
        _record(kind, stepper, now, upstream, trace)
    if event is None:
        return _NOTHING_HELD
    stack: ExitStack | None = None
    try:
        for hook in hooks:
            try:
                covering = hook(event)
                if covering is not None:
                    stack = ExitStack() if stack is None else stack
                    stack.enter_context(covering)
            except Exception:  # noqa: BLE001 - a hook changes nothing else
                _log.exception("a recovery hook failed: %r", hook)
    except BaseException:
        if stack is not None:
            stack.close()
        raise
    return _NOTHING_HELD if stack is None else stack


_NOTHING_HELD: AbstractContextManager[object] = nullcontext()


def record_event(kind: str, stepper: Stepper, now: float, upstream: object, trace: str) -> None:
    """Report an event to the recorder only."""
    if recording.active():
        _record(kind, stepper, now, upstream, trace)


def _record(kind: str, stepper: Stepper, now: float, upstream: object, trace: str) -> None:
    """Report an event to the recorder, with the whole fault and decision."""
    fault, decision, operation = stepper.fault, stepper.decision, stepper.operation
    assert fault is not None
    method, url = operation.method, operation.url
    if not url:
        last = stepper.history[-1] if stepper.history else None
        method, url = request_facts(
            operation, None if last is None else last.error, None if last is None else last.result
        )
    recording.emit(
        operation.binding or "call",
        kind,
        fault,
        name=operation.name,
        method=method,
        url=url,
        decision=decision,
        # The call that succeeded is not counted yet.
        attempt=stepper.state.attempt + (kind == "recovered"),
        elapsed=now - (stepper.state.started or 0.0),
        wait=decision.delay,
        trace_id=operation.trace_id or fault.trace_id or trace,
        upstream=getattr(upstream, "service", None),
        vendor=getattr(upstream, "vendor", None),
    )
