"""`Attempt`: the record of one call, kept for successful and failed operations."""

from __future__ import annotations

from typing import Any

import msgspec

from amends.core.decision import Decision
from amends.core.fault import Fault

__all__ = ["Attempt"]


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    One call of an operation, and what was decided about it.

    Compared by value. Pickling leaves out `error` and `result`, because exceptions of other libraries often cannot be
    pickled.
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

    def __reduce__(self) -> tuple[Any, ...]:
        kept = {
            name: getattr(self, name) for name in self.__struct_fields__ if name not in {"error", "result"}
        }
        return _from_fields, (kept,)


def _from_fields(fields: dict[str, Any]) -> Attempt:
    return Attempt(**fields)
