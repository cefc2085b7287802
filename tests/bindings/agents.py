"""
A2A agents on the loopback, with the SDK's own server and client, on every path of the protocol.

A path is a binding (JSON-RPC or REST), a protocol version (1.0 or 0.3), and a mode (single responses or streams).
"""

from contextlib import asynccontextmanager, contextmanager
from typing import NamedTuple
from uuid import uuid4

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes, create_rest_routes
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
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette

# pytest parses a module when it is imported. CPython 3.11 crashes if garbage whose finalizer writes a traceback, as the
# SDK's server leaves some, is collected while it parses. So these modules are imported before any test runs.
from amends.core.redaction import rules  # noqa: F401
from amends.recovery import events  # noqa: F401
from tests.http.serving import serve


class Path(NamedTuple):
    binding: str
    version: str
    streaming: bool

    def __str__(self):
        return f"{self.binding}-{self.version}-{'stream' if self.streaming else 'once'}"


CONTEXT = httpx.create_ssl_context()
"""Made once, because it takes most of the time of making an HTTP client."""


def http_client(timeout=100):
    return httpx.AsyncClient(timeout=timeout, verify=CONTEXT)


PATHS = [
    Path(binding, version, streaming)
    for binding in ("JSONRPC", "HTTP+JSON")
    for version in ("1.0", "0.3")
    for streaming in (False, True)
]


SOME = [PATHS[0], PATHS[3], PATHS[5], PATHS[6]]
"""Every pair of binding, version and mode, for tests that do not need all eight paths."""


def card(base="http://agent.invalid", path=PATHS[0]):
    """The agent's card. The SDK adds the prefix /v1 to REST paths of 0.3."""
    return AgentCard(
        name="agent",
        description="An agent",
        version="1",
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text"],
        default_output_modes=["text"],
        skills=[AgentSkill(id="s", name="Skill", description="Does it", tags=["t"])],
        supported_interfaces=[
            AgentInterface(
                url=f"{base}/rpc" if path.binding == "JSONRPC" else base,
                protocol_binding=path.binding,
                protocol_version=path.version,
            )
        ],
    )


class Agent(AgentExecutor):
    """Runs a function of (context, updater)."""

    def __init__(self, work, *, opening=True, stop=None):
        self.work, self.opening, self.stop = work, opening, stop
        self.calls = 0

    async def execute(self, context, event_queue):
        self.calls += 1
        if self.opening and context.current_task is None:
            task = Task(
                id=context.task_id,
                context_id=context.context_id,
                status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
                history=[context.message],
            )
            await event_queue.enqueue_event(task)
        await self.work(context, TaskUpdater(event_queue, context.task_id, context.context_id))

    async def cancel(self, context, event_queue):
        if self.stop is None:
            raise NotImplementedError
        await self.stop(context, TaskUpdater(event_queue, context.task_id, context.context_id))


async def works(context, updater):
    """Work that completes its task."""
    await updater.start_work()
    await updater.add_artifact([Part(text="done")], artifact_id="result")
    await updater.complete()


def failing(error):
    """Return work that raises `error`."""

    async def work(context, updater):
        raise error

    return work


def application(executor, *, wrap=lambda handler: handler, store=None, **options):
    """An application with all routes of the SDK for one executor."""
    handler = wrap(DefaultRequestHandler(executor, store or InMemoryTaskStore(), card(), **options))
    return Starlette(
        routes=[
            *create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True),
            *create_rest_routes(handler, enable_v0_3_compat=True),
        ]
    )


class Store(InMemoryTaskStore):
    """The SDK's store in memory; it raises `error` if that is set."""

    error = None

    async def get(self, *args, **kwargs):
        if self.error is not None:
            raise self.error
        return await super().get(*args, **kwargs)


class AgentServer:
    """A server that runs for a whole test module; each test sets the work of its agent."""

    def __init__(self, base, agent, store):
        self.base, self.agent, self.store = base, agent, store

    def does(self, work, *, opening=True, stop=None):
        self.agent.work, self.agent.opening, self.agent.stop = work, opening, stop
        self.agent.calls, self.store.error = 0, None
        return self

    def client(self, path):
        return plain_client(self.base, path)


@contextmanager
def guarded_server(guarded):
    """A server whose executor and handler are wrapped by `guarded`."""
    agent, store = Agent(works), Store()
    with agent_server(guarded(agent), wrap=guarded, store=store) as base:
        yield AgentServer(base, agent, store)


@contextmanager
def agent_server(executor, **options):
    """Serve an executor on a free port, and yield the address."""
    with serve(application(executor, **options), timeout_graceful_shutdown=1) as base:
        yield base


def config(path, **options):
    return ClientConfig(streaming=path.streaming, supported_protocol_bindings=[path.binding], **options)


@asynccontextmanager
async def plain_client(base, path):
    """The SDK's own client."""
    async with http_client() as http:
        yield ClientFactory(config(path, httpx_client=http)).create(card(base, path))


def request(text="hi", **more):
    return SendMessageRequest(
        message=Message(role=Role.ROLE_USER, message_id=str(uuid4()), parts=[Part(text=text)], **more)
    )


async def events_of(client, sent=None):
    """All events of a message, as dicts."""
    return [MessageToDict(event) async for event in client.send_message(sent or request())]
