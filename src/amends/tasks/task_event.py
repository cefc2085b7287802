"""The events of tasks that hooks get. They have names, codes and numbers, and never payloads, results or texts of failures."""

from __future__ import annotations

from typing import Literal

import msgspec

from amends.core.enums import Recovery
from amends.core.vocabulary import row_for

__all__ = ["Kind", "TaskEvent"]

Kind = Literal[
    "submitted",
    "attempt",
    "retry",
    "failed",
    "fallback",
    "finished",
    "asked",
    "doubt",
    "undone",
    "undo-failed",
    "taken-over",
    "ended",
]
"""The kind of an event."""


class TaskEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of one task."""

    kind: Kind
    at: float
    task: str
    agent: str | None = None
    capability: str | None = None
    step: str | None = None
    attempt: int | None = None
    code: str | None = None
    recovery: Recovery | None = None
    delay: float | None = None
    reason: str | None = None
    status: str | None = None
    began: float | None = None
    trace: str | None = None
    """The W3C `traceparent` of the task's submission."""

    @property
    def recoverable(self) -> bool:
        """`recoverable` of the agent error contract: False only for a terminal failure."""
        return self.recovery is not Recovery.TERMINAL

    @property
    def message(self) -> str:
        """The standard message of the code; never the text of the failure."""
        return row_for("task", self.code or "").message if self.code else ""
