"""Agents elsewhere: real servers, real commands, one kind of task."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager

import mcp_types as types
import pytest
from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from amends.arcp import Limits, Runtime
from amends.arcp.errors import AgentNotAvailableError
from amends.arcp.errors import TimeoutError as ArcpTimeoutError
from amends.arcp.transports import websocket
from amends.bindings import a2a as a2a_binding
from amends.bindings.mcp import guard
from amends.bindings.starlette import install
from amends.errors import ConflictError, RateLimitedError, ServiceUnavailableError, ValidationError
from amends.tasks import Agent, Orchestrator
from amends.tasks.remote.a2a import A2aAgent
from amends.tasks.remote.arcp import ArcpAgent
from amends.tasks.remote.command import Command, CommandAgent
from amends.tasks.remote.http import Endpoint, HttpAgent
from amends.tasks.remote.mcp import McpAgent
from tests.bindings import agents as a2a_agents
from tests.http.serving import free_port, serve

SOON = {"maxAttempts": 3, "initialDelay": 10}


@asynccontextmanager
async def orchestrated(*agents, **options):
    async with Orchestrator(agents, grace=0, **options) as orchestrator:
        yield orchestrator


# HTTP ----------------------------------------------------------------------------------------------------------


def weather(calls):
    async def forecast(request):
        calls.append(("GET", dict(request.query_params)))
        if len(calls) == 1:
            raise RateLimitedError("slow down", retry_after=0.01)
        return JSONResponse({"sky": "blue"})

    async def order(request):
        calls.append((request.headers.get("idempotency-key"), await request.json()))
        if len(calls) == 1:
            raise ServiceUnavailableError("in a moment", retry_after=0.01)
        return JSONResponse({"order": 7}, status_code=201)

    async def refuse(request):
        raise ValidationError("No such city", field="/city", suggestions=["Name a city"])

    async def plain(request):
        return PlainTextResponse("as text")

    async def empty(request):
        return Response(status_code=204)

    routes = [
        Route(f"/{each.__name__}", each, methods=["GET", "POST"])
        for each in (forecast, order, refuse, plain, empty)
    ]
    app = Starlette(routes=routes)
    install(app)
    return app


def http_agent(base, **promises):
    return HttpAgent(
        "weather-agent",
        {
            "forecast": Endpoint(url=f"{base}/forecast", method="GET"),
            "order": Endpoint(url=f"{base}/order", **promises),
            "refuse": Endpoint(url=f"{base}/refuse"),
            "plain": Endpoint(url=f"{base}/plain", method="GET"),
            "empty": Endpoint(url=f"{base}/empty"),
        },
        headers=lambda: {"Authorization": "Bearer x"},
    )


async def test_http_endpoints():
    """Problem details come back as S3's codes; what may be repeated is, with the step's key."""
    calls = []
    with serve(weather(calls)) as base:
        async with orchestrated(http_agent(base, keyed=True)) as orchestrator:
            sky = await orchestrator.run("forecast", {"city": "Rome"}, retry_policy=SOON)
            assert sky.result == {"sky": "blue"}
            assert calls == [("GET", {"city": "Rome"})] * 2
            calls.clear()
            order = await orchestrator.run("order", {"item": "umbrella"}, id="o", retry_policy=SOON)
            assert order.result == {"order": 7}
            assert calls == [("o/order", {"item": "umbrella"})] * 2
            refused = await orchestrator.run("refuse", {"city": ""})
            assert refused.error.code == "INVALID_INPUT"
            assert refused.error.field == "/city"
            assert refused.error.details["translated_from"]["code"] == "VALIDATION_ERROR"
            assert (await orchestrator.run("plain")).result == "as text"
            assert (await orchestrator.run("empty", {})).result is None


async def test_http_without_a_promise_is_not_repeated():
    """A 503 may have happened: nobody blindly orders twice."""
    calls = []
    with serve(weather(calls)) as base:
        async with orchestrated(http_agent(base)) as orchestrator:
            order = await orchestrator.run("order", {"item": "umbrella"}, retry_policy=SOON)
            assert order.error.code == "AGENT_UNAVAILABLE"
            assert len(calls) == 1


async def test_nobody_listens():
    """A refused connection surely did nothing, so it is tried again, also without a promise."""
    base = f"http://127.0.0.1:{free_port()}"
    async with orchestrated(http_agent(base)) as orchestrator:
        gone = await orchestrator.run("order", {}, id="x", retry_policy=SOON)
        assert gone.error.code == "AGENT_UNAVAILABLE"
        assert "127.0.0.1" not in json.dumps(gone.document())
        assert len((await orchestrator.state("x")).steps["order"].stepper.history) == 3


# Commands ------------------------------------------------------------------------------------------------------

ECHO = "import json,os,sys; print(json.dumps({'ok': True, 'data': [json.load(sys.stdin), os.environ['AMENDS_KEY'], sys.argv[1]]}))"
LIMITED = """
import json, pathlib, sys
seen = pathlib.Path(sys.argv[1])
first = not seen.exists()
seen.touch()
if first:
    print(json.dumps({"ok": False, "error": {"code": "RATE_LIMITED", "message": "slow down", "retryable": True, "retry_after_ms": 10}}))
    sys.exit(9)
print("plain text")
"""


async def test_commands(tmp_path):
    """Envelopes, plain output, exit codes, and a command that never ends."""
    python = sys.executable
    agent = CommandAgent(
        "tool-agent",
        {
            "echo": Command(argv=[python, "-c", ECHO, "{key}"], keyed=True),
            "limited": Command(argv=[python, "-c", LIMITED, str(tmp_path / "seen")], read_only=True),
            "json": Command(argv=[python, "-c", "print('[1, 2]')"], read_only=True),
            "missing": Command(argv=[str(tmp_path / "nothing")]),
            "hangs": Command(argv=[python, "-c", "import time; time.sleep(60)"], timeout=0.3),
        },
    )
    async with orchestrated(agent) as orchestrator:
        echoed = await orchestrator.run("echo", {"a": 1}, id="e")
        assert echoed.result == [{"a": 1}, "e/echo", "e/echo"]
        assert (await orchestrator.run("limited", retry_policy=SOON)).result == "plain text\n"
        assert (await orchestrator.run("json", deadline=30)).result == [1, 2]
        missing = await orchestrator.run("missing")
        assert missing.error.executed == "no"
        hung = await orchestrator.run("hangs")
        assert hung.error.code == "TIMEOUT"
        assert hung.error.executed == "maybe"


# MCP -----------------------------------------------------------------------------------------------------------


def shop(calls):
    server = MCPServer("shop")
    reads = types.ToolAnnotations(read_only_hint=True)

    @server.tool(annotations=reads)
    def price(item: str) -> dict[str, int]:
        calls.append(item)
        if len(calls) == 1:
            raise RateLimitedError("slow down", retry_after=1)
        return {"price": 7}

    @server.tool()
    def buy(item: str, idempotency_key: str) -> str:
        calls.append(idempotency_key)
        return f"bought {item}"

    @server.tool()
    def broken(item: str) -> str:
        raise ConflictError("It is gone")

    guard(server)
    return server


async def test_an_mcp_servers_tools():
    """Tools are capabilities; keys are handed on; failures are MCP errors with their cause."""
    calls = []
    agent = McpAgent("shop-agent", shop(calls))
    async with orchestrated(agent) as orchestrator:
        priced = await orchestrator.run("price", {"item": "book"}, agent="shop-agent")
        assert priced.result == {"price": 7}
        assert calls == ["book", "book"]
        bought = await orchestrator.run("buy", {"item": "book"}, agent="shop-agent", id="b")
        assert calls[-1] == "b/buy"
        assert "bought book" in json.dumps(bought.result)
        broken = await orchestrator.run("broken", {"item": "x"}, agent="shop-agent")
        assert broken.error.code == "MCP_ERROR"
        assert broken.error.details["cause"]["code"] == "CONFLICT"
        assert broken.error.details["mcp"] == "shop-agent"
        nothing = await orchestrator.run("fly", agent="shop-agent")
        assert nothing.error.code == "CAPABILITY_NOT_FOUND"
        # Once known, it is found without being named.
        assert (await orchestrator.run("price", {"item": "pen"})).ok


async def test_an_mcp_server_that_is_missing_then_appears():
    """Found out, not declared: MCP_NOT_CONNECTED, then the set-up brings it up, then it works."""
    port = free_port()
    url, started = f"http://127.0.0.1:{port}/mcp", []
    agent = Agent("content-agent", mcp={"notion": url})

    @agent.capability(requires=["notion"], keyed=True)
    async def draft_post(payload, ctx):
        answer = await ctx.mcp["notion"].call_tool("price", {"item": "post"})
        return answer.structured_content

    async with orchestrated(agent) as orchestrator:
        missing = await orchestrator.run("draft_post", {}, id="task-uuid")
        error = missing.document()["error"]
        assert error == {
            "code": "MCP_NOT_CONNECTED",
            "message": "The Notion MCP is not connected. Run setup to configure.",
            "details": {"mcp": "notion", "requiredBy": "content-agent", "capability": "draft_post"},
            "recoverable": True,
        }

        import socket
        import threading

        import uvicorn

        calls = ["one"]

        async def setup(fault):
            assert fault.details["mcp"] == "notion"
            listener = socket.create_server(("127.0.0.1", port))
            app = shop(calls).streamable_http_app()
            server = uvicorn.Server(
                uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=1)
            )
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
            thread.start()
            while not server.started:
                await asyncio.sleep(0.01)
            started.append((server, thread))

        agent.setup = setup
        try:
            appeared = await orchestrator.run("draft_post", {}, id="again")
            assert appeared.result == {"price": 7}
            state = await orchestrator.state("again")
            assert [
                attempt.decision.reason for attempt in state.steps["draft_post"].stepper.history[:-1]
            ] == ["set-up"]
        finally:
            await agent.close()
            for server, thread in started:
                server.should_exit = True
                await asyncio.to_thread(thread.join, 20)


@pytest.mark.parametrize(
    ("status", "headers", "code"),
    [
        (401, {}, "MCP_AUTH_FAILED"),
        (429, {"retry-after": "400"}, "MCP_RATE_LIMITED"),
        (500, {}, "MCP_NOT_CONNECTED"),
    ],
)
async def test_an_mcp_server_that_refuses(status, headers, code):
    """What the server's door says decides the code."""

    async def door(scope, receive, send):
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": b""})

    with serve(door) as base:
        agent = Agent("content-agent", mcp={"notion": f"{base}/mcp"})

        @agent.capability(requires=["notion"])
        async def draft(payload):
            raise AssertionError

        async with orchestrated(agent) as orchestrator:
            refused = await orchestrator.run("draft")
            assert refused.error.code == code
            assert refused.error.details["mcp"] == "notion"
            assert refused.error.executed == "no"


# A2A -----------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def a2a_server(work):
    with serve(a2a_agents.application(a2a_binding.guard(a2a_agents.Agent(work)))) as base:
        yield a2a_agents.card(base)


async def test_an_a2a_agents_skills():
    """Data in, artifacts out; failures and questions come back as S3's."""
    from a2a.types.a2a_pb2 import Part
    from google.protobuf.json_format import MessageToDict, ParseDict

    seen = []

    async def work(context, updater):
        parts = context.message.parts
        seen.append((MessageToDict(context.message.metadata), context.message.message_id))
        skill = context.message.metadata["skill"]
        await updater.start_work()
        if skill == "fail":
            raise RateLimitedError("slow down", retry_after=600)
        if skill == "ask" and len(parts) < 2:
            await updater.requires_input(updater.new_agent_message([Part(text="Which city?")]))
            return
        data = MessageToDict(parts[0].data) if parts and parts[0].WhichOneof("content") == "data" else None
        answers = [part.text for part in parts[1:]]
        await updater.add_artifact(
            [ParseDict({"data": {"got": data, "answers": answers, "n": 3}}, Part())], artifact_id="r"
        )
        await updater.complete()

    async with a2a_server(work) as card:
        agent = A2aAgent("travel-agent", card, read_only=["plan", "fail", "ask"])
        async with orchestrated(agent) as orchestrator:
            done = await orchestrator.run("plan", {"to": "Rome"}, agent="travel-agent", id="p")
            assert done.result == {"got": {"to": "Rome"}, "answers": [], "n": 3}
            assert seen[0] == ({"skill": "plan", "idempotencyKey": "p/plan"}, "p/plan")
            failed = await orchestrator.run("fail", {}, agent="travel-agent")
            assert failed.error.code == "RATE_LIMITED"
            assert failed.error.retry_after == 600
            handle = await orchestrator.submit("ask", {"x": 1}, agent="travel-agent")
            asked = await handle.wait()
            assert asked.input["question"] == "Which city?"
            await handle.answer("Rome")
            assert (await handle.wait()).result["answers"] == ["Rome"]


async def test_an_a2a_agent_that_is_not_there():
    """Nothing was sent: tried again, then said plainly."""
    card = a2a_agents.card(f"http://127.0.0.1:{free_port()}")
    async with orchestrated(A2aAgent("travel-agent", card)) as orchestrator:
        gone = await orchestrator.run("plan", "as text", agent="travel-agent", retry_policy=SOON)
        assert gone.error.code == "AGENT_UNAVAILABLE"


# ARCP ----------------------------------------------------------------------------------------------------------


async def test_an_arcp_runtimes_agents():
    """Jobs under the step's key; ARCP's errors come back as S3's."""
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
            nobody = await orchestrator.run("nobody", agent="summary-runtime")
            assert nobody.error.code == "CAPABILITY_NOT_FOUND"


async def test_an_arcp_runtime_that_was_replaced():
    """The new one does not know the session: the next try opens another, under the same key."""
    keys, began = [], asyncio.Event()

    class Front:
        """Hands connections to whichever runtime is up."""

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

    never, at_once, front = asyncio.Event(), asyncio.Event(), Front()
    at_once.set()
    async with (
        runtime("old", never) as old,
        runtime("new", at_once) as new,
        websocket.serve(front) as listening,
        orchestrated(ArcpAgent("summary-runtime", listening.url, token="token")) as orchestrator,
    ):
        front.runtime = old
        handle = await orchestrator.submit("summarise", agent="summary-runtime", retry_policy=SOON)
        await began.wait()
        front.runtime = new
        await front.connections[0].close()
        assert (await handle.wait()).result == "new"
        assert keys == ["old", "new"]
        history = (await orchestrator.state(handle.id)).steps["summarise"].stepper.history
        (lost,) = [each.fault for each in history if each.fault is not None]
        assert lost.code == "AGENT_UNAVAILABLE"
        assert lost.details["translated_from"] == {"vocabulary": "arcp", "code": "RESUME_WINDOW_EXPIRED"}


async def test_an_arcp_runtime_that_is_not_there():
    """Said in S3's words."""
    agent = ArcpAgent("summary-runtime", f"ws://127.0.0.1:{free_port()}/arcp")
    async with orchestrated(agent) as orchestrator:
        gone = await orchestrator.run("x", agent="summary-runtime", retry_policy={"maxAttempts": 1})
        assert gone.status == "failed"
        assert gone.error.vocabulary == "task"
        assert gone.error.executed == "no"


async def test_a_connection_that_breaks_is_opened_anew():
    """The call says so, and the next one works: a function that makes clients is asked again."""
    made = []

    class Breaking:
        def __init__(self):
            made.append(self)
            self.first = len(made) == 1

        async def __aenter__(self):
            return self

        async def __aexit__(self, *exc):
            return None

        async def call_tool(self, name, arguments):
            if self.first:
                raise ConnectionResetError("10.0.0.7")
            return {"done": name}

        name = "plain attribute"

    agent = Agent("content-agent", mcp={"notion": lambda: Breaking()})

    @agent.capability(requires=["notion"], read_only=True)
    async def draft(payload, ctx):
        assert ctx.mcp["notion"].name == "plain attribute"
        return await ctx.mcp["notion"].call_tool("page", {})

    async with orchestrated(agent) as orchestrator:
        done = await orchestrator.run("draft", retry_policy=SOON)
        assert done.result == {"done": "page"}
        assert len(made) == 2
    await agent.close()


async def test_a_server_that_speaks_s3_itself():
    """Its words are kept; who needed it for what is added."""

    class Speaking:
        async def __aenter__(self):
            return self

        async def __aexit__(self, *exc):
            return None

        async def call_tool(self, name, arguments):
            from amends.errors.task import KnowledgeNotFoundError

            raise KnowledgeNotFoundError(details={"file": "x.md"})

    agent = Agent("content-agent", mcp={"notion": lambda: Speaking()})

    @agent.capability(requires=["notion"])
    async def draft(payload, ctx):
        return await ctx.mcp["notion"].call_tool("page", {})

    error = (await agent.handle({"id": "x", "type": "draft"})).error
    assert error.code == "KNOWLEDGE_NOT_FOUND"
    assert error.details == {
        "mcp": "notion",
        "requiredBy": "content-agent",
        "capability": "draft",
        "file": "x.md",
    }
    await agent.close()
