"""
Our A2A side against that of `adcp` 9.2, both ways, on the loopback.

- Its client calls our guarded agent, which raises every standard code in turn: its own extraction has to find the code,
  the recovery and the wait.
- Our client calls its server, whose handler raises every standard code in turn: each has to come out as our typed error.

`adcp` holds a2a-sdk at 1.0.1, so this runs in the benchmarks' environment only; `make test` has the same paths against
whatever a2a-sdk it installs.
"""

import asyncio
import logging
import socket
import threading
import time
from contextlib import contextmanager
from uuid import uuid4

import uvicorn
from a2a.client import ClientConfig
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types.a2a_pb2 import AgentInterface, Message, Part, Role, SendMessageRequest
from google.protobuf.json_format import ParseDict
from starlette.applications import Starlette

from amends import Fault, FaultError
from amends.bindings.a2a import Client, guard
from amends.core.vocabularies.adcp import VOCABULARY
from amends.recovery import NONE
from bench.a2a import CARD

WAIT = 7
PARAMETERS = {"brief": "rooms", "buying_mode": "brief"}


@contextmanager
def served(build):
    """The address of `build(address)`, served in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        options = uvicorn.Config(build(base), log_config=None, lifespan="off", ws="none")
        server = uvicorn.Server(options)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        until = time.monotonic() + 20
        while not server.started and time.monotonic() < until:
            time.sleep(0.01)
        try:
            yield base
        finally:
            server.should_exit = True
            thread.join(20)


class Raising(AgentExecutor):
    """Raises the error that the message names."""

    error = None

    async def execute(self, context, event_queue):
        raise self.error

    async def cancel(self, context, event_queue):
        raise NotImplementedError


def errors():
    """One of every standard code, as our producers raise it."""
    for row in VOCABULARY.rows.values():
        wait = WAIT if row.recovery == "transient" else None
        yield FaultError.from_fault(_fault(row, wait))


def _fault(row, wait):
    return Fault(
        code=row.code, message=row.message, vocabulary="adcp", recovery=row.recovery, retry_after=wait
    )


async def theirs_reads_ours():
    """How many of our errors its client finds, of how many."""
    from adcp.protocols.a2a import A2AAdapter
    from adcp.types.core import AgentConfig, Protocol

    executor = Raising()

    def build(base):
        card = type(CARD)()
        card.CopyFrom(CARD)
        card.ClearField("supported_interfaces")
        interface = AgentInterface(url=f"{base}/rpc", protocol_binding="JSONRPC", protocol_version="1.0")
        card.supported_interfaces.append(interface)
        handler = guard(DefaultRequestHandler(guard(executor), InMemoryTaskStore(), card))
        routes = [
            *create_agent_card_routes(card),
            *create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True),
        ]
        return Starlette(routes=routes)

    found = total = 0
    with served(build) as base:
        for error in errors():
            executor.error = error
            adapter = A2AAdapter(AgentConfig(id="ours", agent_uri=base, protocol=Protocol.A2A))
            result = await adapter.get_products(PARAMETERS)
            await adapter.close()
            said, fault = result.adcp_error or {}, error.fault
            total += 1
            wanted = (fault.code, fault.recovery.value, fault.retry_after)
            found += (said.get("code"), said.get("recovery"), said.get("retry_after")) == wanted
    return found, total


async def ours_reads_theirs():
    """How many of its server's errors our client raises typed, of how many."""
    from adcp.decisioning.types import AdcpError
    from adcp.server.a2a_server import create_a2a_server
    from adcp.server.base import ADCPHandler

    current = []

    class Handler(ADCPHandler):
        advertised_tools = {"get_products"}

        async def get_products(self, params, context=None):
            row = current[-1]
            wait = WAIT if row.recovery == "transient" else None
            raise AdcpError(row.code, message=row.message, recovery=row.recovery.value, retry_after=wait)

    found = total = 0
    with served(lambda base: create_a2a_server(Handler(), public_url=base)) as base:
        async with Client(base, config=ClientConfig(streaming=False), policy=NONE) as client:
            for row in VOCABULARY.rows.values():
                current.append(row)
                total += 1
                try:
                    async for _ in client.send_message(_skill("get_products", PARAMETERS)):
                        pass
                except FaultError as error:
                    wait = WAIT if row.recovery == "transient" else None
                    wanted = (row.code, row.recovery, wait)
                    found += (error.fault.code, error.fault.recovery, error.fault.retry_after) == wanted
    return found, total


def _skill(name, parameters):
    part = Part()
    ParseDict({"skill": name, "parameters": parameters}, part.data.struct_value)
    return SendMessageRequest(message=Message(role=Role.ROLE_USER, message_id=str(uuid4()), parts=[part]))


def main():
    logging.disable(logging.CRITICAL)
    lines = ["| | errors | read right |", "|---|---|---|"]
    for what, run in (
        ("adcp 9.2's client reads what our guard sends", theirs_reads_ours),
        ("our client reads what adcp 9.2's server sends", ours_reads_theirs),
    ):
        found, total = asyncio.run(run())
        lines.append(f"| {what} | {total} | {found} |")
    return lines


if __name__ == "__main__":
    print("\n".join(main()))
