"""
The one value every dialect is read into and written from.

A Fault is the union of what the five dialects can say. It is frozen, compared by value, and keeps what was
received: bounds are applied when somebody acts on it, never when it is read.
"""

from __future__ import annotations

from typing import Any

import msgspec

from amends.core.defaults import fill
from amends.core.enums import TRANSIENT, UNCERTAIN, Actor, Executed, Recovery

__all__ = ["Fault", "Origin"]

# Stands in a field's default for "look it up by (vocabulary, code)"; no constructed Fault ever holds it.
_FROM_TABLE: Any = None


class Origin(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """
    Where a fault was found. A fault without one was made in this process.

    `layer` is "transport" for what a gateway or protocol library said before the call was dispatched,
    "application" for what the called thing said itself. `gap` names what a conformant sender would have done.
    """

    dialect: str
    path: str | None = None
    layer: str = "application"
    gap: str | None = None


# gc=False: a fault holds plain values, which cannot refer back to it, so the collector need not look.
class Fault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """
    A failure, as one value.

    Only `code` is needed: what is left out of `recovery`, `executed` and `actor` comes from the table row of
    (`vocabulary`, `code`).

    >>> Fault(code="RATE_LIMITED", retry_after=5).recovery
    <Recovery.TRANSIENT: 'transient'>
    """

    code: str
    """What went wrong, in the words of `vocabulary`."""
    message: str = ""
    """For people. Never decides anything."""
    recovery: Recovery = _FROM_TABLE
    """What kind of answer it asks for."""
    vocabulary: str = "everyday"
    """Whose code it is: everyday, http, cli, task, adcp, arcp, app (a user's own), or a further one."""
    retry_after: float | None = None
    """Seconds to wait, as received; bounds apply when acting."""
    strategy: str | None = None
    """The sender's advice on spacing retries (S2's retry_strategy)."""
    max_retries: int | None = None
    """The sender's advice on how many retries make sense; lowers ours, never raises them."""
    field: str | None = None
    """The part of the request at fault. For display only, never a path to follow."""
    suggestions: tuple[str, ...] = ()
    """Recovery steps, the most likely fix first."""
    details: dict[str, Any] | None = None
    """Structured context, as raised or received."""
    errors: tuple[Fault, ...] = ()
    """The parts of a failure that has several."""
    trace_id: str | None = None
    doc_uri: str | None = None
    type: str | None = None
    """The problem type URI (S1); compared as a whole, never parsed."""
    title: str | None = None
    status: int | None = None
    """The HTTP status."""
    instance: str | None = None
    intent: dict[str, Any] | None = None
    """What a cancelled operation was about to do (S1)."""
    user_message: str | None = None
    """What to tell the person at the end of the chain."""
    actor: Actor = _FROM_TABLE
    """Who has to act next."""
    attempt: int | None = None
    """Tries already made by somebody below us; they count."""
    max_attempts: int | None = None
    executed: Executed = _FROM_TABLE
    """Could the failed call have had its effect?"""
    extensions: dict[str, Any] = {}
    """Members we do not know, kept so that passing the error on loses nothing."""
    origin: Origin | None = None
    """Where it was found; None when it was made here."""

    def __post_init__(self) -> None:
        # What was found somewhere was completed by its decoder; these tests run for every fault, so they are few.
        if (
            self.origin is not None
            and self.recovery.__class__ is Recovery
            and self.executed.__class__ is Executed
            and self.actor.__class__ is Actor
        ):
            return
        fill(self)

    @property
    def retryable(self) -> bool:
        """Whether the same request, unchanged, is worth sending again (transient or uncertain)."""
        return self.recovery is TRANSIENT or self.recovery is UNCERTAIN
