"""
What a guard and the client cost a successful A2A message, in process: CPU time per message, with and without, interleaved.

Both sides are the SDK's own, over JSON-RPC 1.0, joined in memory by httpx's ASGI transport, so that no socket hides the
difference. The agent publishes a task, a status, an artifact and its completion. Bare and ours take turns in
short rounds; ratios are those of one round.
"""

import asyncio
import gc
import logging
import sys
import time
from statistics import median, quantiles

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    Role,
    SendMessageRequest,
    Task,
    TaskState,
    TaskStatus,
)
from starlette.applications import Starlette

from amends.bindings.a2a import Client, guard

ROUNDS, CALLS = 400, 6
URL = "http://agent.invalid/rpc"
CARD = AgentCard(
    name="agent",
    description="An agent",
    version="1",
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text"],
    default_output_modes=["text"],
    skills=[AgentSkill(id="s", name="Skill", description="Does it", tags=["t"])],
    supported_interfaces=[AgentInterface(url=URL, protocol_binding="JSONRPC", protocol_version="1.0")],
)


class Agent(AgentExecutor):
    async def execute(self, context, event_queue):
        status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
        task = Task(
            id=context.task_id, context_id=context.context_id, status=status, history=[context.message]
        )
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        await updater.add_artifact([Part(text="Four rooms are free on Monday.")], artifact_id="rooms")
        await updater.complete()

    async def cancel(self, context, event_queue):
        raise NotImplementedError


def server(*, guarded):
    """A server of its own for each contender: stores grow."""
    executor = guard(Agent()) if guarded else Agent()
    handler = DefaultRequestHandler(executor, InMemoryTaskStore(), CARD)
    handler = guard(handler) if guarded else handler
    app = Starlette(routes=create_jsonrpc_routes(handler, "/rpc"))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app))


def client(*, ours, guarded, streaming):
    config = ClientConfig(streaming=streaming, httpx_client=server(guarded=guarded))
    return Client(CARD, config=config) if ours else ClientFactory(config).create(CARD)


async def timed(contender, calls):
    """Microseconds of CPU per message."""
    began = time.process_time_ns()
    for number in range(calls):
        message = Message(
            role=Role.ROLE_USER, message_id=f"m-{number}", parts=[Part(text="Which rooms are free?")]
        )
        async for _ in contender.send_message(SendMessageRequest(message=message)):
            pass
    return (time.process_time_ns() - began) / calls / 1000


WAYS = {
    "guarded server": {"ours": False, "guarded": True},
    "our client": {"ours": True, "guarded": False},
    "both": {"ours": True, "guarded": True},
}
BARE = {"ours": False, "guarded": False}


async def compared(streaming, options, rounds, calls):
    """Bare and ours in turn, many short rounds: (ours, bare) of each."""
    ours, bare = client(streaming=streaming, **options), client(streaming=streaming, **BARE)
    for each in (ours, bare):
        await timed(each, calls)
    pairs = []
    gc.disable()
    for number in range(rounds):
        gc.collect()
        if number % 2:
            first = await timed(ours, calls)
            pairs.append((first, await timed(bare, calls)))
        else:
            first = await timed(bare, calls)
            pairs.append((await timed(ours, calls), first))
    gc.enable()
    return pairs


def main(rounds=ROUNDS, calls=CALLS):
    logging.disable(logging.ERROR)
    lines = [
        "| a successful message | with, CPU µs | bare, CPU µs | ratio (middle half) | want |",
        "|---|---|---|---|---|",
    ]
    for streaming in (False, True):
        for what, options in WAYS.items():
            pairs = asyncio.run(compared(streaming, options, rounds, calls))
            low, middle, high = quantiles([a / b for a, b in pairs], n=4)
            name = f"{'streaming' if streaming else 'answered once'}, {what}"
            costs = f"{median(a for a, _ in pairs):.0f} | {median(b for _, b in pairs):.0f}"
            want = "≤ 1.08" if what == "both" else ""
            lines.append(f"| {name} | {costs} | {middle:.3f} ({low:.3f}–{high:.3f}) | {want} |")
    return lines


if __name__ == "__main__":
    print("\n".join(main(*(int(each) for each in sys.argv[1:]))))
