"""
Where the bindings report failures that they read, act on or send: `emit`.

Nothing happens until a sink is set; `amends.record` sets it. A sink only takes a note and returns: the recorder redacts
and writes on a thread of its own. A failing sink never fails a call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amends.core.fault import Fault

__all__ = ["Sink", "active", "add_sink", "emit", "remove_sink", "set_sink", "start_at_first_failure"]

Sink = Callable[[str, str, Fault, dict[str, Any]], None]
"""Takes where it happened, the outcome, the fault and further facts, as `emit` does."""

_sink: Sink | None = None
"""The recorder's."""
_others: tuple[Sink, ...] = ()
_starter: Callable[[], object] | None = None


def set_sink(sink: Sink | None) -> None:
    """Send every note to `sink` from now on; None: to none."""
    global _sink, _starter
    _sink, _starter = sink, None


def add_sink(sink: Sink) -> None:
    """Send every note to this sink too. A second call with the same one changes nothing."""
    global _others  # noqa: PLW0603
    if sink not in _others:
        _others = (*_others, sink)


def remove_sink(sink: Sink) -> None:
    """Do not send notes to a sink that was added any more."""
    global _others  # noqa: PLW0603
    _others = tuple(each for each in _others if each != sink)


def start_at_first_failure(starter: Callable[[], object]) -> None:
    """Call `starter`, which sets a sink, at the first failure. A sink that is set before makes it unnecessary."""
    global _starter  # noqa: PLW0603
    _starter = starter


def active() -> bool:
    """Return whether notes are taken."""
    return _sink is not None or _starter is not None or bool(_others)


def emit(where: str, outcome: str, fault: Fault, **facts: object) -> None:
    """
    Report a failure.

    Args:
        where: the binding, such as "http server"; `amends.recorder.WHERE` lists them.
        outcome: what became of it, such as "retry" or "sent"; `amends.recorder.OUTCOMES` lists them.
        fault: the failure as it is known in this process; it is redacted before it is written.
        facts: members of `amends.recorder.Event`, such as `trace_id`, `name` or `decision`.

    """
    if _sink is None and _starter is not None:
        _start()
    if _sink is not None:
        _send(_sink, where, outcome, fault, facts)
    for sink in _others:
        _send(sink, where, outcome, fault, facts)


def _send(sink: Sink, where: str, outcome: str, fault: Fault, facts: dict[str, object]) -> None:
    try:
        sink(where, outcome, fault, facts)
    except Exception:
        import logging

        logging.getLogger("amends.recorder").exception("a failure could not be recorded")


def _start() -> None:
    global _starter
    starter, _starter = _starter, None
    if starter is None:
        return
    try:
        starter()
    except Exception:
        import logging

        logging.getLogger("amends.recorder").exception("the recorder could not be started")
