"""
What a request is about to do, so that somebody can reason about it when it is cut short (P11).

    from amends.http.intent import declare, reached

    async def create_invoice(request):
        declare(operation="create_invoice", resource_id="inv-17", state="started")
        ...
        reached("payment_processing")

Below `Cancellable` this ends up in the 408 and in the status resource; elsewhere it does nothing.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

__all__ = ["CURRENT", "Intent", "declare", "reached"]


class Intent:
    """One request's plan. Shared by the handler and whoever watches it, threads included."""

    __slots__ = ("more", "operation", "recovery", "resource_id", "state")

    def __init__(self, operation: str) -> None:
        self.operation = operation
        self.resource_id: str | None = None
        self.state = "unknown"
        self.recovery: str | None = None
        self.more: dict[str, Any] = {}

    def told(self, id: str, status_path: str) -> dict[str, Any]:
        """The member `intent` of a problem."""
        way = f"It may be in progress or done. GET {status_path} tells what became of it."
        return {
            **self.more,
            "operation": self.operation,
            "resource_id": self.resource_id or id,
            "state_before_cancel": self.state,
            "recovery": self.recovery or way,
        }


CURRENT: ContextVar[Intent | None] = ContextVar("amends_http_intent", default=None)


def declare(
    *,
    operation: str | None = None,
    resource_id: str | None = None,
    state: str | None = None,
    recovery: str | None = None,
    **more: Any,
) -> None:
    """
    Say what this request is about to do, or more about it.

    Args:
        operation: what it is called.
        resource_id: what it makes or changes.
        state: how far it is.
        recovery: what somebody should do who finds it cut short; how to find out what became of it, without one.
        more: further members of the intent.

    """
    intent = CURRENT.get()
    if intent is None:
        return
    intent.operation = operation or intent.operation
    intent.resource_id = resource_id or intent.resource_id
    intent.state = state or intent.state
    intent.recovery = recovery or intent.recovery
    intent.more.update(more)


def reached(state: str) -> None:
    """Say how far this request is."""
    declare(state=state)
