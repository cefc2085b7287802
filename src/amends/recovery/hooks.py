"""The hooks that receive the events of recovery: those of the process and that of one operation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Any

from amends.core import recording
from amends.recovery.events import EventHook, log_event, make_event, request_facts
from amends.recovery.stepper import Stepper

__all__ = ["add_hook", "only_hooks", "publish", "remove_hook", "set_hooks"]

_lock = Lock()
_hooks: tuple[EventHook, ...] | None = None  # None: no hooks were set, so `log_event` is the only one


def set_hooks(*hooks: EventHook) -> None:
    """Use exactly these hooks from now on. Without arguments no events are sent. The default is a logging hook."""
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


def add_hook(hook: EventHook) -> None:
    """Add a hook. Adding one that is there already changes nothing."""
    global _hooks  # noqa: PLW0603
    with _lock:
        present = _current()
        if hook not in present:
            _hooks = (*present, hook)


def remove_hook(hook: EventHook) -> None:
    """Remove a hook. Removing one that is not there changes nothing."""
    global _hooks  # noqa: PLW0603
    with _lock:
        _hooks = tuple(each for each in _current() if each != hook)


def _current() -> tuple[EventHook, ...]:
    return (log_event,) if _hooks is None else _hooks


@contextmanager
def publish(
    kind: str,
    stepper: Stepper,
    now: float,
    own: EventHook | None = None,
    *,
    upstream: Any = None,
    trace: str = "",
) -> Iterator[None]:
    """
    Send an event to every hook, and hold the context managers they return open while the block runs.

    An exception of a hook is logged and changes nothing else.

    Args:
        kind: the kind of the event.
        stepper: the operation.
        now: the time.
        own: the hook of this operation; it is called first.
        upstream: the Upstream of the operation, for the recorder.
        trace: the trace id for the recorder, if neither the operation nor the failure has one.

    """
    if recording.active():
        _record(kind, stepper, now, upstream, trace)
    hooks = _current() if own is None else (own, *_current())
    if not hooks:
        yield
        return
    event = make_event(kind, stepper, now)
    with ExitStack() as stack:
        for hook in hooks:
            try:
                covering = hook(event)
                if covering is not None:
                    stack.enter_context(covering)
            except Exception:
                import logging

                logging.getLogger("amends.recovery").exception("a recovery hook failed: %r", hook)
        yield


def _record(kind: str, stepper: Stepper, now: float, upstream: Any, trace: str) -> None:
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
