"""What was tried: one record per call, on success and on failure."""

from __future__ import annotations

from typing import Any

import msgspec

from amends.core.decision import Decision
from amends.core.fault import Fault

__all__ = ["Attempt"]


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    One call of an operation, and what was decided about it.

    Equal by value. A pickled attempt keeps everything but `error` and `result`: other libraries' exceptions do not
    survive the journey.
    """

    number: int
    """1-based."""
    started: float
    """When the call was made, on the monotonic clock: only differences mean something."""
    duration: float
    """Seconds until it returned or raised."""
    parked: float = 0.0
    """Seconds it was held back before it was made, because of the state of its upstream."""
    fault: Fault | None = None
    """What went wrong; None for the call that succeeded."""
    error: Any = None
    """The exception as it was raised, where one was."""
    result: Any = None
    """The answer that was found to be a failure, where an answer was examined."""
    decision: Decision | None = None
    """What was decided; None for the call that succeeded."""
    wait: float = 0.0
    """Seconds waited after it."""

    def __reduce__(self) -> tuple[Any, ...]:
        kept = {
            name: getattr(self, name) for name in self.__struct_fields__ if name not in {"error", "result"}
        }
        return _rebuilt, (kept,)


def _rebuilt(kept: dict[str, Any]) -> Attempt:
    return Attempt(**kept)
