"""An agent by itself (T4): wrap, add context, judge, answer."""

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
from amends.tasks.capability import called


class Post(msgspec.Struct):
    title: str
    words: int = 100


@dataclasses.dataclass
class Note:
    text: str


def request(type, payload=None, **more):
    return {"id": "task-uuid", "type": type, "payload": payload, **more}


async def test_a_request_gets_its_response():
    """Input of the declared type, result as JSON, times and name."""
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
async def test_whatever_it_raises_is_one_of_s3s_codes(raised, code, recoverable):
    """T4, T12: a standard code, its context, and nothing of the exception's text."""
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
    """What a client of another service raised, whose answer is full of that service's own words."""
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
async def test_what_others_refuse_an_agent_is_no_mistake_of_its_askers(raised, code, recovery, wait):
    """Nor are their words for the asker: it hears when to come back, or that it need not."""
    agent = Agent("content-agent")

    @agent.capability
    async def draft(payload):
        raise raised

    fault = (await agent.handle(request("draft"))).error
    assert (fault.code, fault.recovery.value, fault.retry_after) == (code, recovery, wait)
    assert fault.details == {"context": {"agent": "content-agent", "capability": "draft"}}
    assert b"secret" not in msgspec.json.encode(fault)


async def test_the_log_keeps_what_the_answer_does_not_say(caplog):
    """Nothing is swallowed: the exception is in this process's log, with its traceback."""
    agent = Agent("content-agent")

    @agent.capability
    def draft(payload):
        raise ZeroDivisionError("the reason")

    await agent.handle(request("draft"))
    (record,) = [each for each in caplog.records if each.exc_info]
    assert isinstance(record.exc_info[1], ZeroDivisionError)


async def test_results_that_cannot_be_kept():
    """It was done, and cannot be written down: said so, and not repeated."""
    agent = Agent("content-agent")

    @agent.capability
    async def draft(payload):
        return object()

    fault = (await agent.handle(request("draft"))).error
    assert (fault.code, fault.recovery, fault.executed) == ("INTERNAL_ERROR", "terminal", "yes")


async def test_hands():
    """AGENT_BUSY beyond its concurrency, with a time to come back."""
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


async def test_a_call_that_takes_too_long():
    """TIMEOUT of our own; a time-out inside the call is the call's."""
    agent = Agent("content-agent", timeout=0.05)

    @agent.capability
    async def slow(payload):
        await asyncio.sleep(60)

    @agent.capability
    async def inside(payload):
        raise TimeoutError

    ours = (await agent.handle(request("slow"))).error
    assert (ours.code, ours.details["timeout_ms"]) == ("TIMEOUT", 50)
    theirs = (await agent.handle(request("inside"))).error
    assert (theirs.code, "timeout_ms" in theirs.details) == ("TIMEOUT", False)


async def test_questions_and_what_needs_an_orchestrator():
    """A question is answered with input_required; effects and delegation need somebody who keeps a log."""
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


async def test_requests_that_are_none():
    """Answered, never raised."""
    agent = Agent("content-agent")
    assert (await agent.handle(b"{")).error.code == "INVALID_INPUT"
    assert (await agent.handle({"id": 3})).id == ""
    assert (await agent.handle(request("fly"))).error.code == "CAPABILITY_NOT_FOUND"


def test_declarations_that_cannot_be_meant():
    """Found when they are made."""
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


async def test_calling_anything():
    """Functions with fewer arguments, builtins, objects, unhashable ones, and those that return awaitables."""

    class Awaits(list):
        async def __call__(self, one):
            return one

    async def later():
        return "later"

    assert await called(lambda: 1, "a", "b") == 1
    assert await called(lambda *given: given, "a", "b") == ("a", "b")
    assert await called(max, 1, 2) == 2
    assert await called(Awaits(), 1, 2) == 1
    assert await called(lambda: later()) == "later"
