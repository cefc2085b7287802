"""The A2A agent: a chef who writes a menu, guarded by one call."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

from amends.demo.call_record import Scene
from amends.demo.scenario import Late
from amends.errors.adcp import RateLimitedError

__all__ = ["serving"]


@contextlib.asynccontextmanager
async def serving(scene: Scene, serve: Callable[[Any, socket.socket], Any]) -> AsyncIterator[int]:
    """The agent on a free port; its card names its address, so the port comes first."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = int(listening.getsockname()[1])
    async with serve(app(scene, f"http://127.0.0.1:{port}"), listening):
        yield port


def app(scene: Scene, address: str) -> Any:
    """A Starlette application of the SDK's own routes."""
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
        """Writes a menu, when it is not asked too often."""

        async def execute(self, context: Any, event_queue: Any) -> None:
            """One message."""
            hurdle = scene.world.call("menu")
            if isinstance(hurdle, Late):
                raise RateLimitedError("The chef has too many guests", retry_after=hurdle.seconds)
            status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            await event_queue.enqueue_event(
                Task(id=context.task_id, context_id=context.context_id, status=status)
            )
            updater = TaskUpdater(event_queue, context.task_id, context.context_id)
            await updater.add_artifact([Part(text="leek soup, trout, plums")])
            await updater.complete()

        async def cancel(self, context: Any, event_queue: Any) -> None:
            """There is nothing that takes long enough."""
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
