"""ARCP runtimes as agents: jobs with the step's key, and sessions that are replaced."""

import asyncio

from amends.arcp import Limits, Runtime
from amends.arcp.errors import AgentNotAvailableError
from amends.arcp.errors import TimeoutError as ArcpTimeoutError
from amends.arcp.transports import websocket
from amends.tasks.remote.arcp import ArcpAgent
from tests.ports import free_port
from tests.tasks.remote.orchestrated import SOON, orchestrated


async def test_an_arcp_runtimes_agents():
    """A step is a job with the step's key; ARCP errors become task errors."""
    runs = []
    runtime = Runtime(tokens={"token": "me"}, limits=Limits(drain=0.0, cancel_grace=0.2))

    async def summarise(input, ctx):
        runs.append(input)
        if len(runs) == 1:
            raise ArcpTimeoutError("too slow")
        return {"summary": input["text"][:3]}

    async def refuses(input, ctx):
        raise AgentNotAvailableError("not today")

    runtime.register_agent("summarise", summarise)
    runtime.register_agent("refuses", refuses)
    async with runtime:
        agent = ArcpAgent("summary-runtime", runtime, token="token")
        async with orchestrated(agent) as orchestrator:
            done = await orchestrator.run(
                "summarise", {"text": "abcdef"}, agent="summary-runtime", retry_policy=SOON, deadline=30
            )
            assert done.result == {"summary": "abc"}
            assert len(runs) == 2
            refused = await orchestrator.run("refuses", agent="summary-runtime")
            assert refused.error.details["translated_from"]["code"] == "AGENT_NOT_AVAILABLE"
            unknown = await orchestrator.run("unknown", agent="summary-runtime")
            assert unknown.error.code == "CAPABILITY_NOT_FOUND"


async def test_an_arcp_runtime_that_was_replaced():
    """The new runtime does not know the session; the next attempt opens another one."""
    keys, began = [], asyncio.Event()

    class Proxy:
        """Passes connections to the current runtime."""

        def __init__(self):
            self.runtime, self.connections = None, []

        async def serve(self, connection):
            self.connections.append(connection)
            await self.runtime.serve(connection)

    def runtime(name, answers):
        made = Runtime(tokens={"token": "me"}, limits=Limits(drain=0.0, cancel_grace=0.2))

        async def summarise(input, ctx):
            keys.append(name)
            began.set()
            await answers.wait()
            return name

        made.register_agent("summarise", summarise)
        return made

    never, at_once, proxy = asyncio.Event(), asyncio.Event(), Proxy()
    at_once.set()
    async with (
        runtime("old", never) as old,
        runtime("new", at_once) as new,
        websocket.serve(proxy) as listening,
        orchestrated(ArcpAgent("summary-runtime", listening.url, token="token")) as orchestrator,
    ):
        proxy.runtime = old
        handle = await orchestrator.submit("summarise", agent="summary-runtime", retry_policy=SOON)
        await began.wait()
        proxy.runtime = new
        await proxy.connections[0].close()
        assert (await handle.wait()).result == "new"
        assert keys == ["old", "new"]
        history = (await orchestrator.state(handle.id)).steps["summarise"].stepper.history
        (lost,) = [each.fault for each in history if each.fault is not None]
        assert lost.code == "AGENT_UNAVAILABLE"
        assert lost.details["translated_from"] == {"vocabulary": "arcp", "code": "RESUME_WINDOW_EXPIRED"}


async def test_an_arcp_runtime_that_does_not_run():
    """The error is in the task vocabulary, and the call had no effect."""
    agent = ArcpAgent("summary-runtime", f"ws://127.0.0.1:{free_port()}/arcp")
    async with orchestrated(agent) as orchestrator:
        gone = await orchestrator.run("x", agent="summary-runtime", retry_policy={"maxAttempts": 1})
        assert gone.status == "failed"
        assert gone.error.vocabulary == "task"
        assert gone.error.executed == "no"
