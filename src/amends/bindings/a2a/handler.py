"""
Guards a request handler: its failures leak nothing.

The SDK answers an exception of a task store or a push sender with its text. The guarded handler answers with a JSON-RPC
error that has a standard message and an AdCP error in its data, and logs the exception.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.utils.errors import A2AError

from amends.bindings.a2a.responses import error_for, internal_error, left_of, protocol_error, traceparent_of
from amends.dialects.adcp import KEY
from amends.serving.server_errors import PLAIN, OwnErrors
from amends.serving.tracing import handling

__all__ = ["GuardedHandler"]


def _answer(exc: Exception, context: object, name: str, own_errors: OwnErrors) -> A2AError:
    """Return the protocol error to answer an exception with."""
    if isinstance(exc, A2AError) and isinstance(exc.data, dict) and KEY in exc.data:
        # A guarded executor raised it.
        return exc
    error = protocol_error(exc)
    if error is not None:
        return error
    with handling(None, left_of(context)):
        return internal_error(error_for(exc, name, traceparent_of(context), own_errors))


def _call(name: str) -> Any:
    """Return a method with a single response."""

    async def method(self: GuardedHandler, params: object, context: object) -> object:
        try:
            with handling(traceparent_of(context), left_of(context)):
                return await getattr(self._handler, name)(params, context)
        except Exception as exc:  # noqa: BLE001 - the guard answers failures of any kind
            raise _answer(exc, context, name, self.own_errors) from None

    method.__name__ = name
    return method


def _stream(name: str) -> Any:
    """Return a method that yields events."""

    async def method(self: GuardedHandler, params: object, context: object) -> AsyncGenerator[object]:
        try:
            async with aclosing(getattr(self._handler, name)(params, context)) as events:
                async for event in events:
                    yield event
        except Exception as exc:  # noqa: BLE001
            raise _answer(exc, context, name, self.own_errors) from None

    method.__name__ = name
    return method


class GuardedHandler(RequestHandler):
    """A handler that raises protocol errors instead of the wrapped handler's exceptions."""

    def __init__(self, handler: RequestHandler, *, own_errors: OwnErrors = PLAIN) -> None:
        self._handler = handler
        self.own_errors = own_errors

    def __getattr__(self, name: str) -> object:
        return getattr(self._handler, name)

    on_get_task = _call("on_get_task")
    on_list_tasks = _call("on_list_tasks")
    on_cancel_task = _call("on_cancel_task")
    on_message_send = _call("on_message_send")
    on_message_send_stream = _stream("on_message_send_stream")
    on_subscribe_to_task = _stream("on_subscribe_to_task")
    on_create_task_push_notification_config = _call("on_create_task_push_notification_config")
    on_get_task_push_notification_config = _call("on_get_task_push_notification_config")
    on_list_task_push_notification_configs = _call("on_list_task_push_notification_configs")
    on_delete_task_push_notification_config = _call("on_delete_task_push_notification_config")
    on_get_extended_agent_card = _call("on_get_extended_agent_card")
