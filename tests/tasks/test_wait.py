"""T5, T7, T8: who is tried again, how often, after which waits; hours cost nothing."""

import pytest
from msgspec.structs import replace

from amends.core.vocabularies.task import VOCABULARY
from amends.errors import task as errors
from amends.errors.classes import class_for
from amends.recovery import TASK
from amends.tasks import Agent
from tests.tasks.conftest import through_time

WAITS = {"input": [], "agent": [1, 2], "mcp": [1, 2], "coordination": [1], "system": [1, 2]}


def failing(code, **promises):
    agent, calls = Agent("worker"), []
    promises.setdefault("read_only", True)

    @agent.capability(**promises)
    async def work(payload, ctx):
        calls.append(ctx.attempt)
        raise class_for("task", code)

    return agent, calls


@pytest.mark.parametrize("code", sorted(VOCABULARY.rows))
async def test_the_table_of_s3(still, clock, code):
    """By category: input never, MCP, agent and system three times, coordination twice; a no never."""
    agent, calls = failing(code)
    still.register(agent)
    row = VOCABULARY.rows[code]
    expected = WAITS[row.category] if row.recovery in {"transient", "uncertain"} else []
    handle = await still.submit("work")
    assert await through_time(still, clock, handle) == expected
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
        ({"maxAttempts": "many", "backoffType": 3}, [1, 2]),
    ],
)
async def test_a_tasks_own_policy(still, clock, policy, waits):
    """T8, as in the request; nonsense says nothing."""
    agent, _ = failing("MCP_ERROR")
    still.register(agent)
    handle = await still.submit({"id": "x", "type": "work", "payload": None, "retryPolicy": policy})
    assert await through_time(still, clock, handle) == waits


async def test_an_input_error_is_never_tried_again(still, clock):
    """Whatever the request asks for."""
    agent, calls = failing("INVALID_FIELD_VALUE")
    still.register(agent)
    handle = await still.submit("work", retry_policy={"maxAttempts": 9})
    assert await through_time(still, clock, handle) == []
    assert calls == [1]


async def test_hours_of_waiting(still, clock):
    """A hint of an hour, kept to the second, held by nobody."""
    agent, tries = Agent("worker"), []

    @agent.capability(read_only=True, policy=replace(TASK, max_wait=7 * 86400.0))
    async def work(payload):
        tries.append(clock.now)
        if len(tries) == 1:
            raise errors.RateLimitedError(retry_after=3600)
        return "done"

    still.register(agent)
    handle = await still.submit("work")
    await still.drain()
    (listed,) = [each async for each in still.list()]
    assert listed.due == clock.now + 3600
    clock.pass_(3599)
    assert await still.drain() == 0
    clock.pass_(1)
    assert await still.drain() == 1
    assert (await handle.response()).result == "done"


async def test_a_hint_longer_than_patience(still, clock):
    """Escalated at once with the time to come back; nobody waits an hour for a hostile server by default."""
    agent, calls = Agent("worker"), []

    @agent.capability(read_only=True)
    async def work(payload):
        calls.append(1)
        raise errors.RateLimitedError(retry_after=3600)

    still.register(agent)
    handle = await still.submit("work")
    assert await through_time(still, clock, handle) == []
    assert (await handle.response()).error.retry_after == 3600
    history = (await still.state(handle.id)).steps["work"].stepper.history
    assert history[0].decision.resume_in == 3600


async def test_a_deadline_bounds_the_waits(still, clock):
    """No wait that would end behind it is begun."""
    agent, calls = failing("MCP_ERROR")
    still.register(agent)
    handle = await still.submit("work", deadline=2.5)
    assert await through_time(still, clock, handle) == [1]
    assert len(calls) == 2
    state = await still.state(handle.id)
    assert state.steps["work"].stepper.decision.reason == "deadline"


async def test_what_may_have_happened_is_not_repeated(still, clock):
    """Nothing promised: a time-out is handed back; with a look that says no, it is tried again; with a yes, it is done."""
    for seen, waits, status in ((None, [], "failed"), (False, [1, 2], "failed"), ("found", [], "completed")):
        agent, calls = Agent(f"worker-{seen}"), []

        @agent.capability(f"work-{seen}", verify=lambda payload, ctx, seen=seen: seen)
        async def work(payload, calls=calls):
            calls.append(1)
            raise errors.TimeoutError

        still.register(agent)
        handle = await still.submit(f"work-{seen}")
        assert await through_time(still, clock, handle) == waits
        response = await handle.response()
        assert response.status == status
        assert response.result == (seen or None)
    broken = Agent("worker-broken")

    def cannot_look(payload, ctx):
        raise OSError

    @broken.capability("work-broken", verify=cannot_look)
    async def work_too(payload):
        raise errors.TimeoutError

    still.register(broken)
    handle = await still.submit("work-broken")
    assert await through_time(still, clock, handle) == []


@pytest.mark.parametrize("works", [True, False, "raises"])
@pytest.mark.parametrize(("code", "hook"), [("MCP_NOT_CONNECTED", "setup"), ("MCP_AUTH_FAILED", "reauth")])
async def test_remedies(still, clock, code, hook, works):
    """T7: only after a set-up or re-auth hook succeeded, and each of them once."""
    agent, calls = failing(code)
    asked = []

    def mend(fault):
        asked.append(fault.code)
        if works == "raises":
            raise OSError
        return works

    setattr(agent, hook, mend)
    still.register(agent)
    handle = await still.submit("work")
    assert await through_time(still, clock, handle) == []
    assert asked == [code]
    assert len(calls) == (2 if works is True else 1)
    assert (await handle.response()).error.code == code


async def test_no_hands_free(still, clock):
    """AGENT_BUSY of one's own agent is no try: the task waits its turn, within the policy's bound."""
    agent = Agent("narrow", concurrency=1)
    inside = []

    @agent.capability(read_only=True)
    async def work(number):
        import asyncio

        inside.append(number)
        assert len(inside) == 1
        await asyncio.sleep(0.01)
        inside.remove(number)
        return number

    still.register(agent)
    handles = [await still.submit("work", n) for n in range(5)]
    for _ in range(20):
        await still.drain()
        clock.pass_(1)
    for n, handle in enumerate(handles):
        response = await handle.response()
        assert response.result == n
        state = await still.state(handle.id)
        assert len(state.steps["work"].stepper.history) == 1


async def test_busy_for_too_long(still, clock):
    """Past the waiting that is left it is said."""
    agent = Agent("narrow", concurrency=1)

    @agent.capability(read_only=True)
    async def work(payload):
        raise AssertionError

    agent._hands.busy = 1
    still.register(agent)
    handle = await still.submit("work", deadline=2.5)
    waits = await through_time(still, clock, handle)
    assert sum(waits) <= 2.5
    assert (await handle.response()).error.code == "AGENT_BUSY"


async def test_fallbacks_in_code(still, clock):
    """T9: in order, degraded results say so; where none works, the failure is the one to report."""
    agent = Agent("cooking-agent")

    def broken(payload, ctx):
        raise OSError

    async def by_hand(payload, ctx):
        return {"by": "hand", "from": payload}

    async def ask(payload, ctx):
        return ctx.ask("Please paste the recipe")

    for name, ways in (("one", [broken, by_hand]), ("none", broken), ("asks", ask)):

        @agent.capability(name, read_only=True, fallback=ways)
        async def work(payload):
            raise errors.McpNotConnectedError(details={"mcp": "pinterest"})

    still.register(agent)
    one = await still.submit("one", "url")
    none = await still.submit("none")
    asks = await still.submit("asks")
    await still.drain()
    degraded = (await one.response()).document()
    assert degraded["result"] == {"by": "hand", "from": "url"}
    assert degraded["metadata"]["degraded"] is True
    assert (await none.response()).error.code == "MCP_NOT_CONNECTED"
    assert (await asks.response()).input["question"] == "Please paste the recipe"
    await asks.answer("Soup")
    await still.drain()
    assert (await asks.response()).result == "Soup"


async def test_fallbacks_in_prose(still, tmp_path):
    """T9: a CLAUDE.md's section is what the task gives back when its server is missing, and only then."""
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

    still.register(agent)
    handle = await still.submit("create_event", "google-calendar")
    elsewhere = await still.submit("create_event", "notion")
    unrelated = await still.submit("other")
    await still.drain()
    response = await handle.response()
    assert response.result == {
        "fallback": {"missing": "Google Calendar", "steps": ["Say so", "Offer a draft"]}
    }
    assert response.metadata.degraded
    assert (await elsewhere.response()).error.code == "MCP_NOT_CONNECTED"
    assert (await unrelated.response()).error.code == "KNOWLEDGE_NOT_FOUND"
