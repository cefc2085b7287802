"""`Attempt`: the record of one call, kept for successful and failed operations. `History`: several of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from amends.core.decision import Decision
from amends.core.fault import Fault
from amends.core.text import one_line

__all__ = ["Attempt", "History"]


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    One call of an operation, and what was decided about it.

    Compared by value. Pickling leaves out `error` and `result`, because exceptions of other libraries often cannot be
    pickled.

    `recover(history=)` collects them, and a raised FaultError has them in `.history`.

    >>> from amends import recover
    >>> history: list[Attempt] = []
    >>> recover(lambda: "page", history=history)
    'page'
    >>> [(attempt.number, attempt.fault) for attempt in history]
    [(1, None)]
    """

    number: int
    """Starts at 1."""
    started: float
    """When the call was made, on the monotonic clock: only differences have a meaning."""
    duration: float
    """Seconds until it returned or raised."""
    parked: float = 0.0
    """Seconds it waited in the queue of its upstream before it was made."""
    fault: Fault | None = None
    """The failure; None for the call that succeeded."""
    error: Any = None
    """The exception that the call raised, if it raised one."""
    result: Any = None
    """The response in which `examine` found the failure."""
    decision: Decision | None = None
    """The decision; None for the call that succeeded."""
    wait: float = 0.0
    """Seconds waited after it."""
    target: str = ""
    """The target of the `Failover` that was called."""

    def __reduce__(self) -> tuple[object, ...]:
        kept = {
            name: getattr(self, name) for name in self.__struct_fields__ if name not in {"error", "result"}
        }
        return partial(Attempt, **kept), ()


class History(tuple[Attempt, ...]):
    """
    The attempts of one operation. It is a tuple; `print(error.history)` shows it as a small table.

    >>> print(History([Attempt(number=1, started=0.0, duration=0.21, fault=Fault(code="TIMEOUT"), wait=1.0)]))
    #  took    failure  decision  waited
    1  0.21 s  TIMEOUT            1 s
    """

    __slots__ = ()

    def __str__(self) -> str:
        rows = [("#", "took", "failure", "decision", "waited"), *map(_row, self)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _row(attempt: Attempt) -> tuple[str, str, str, str, str]:
    """Return the cells of one attempt. They contain no text of the failing service."""
    fault, decision = attempt.fault, attempt.decision
    code = "-" if fault is None else one_line(fault.code)
    failure = code if fault is None or fault.status is None else f"{code} {fault.status}"
    waited = attempt.wait + attempt.parked
    return (
        str(attempt.number),
        f"{attempt.duration:.3g} s",
        failure,
        "" if decision is None else f"{decision.action.value} ({decision.reason})",
        f"{waited:.3g} s" if waited else "",
    )
