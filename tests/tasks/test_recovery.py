"""T5, T7, T8, T9: retries and their waits, remedies, verification, and fallbacks."""

import asyncio
import contextlib

import pytest
from msgspec.structs import replace

from amends.core.vocabularies.task import VOCABULARY
from amends.errors import task as errors
from amends.errors.base import class_for
from amends.recovery import TASK
from amends.tasks import Agent
from amends.tasks.entries import Started, encode
from tests.tasks.conftest import advance_until_rest

WAITS = {"input": [], "agent": [1, 2], "mcp": [1, 2], "coordination": [1], "system": [1, 2]}


def failing(code, **options):
    agent, calls = Agent("worker"), []
    options.setdefault("read_only", True)

    @agent.capability(**options)
    async def work(payload, ctx):
        calls.append(ctx.attempt)
        raise class_for("task", code)

    return agent, calls


@pytest.mark.parametrize("code", sorted(VOCABULARY.rows))
async def test_the_retry_table_of_the_contract(manual, clock, code):
    """By category: input once, MCP, agent and system three times, coordination twice; terminal failures once."""
    agent, calls = failing(code)
    manual.register(agent)
    row = VOCABULARY.rows[code]
    expected = WAITS[row.category] if row.recovery in {"transient", "uncertain"} else []
    handle = await manual.submit("work")
    assert await advance_until_rest(manual, clock, handle) == expected
    assert calls == list(range(1, len(expected) + 2))
    response = await handle.response()
    assert (response.status, response.error.code) == ("failed", code)
    assert response.metadata.completed - response.metadata.started == sum(expected)


@pytest.mark.parametrize(
    ("policy", "waits"),
    [
        ({"maxAttempts": 5, "backoffType": "exponential", "initialDelay": 500}, [0.5, 1, 2, 4]),
        ({"maxAttempts": 4, "backoffType": "linear", "initialDelay": 2000}, [2, 4, 6]),
        ({"maxAttempts": 3, "backoffType": "constant"}, [1, 1]),
        ({"maxAttempts": 1}, []),
        ({"initialDelay": 100, "maxAttempts": 3.0}, [0.1, 0.2]),
    ],
)
async def test_the_retry_policy_of_a_request(manual, clock, policy, waits):
    """T8: the request's `retryPolicy`."""
    agent, _ = failing("MCP_ERROR")
    manual.register(agent)
    handle = await manual.submit({"id": "x", "type": "work", "payload": None, "retryPolicy": policy})
    assert await advance_until_rest(manual, clock, handle) == waits


async def test_an_input_error_is_never_retried(manual, clock):
    """Also if the request asks for more attempts; the response says that this did not apply."""
    agent, calls = failing("INVALID_FIELD_VALUE")
    manual.register(agent)
    handle = await manual.submit("work", retry_policy={"maxAttempts": 9})
    assert await advance_until_rest(manual, clock, handle) == []
    assert calls == [1]
    error = (await handle.response()).error
    assert error.details["retryPolicy"] == "not applied: input errors are never retried"


async def test_a_wait_of_an_hour(manual, clock):
    """The task is due exactly after the `retry_after` of an hour, and no worker holds it until then."""
    agent, tries = Agent("worker"), []

    @agent.capability(read_only=True, policy=replace(TASK, max_wait=7 * 86400.0))
    async def work(payload):
        tries.append(clock.now)
        if len(tries) == 1:
            raise errors.RateLimitedError(retry_after=3600)
        return "done"

    manual.register(agent)
    handle = await manual.submit("work")
    await manual.drain()
    (listed,) = [each async for each in manual.list()]
    assert listed.due == clock.now + 3600
    clock.pass_(3599)
    assert await manual.drain() == 0
    clock.pass_(1)
    assert await manual.drain() == 1
    assert (await handle.response()).result == "done"


async def test_a_hint_longer_than_the_policy_allows(manual, clock):
    """The task fails at once with the `retry_after`: by default no task waits an hour."""
    agent, calls = Agent("worker"), []

    @agent.capability(read_only=True)
    async def work(payload):
        calls.append(1)
        raise errors.RateLimitedError(retry_after=3600)

    manual.register(agent)
    handle = await manual.submit("work")
    assert await advance_until_rest(manual, clock, handle) == []
    assert (await handle.response()).error.retry_after == 3600
    history = (await manual.state(handle.id)).steps["work"].stepper.history
    assert history[0].decision.resume_in == 3600


async def test_a_deadline_bounds_the_waits(manual, clock):
    """A wait that would end after the deadline is not started."""
    agent, calls = failing("MCP_ERROR")
    manual.register(agent)
    handle = await manual.submit("work", deadline=2.5)
    assert await advance_until_rest(manual, clock, handle) == [1]
    assert len(calls) == 2
    state = await manual.state(handle.id)
    assert state.steps["work"].stepper.decision.reason == "deadline"


async def test_a_call_that_may_have_happened_is_not_repeated(manual, clock):
    """Without `verify`, a time-out fails; if `verify` returns False, the call is repeated; otherwise the step is done."""
    for seen, waits, status in ((None, [], "failed"), (False, [1, 2], "failed"), ("found", [], "completed")):
        agent, calls = Agent(f"worker-{seen}"), []

        @agent.capability(f"work-{seen}", verify=lambda payload, ctx, seen=seen: seen)
        async def work(payload, calls=calls):
            calls.append(1)
            raise errors.TimeoutError

        manual.register(agent)
        handle = await manual.submit(f"work-{seen}")
        assert await advance_until_rest(manual, clock, handle) == waits
        response = await handle.response()
        assert response.status == status
        assert response.result == (seen or None)
    broken = Agent("worker-broken")

    def failing_verify(payload, ctx):
        raise OSError

    @broken.capability("work-broken", verify=failing_verify)
    async def work_too(payload):
        raise errors.TimeoutError

    manual.register(broken)
    handle = await manual.submit("work-broken")
    assert await advance_until_rest(manual, clock, handle) == []


@pytest.mark.parametrize("works", [True, False, "raises"])
@pytest.mark.parametrize(("code", "hook"), [("MCP_NOT_CONNECTED", "setup"), ("MCP_AUTH_FAILED", "reauth")])
async def test_remedies(manual, clock, code, hook, works):
    """T7: retried only after a set-up or re-auth hook succeeded, and each hook is called once."""
    agent, calls = failing(code)
    asked = []

    def remedy(fault):
        asked.append(fault.code)
        if works == "raises":
            raise OSError
        return works

    setattr(agent, hook, remedy)
    manual.register(agent)
    handle = await manual.submit("work")
    assert await advance_until_rest(manual, clock, handle) == []
    assert asked == [code]
    assert len(calls) == (2 if works is True else 1)
    assert (await handle.response()).error.code == code


async def test_an_agent_at_its_concurrency_limit(manual, clock):
    """AGENT_BUSY of an agent in this process is not an attempt: the task waits, within the policy's limits."""
    agent = Agent("narrow", concurrency=1)
    inside = []

    @agent.capability(read_only=True)
    async def work(number):
        inside.append(number)
        assert len(inside) == 1
        await asyncio.sleep(0.01)
        inside.remove(number)
        return number

    manual.register(agent)
    handles = [await manual.submit("work", n) for n in range(5)]
    for _ in range(20):
        await manual.drain()
        clock.pass_(1)
    for n, handle in enumerate(handles):
        response = await handle.response()
        assert response.result == n
        state = await manual.state(handle.id)
        assert len(state.steps["work"].stepper.history) == 1


async def test_an_agent_that_stays_busy(manual, clock):
    """The task fails when no waiting time is left."""
    agent = Agent("narrow", concurrency=1)

    @agent.capability(read_only=True)
    async def work(payload):
        raise AssertionError

    agent._slots.used = 1
    manual.register(agent)
    handle = await manual.submit("work", deadline=2.5)
    waits = await advance_until_rest(manual, clock, handle)
    assert sum(waits) <= 2.5
    assert (await handle.response()).error.code == "AGENT_BUSY"


async def test_fallbacks_in_code(manual, clock):
    """T9: tried in order; the response is marked as degraded; if none succeeds, the original failure is reported."""
    agent = Agent("cooking-agent")

    def broken(payload, ctx):
        raise OSError

    async def by_hand(payload, ctx):
        return {"by": "hand", "from": payload}

    async def ask(payload, ctx):
        return ctx.ask("Please paste the recipe")

    for name, fallback in (("one", [broken, by_hand]), ("none", broken), ("asks", ask)):

        @agent.capability(name, read_only=True, fallback=fallback)
        async def work(payload):
            raise errors.McpNotConnectedError(details={"mcp": "pinterest"})

    manual.register(agent)
    one = await manual.submit("one", "url")
    none = await manual.submit("none")
    asks = await manual.submit("asks")
    await manual.drain()
    degraded = (await one.response()).document()
    assert degraded["result"] == {"by": "hand", "from": "url"}
    assert degraded["metadata"]["degraded"] is True
    assert (await none.response()).error.code == "MCP_NOT_CONNECTED"
    assert (await asks.response()).input["question"] == "Please paste the recipe"
    await asks.answer("Soup")
    await manual.drain()
    assert (await asks.response()).result == "Soup"


async def test_fallbacks_in_prose(manual, tmp_path):
    """T9: the section of a CLAUDE.md is the result if the MCP server is missing, and only then."""
    path = tmp_path / "CLAUDE.md"
    path.write_text(
        "## Fallback Behaviors\n\nIf Google Calendar MCP is not connected:\n1. Say so\n2. Offer a draft\n"
    )
    agent = Agent("calendar-agent", fallbacks=path)

    @agent.capability(read_only=True)
    async def create_event(payload):
        raise errors.McpNotConnectedError(details={"mcp": payload})

    @agent.capability(read_only=True)
    async def other(payload):
        raise errors.KnowledgeNotFoundError(details={"mcp": "google-calendar"})

    manual.register(agent)
    handle = await manual.submit("create_event", "google-calendar")
    elsewhere = await manual.submit("create_event", "notion")
    unrelated = await manual.submit("other")
    await manual.drain()
    response = await handle.response()
    assert response.result == {
        "fallback": {"missing": "Google Calendar", "steps": ["Say so", "Offer a draft"]}
    }
    assert response.metadata.degraded
    assert (await elsewhere.response()).error.code == "MCP_NOT_CONNECTED"
    assert (await unrelated.response()).error.code == "KNOWLEDGE_NOT_FOUND"


async def test_a_step_that_happened_has_no_fallback(manual, clock):
    """Its result cannot be stored; a fallback would do it again in another way. A call that changes nothing has one."""
    agent, calls = Agent("worker"), []

    async def another_way(payload, ctx):
        calls.append(f"instead of {ctx.capability}")
        return "done"

    @agent.capability(fallback=another_way)
    async def pay(payload):
        return object()

    @agent.capability(fallback=another_way, read_only=True)
    async def look(payload):
        return object()

    manual.register(agent)
    paid, looked = await manual.submit("pay"), await manual.submit("look")
    await manual.drain()
    assert (await paid.response()).error.details["happened"]
    assert (await looked.response()).result == "done"
    assert calls == ["instead of look"]


async def test_verify_gets_the_servers_that_the_capability_requires(manual, clock):
    """Also after a crash, when the interrupted attempt had connected them in another process."""
    server, seen = object(), []

    @contextlib.asynccontextmanager
    async def client():
        yield server

    agent = Agent("worker", mcp={"bank": lambda: client()})

    async def check(payload, ctx):
        seen.append(ctx.mcp["bank"].client)
        return "paid"

    @agent.capability(requires=["bank"], verify=check)
    async def pay(payload, ctx):
        raise AssertionError("not called")

    manual.register(agent)
    handle = await manual.submit("pay", id="t")
    started = Started(at=clock.wall(), step="pay", attempt=1)
    await manual.store.log("tasks/t").append(encode([started]))
    await manual.drain()
    assert (await handle.response()).result == "paid"
    assert seen == [server]
    await agent.close()
