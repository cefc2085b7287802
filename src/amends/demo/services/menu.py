"""The demo's A2A agent: a chef who writes a menu, with `guard` around it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from amends.demo.call_record import CurrentRecord
from amends.demo.scenario import RateLimit
from amends.errors.adcp import RateLimitedError

if TYPE_CHECKING:
    from a2a.server.agent_execution import RequestContext
    from a2a.server.events import EventQueue
    from starlette.applications import Starlette
    from starlette.types import ASGIApp

__all__ = ["serving"]


@contextlib.asynccontextmanager
async def serving(
    current: CurrentRecord, serve: Callable[[ASGIApp, socket.socket], AbstractAsyncContextManager[int]]
) -> AsyncIterator[int]:
    """Serve the agent on a free port. The socket is opened first, because the agent card contains the address."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = int(listening.getsockname()[1])
    async with serve(app(current, f"http://127.0.0.1:{port}"), listening):
        yield port


def app(current: CurrentRecord, address: str) -> Starlette:
    """Return a Starlette application with the SDK's routes."""
    from a2a.server.agent_execution import AgentExecutor
    from a2a.server.request_handlers import DefaultRequestHandler
    from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
    from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
    from a2a.types.a2a_pb2 import (
        AgentCapabilities,
        AgentCard,
        AgentInterface,
        Part,
        Task,
        TaskState,
        TaskStatus,
    )
    from starlette.applications import Starlette

    from amends.bindings.a2a import guard

    class Chef(AgentExecutor):
        """Writes a menu, unless it is rate limited."""

        async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
            """Handle one message."""
            failure = current.record.record_call("menu")
            if isinstance(failure, RateLimit):
                raise RateLimitedError("The chef has too many guests", retry_after=failure.seconds)
            status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            await event_queue.enqueue_event(
                Task(id=context.task_id, context_id=context.context_id, status=status)
            )
            updater = TaskUpdater(event_queue, context.task_id or "", context.context_id or "")
            await updater.add_artifact([Part(text="leek soup, trout, plums")])
            await updater.complete()

        async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
            """Not supported: a menu takes no time."""
            raise NotImplementedError

    card = AgentCard(
        name="chef",
        description="Writes menus",
        version="1",
        capabilities=AgentCapabilities(streaming=False),
        default_input_modes=["text"],
        default_output_modes=["text"],
        supported_interfaces=[
            AgentInterface(url=f"{address}/rpc", protocol_binding="JSONRPC", protocol_version="1.0")
        ],
    )
    handler = guard(DefaultRequestHandler(guard(Chef()), InMemoryTaskStore(), card))
    return Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/rpc")])
