"""
Declare what a request is about to do, so that a client can find out how far it got if it ends early (P11).

    from amends.http.intent import declare, reached

    async def create_invoice(request):
        declare(operation="create_invoice", resource_id="inv-17", state="started")
        ...
        reached("payment_processing")

Below the `Cancellable` middleware the intent is part of the 408 response and of the status resource. Elsewhere these
functions have no effect.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from amends.core.wrong_calls import explains_wrong_calls

__all__ = ["CURRENT", "Intent", "declare", "reached"]


class Intent:
    """
    The declared intent of one request. The handler, its threads and the middleware share one instance.

    `declare` and `reached` change it; `Cancellable` makes it and reads it.

    >>> intent = Intent("create_invoice")
    >>> intent.state = "payment_processing"
    >>> intent.as_dict("inv-17", "/operations/inv-17")["recovery"]
    'It may be in progress or done. GET /operations/inv-17 to learn the outcome.'
    """

    __slots__ = ("more", "operation", "recovery", "resource_id", "state")

    def __init__(self, operation: str) -> None:
        self.operation = operation
        self.resource_id: str | None = None
        self.state = "unknown"
        self.recovery: str | None = None
        self.more: dict[str, object] = {}

    def as_dict(self, id: str, status_path: str) -> dict[str, Any]:
        """Return the member `intent` of a problem document."""
        recovery = f"It may be in progress or done. GET {status_path} to learn the outcome."
        return {
            **self.more,
            "operation": self.operation,
            "resource_id": self.resource_id or id,
            "state_before_cancel": self.state,
            "recovery": self.recovery or recovery,
        }


CURRENT: ContextVar[Intent | None] = ContextVar("amends_http_intent", default=None)


def declare(
    *,
    operation: str | None = None,
    resource_id: str | None = None,
    state: str | None = None,
    recovery: str | None = None,
    **more: object,
) -> None:
    """
    Declare what the current request is about to do, or add to an earlier declaration.

        declare(operation="create_invoice", resource_id="inv-17", state="started")

    Args:
        operation: the name of the operation.
        resource_id: the id of the resource that it creates or changes.
        state: the step that the operation has reached.
        recovery: what a client should do if the request ends early; by default, to GET the status resource.
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


@explains_wrong_calls
def reached(state: str) -> None:
    """
    Declare the step that the current request has reached.

        reached("payment_processing")
        await pay(invoice)
    """
    declare(state=state)
