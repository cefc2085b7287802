"""An agent without an orchestrator (T4): input, context, classified failures, responses."""

import asyncio
import dataclasses

import httpx
import msgspec
import pytest

from amends import FaultError
from amends.errors import NotFoundError, RateLimitedError, UnauthenticatedError
from amends.errors import task as errors
from amends.stores.errors import UnsupportedError
from amends.tasks import Agent, Capability, Context
from amends.tasks.invoke import Threads, invoke


class Post(msgspec.Struct):
    title: str
    words: int = 100


@dataclasses.dataclass
class Note:
    text: str


def request(type, payload=None, **more):
    return {"id": "task-uuid", "type": type, "payload": payload, **more}


async def test_a_request_gets_a_response():
    """The input has the declared type; the response has the result as JSON, the times and the agent's name."""
    agent = Agent("content-agent")

    @agent.capability
    async def draft(post: Post, ctx: Context):
        assert isinstance(post, Post)
        return {"title": post.title, "key": ctx.key, "by": ctx.agent}

    @agent.capability("note")
    def plain(note: Note):
        return note

    @agent.capability("nothing", input=int)
    async def nothing():
        return None

    done = (await agent.handle(request("draft", {"title": "x"}, idempotencyKey="k"))).document()
    assert done["result"] == {"title": "x", "key": "k", "by": "content-agent"}
    assert set(done["metadata"]) == {"startedAt", "completedAt", "duration_ms", "agent"}
    assert (await agent.handle(request("note", {"text": "hi"}))).result == {"text": "hi"}
    assert (await agent.handle(request("nothing", 3))).ok
    assert (await agent.handle(request("nothing", "3"))).error.code == "INVALID_INPUT"
    wrong = await agent.handle(request("draft", {"title": "x", "words": "many"}))
    assert wrong.error.code == "INVALID_FIELD_TYPE"
    assert wrong.error.field == "/words"


@pytest.mark.parametrize(
    ("raised", "code", "recoverable"),
    [
        (errors.KnowledgeNotFoundError(), "KNOWLEDGE_NOT_FOUND", False),
        (RateLimitedError(retry_after=3), "RATE_LIMITED", True),
        (NotFoundError("No such post"), "INVALID_FIELD_VALUE", True),
        (UnauthenticatedError(), "MCP_AUTH_FAILED", True),
        (ConnectionRefusedError("10.0.0.7:5432"), "AGENT_UNAVAILABLE", True),
        (TimeoutError("10.0.0.7:5432"), "TIMEOUT", True),
        (KeyError("secret"), "INTERNAL_ERROR", True),
        (PermissionError("/etc/secret"), "INTERNAL_ERROR", False),
        (asyncio.CancelledError(), "INTERNAL_ERROR", False),
        (ExceptionGroup("g", [errors.McpError()]), "MCP_ERROR", True),
    ],
)
async def test_any_exception_becomes_a_standard_code(raised, code, recoverable):
    """T4, T12: the error has a standard code and its context, and no text of the exception."""
    agent = Agent("content-agent")

    @agent.capability
    async def draft(payload):
        raise raised

    error = (await agent.handle(request("draft"))).document()["error"]
    assert (error["code"], error["recoverable"]) == (code, recoverable)
    assert error["details"]["context"] == {"agent": "content-agent", "capability": "draft"}
    assert error["message"]
    assert "secret" not in str(error)
    assert "10.0.0.7" not in str(error)


def upstream(status, **headers):
    """The exception of an HTTP client, with a response whose members must not leave the agent."""
    asked = httpx.Request("GET", "http://10.0.0.7/secret")
    problem = {
        **{name: "secret" for name in ("type", "title", "detail", "instance", "user_message", "more")},
        "suggestions": ["secret"],
        "details": {"host": "secret"},
        "errors": [{"detail": "secret", "pointer": "/secret"}],
    }
    answer = httpx.Response(
        status,
        request=asked,
        content=msgspec.json.encode(problem),
        headers={"content-type": "application/problem+json", **headers},
    )
    return httpx.HTTPStatusError("secret", request=asked, response=answer)


def invalid():
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert({"secret": "secret"}, dict[str, int])
    return caught.value


@pytest.mark.parametrize(
    ("raised", "code", "recovery", "wait"),
    [
        (upstream(503, **{"retry-after": "4"}), "AGENT_UNAVAILABLE", "transient", 4),
        (upstream(429), "RATE_LIMITED", "transient", None),
        (upstream(422), "INTERNAL_ERROR", "terminal", None),
        (upstream(404), "INTERNAL_ERROR", "terminal", None),
        (invalid(), "INTERNAL_ERROR", "terminal", None),
        (FileNotFoundError("/secret"), "INTERNAL_ERROR", "terminal", None),
    ],
)
async def test_failures_of_upstream_services_are_not_the_callers_errors(raised, code, recovery, wait):
    """The caller gets a code, a recovery and a wait, and none of the upstream's texts."""
    agent = Agent("content-agent")

    @agent.capability
    async def draft(payload):
        raise raised

    fault = (await agent.handle(request("draft"))).error
    assert (fault.code, fault.recovery.value, fault.retry_after) == (code, recovery, wait)
    assert fault.details == {"context": {"agent": "content-agent", "capability": "draft"}}
    assert b"secret" not in msgspec.json.encode(fault)


async def test_the_exception_is_logged_and_not_returned(caplog):
    """The exception is in this process's log with its traceback."""
    agent = Agent("content-agent")

    @agent.capability
    def draft(payload):
        raise ZeroDivisionError("the reason")

    await agent.handle(request("draft"))
    (record,) = [each for each in caplog.records if each.exc_info]
    assert isinstance(record.exc_info[1], ZeroDivisionError)


async def test_a_result_that_is_not_json_is_terminal():
    """The call was executed, so it is reported as such and not repeated."""
    agent = Agent("content-agent")

    @agent.capability
    async def draft(payload):
        return object()

    fault = (await agent.handle(request("draft"))).error
    assert (fault.code, fault.recovery, fault.executed) == ("INTERNAL_ERROR", "terminal", "yes")


async def test_agent_busy_at_the_concurrency_limit():
    """Further calls fail with AGENT_BUSY and `retry_after`."""
    agent, free = Agent("content-agent", concurrency=1), asyncio.Event()

    @agent.capability
    async def draft(payload):
        await free.wait()

    first = asyncio.ensure_future(agent.handle(request("draft")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    busy = await agent.handle(request("draft"))
    assert (busy.error.code, busy.error.executed) == ("AGENT_BUSY", "no")
    assert busy.error.retry_after > 0
    free.set()
    assert (await first).ok


async def test_time_outs():
    """Both the capability's time-out and a TimeoutError inside the call are TIMEOUT; only the first has `timeout_ms`."""
    agent = Agent("content-agent", timeout=0.05)

    @agent.capability
    async def slow(payload):
        await asyncio.sleep(60)

    @agent.capability
    async def inside(payload):
        raise TimeoutError

    limit = (await agent.handle(request("slow"))).error
    assert (limit.code, limit.details["timeout_ms"]) == ("TIMEOUT", 50)
    inner = (await agent.handle(request("inside"))).error
    assert (inner.code, "timeout_ms" in inner.details) == ("TIMEOUT", False)


async def test_questions_effects_and_delegation_without_an_orchestrator():
    """A question returns input_required; `once` and `delegate` raise, because they need the log of a task."""
    agent, seen = Agent("content-agent"), []

    @agent.capability
    async def draft(payload, ctx):
        for call in (ctx.once(lambda tx: None), ctx.delegate("other")):
            try:
                await call
            except (UnsupportedError, FaultError) as error:
                seen.append(type(error).__name__)
        assert ctx.time_left is None
        return ctx.ask("Which one?")

    asked = await agent.handle(request("draft"))
    assert asked.status == "input_required"
    assert asked.input["question"] == "Which one?"
    assert seen == ["UnsupportedError", "AgentNotFoundError"]


async def test_invalid_requests_are_answered():
    """The errors are in the responses; nothing is raised."""
    agent = Agent("content-agent")
    assert (await agent.handle(b"{")).error.code == "INVALID_INPUT"
    assert (await agent.handle({"id": 3})).id == ""
    assert (await agent.handle(request("fly"))).error.code == "CAPABILITY_NOT_FOUND"


async def test_a_capability_that_cannot_be_looked_up():
    """Whatever the look-up of a remote agent raises is in the response."""

    class Unreachable(Agent):
        async def find(self, type):
            raise ConnectionRefusedError("10.0.0.7")

    error = (await Unreachable("remote-agent").handle(request("draft"))).document()["error"]
    assert error["code"] == "AGENT_UNAVAILABLE"
    assert error["details"]["context"] == {"agent": "remote-agent", "capability": "draft"}


def test_invalid_declarations_raise():
    """At the time of the declaration."""
    for options in (
        {"timeout": 5},
        {"requires": ["notion"]},
        {"input": int},
        {"fallback": print},
        {"name": "x"},
    ):
        with pytest.raises(TypeError, match="function or options"):
            Agent("a").capability(lambda payload: None, **options)
    agent = Agent("content-agent", mcp={"notion": "http://x"})
    with pytest.raises(ValueError, match="name"):
        Agent("")
    with pytest.raises(ValueError, match="at least 1"):
        Agent("x", concurrency=0)
    with pytest.raises(ValueError, match="no MCP server"):
        agent.capability(requires=["gmail"])
    agent.add(Capability(name="x", call=print))
    with pytest.raises(ValueError, match="already"):
        agent.add(Capability(name="x", call=print))
    with pytest.raises(TypeError, match="cannot be resolved"):

        @agent.capability
        async def odd(payload: "Nowhere"):  # noqa: F821
            pass

    assert repr(agent) == "Agent('content-agent', capabilities=['x'])"


async def test_invoke_calls_any_callable():
    """Functions with fewer arguments, builtins, unhashable objects, and functions that return awaitables."""

    class Awaits(list):
        async def __call__(self, one):
            return one

    async def later():
        return "later"

    assert await invoke(lambda: 1, "a", "b", threads=Threads(), key="k") == 1
    assert await invoke(lambda *given: given, "a", "b", threads=Threads(), key="k") == ("a", "b")
    assert await invoke(max, 1, 2, threads=Threads(), key="k") == 2
    assert await invoke(Awaits(), 1, 2, threads=Threads(), key="k") == 1
    assert await invoke(lambda: later(), threads=Threads(), key="k") == "later"
