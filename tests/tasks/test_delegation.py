"""Capabilities that delegate to other agents."""

from amends.errors import task as errors
from amends.tasks import (
    Agent,
    Step,
    sequence,
)
from tests.tasks.agents import booking


async def test_delegation(open_orchestrator):
    """A delegation runs once and returns its result; a failed one is DELEGATION_FAILED with the cause; both are undone."""
    undone, asked = [], []
    lead = Agent("lead-agent")

    @lead.capability(idempotent=True)
    async def plan_trip(where: str, ctx):
        hotel = await ctx.delegate("book", "hotel")
        asked.append(hotel)
        if where == "moon":
            await ctx.delegate("book", "moon", agent="booking-agent")
        if len(asked) == 1:
            raise errors.AgentUnavailableError(retry_after=0.01)
        return hotel

    orchestrator = await open_orchestrator(lead, booking(undone))
    good = await orchestrator.run("plan_trip", "rome", id="rome")
    assert good.result == "hotel booked"
    state = await orchestrator.state("rome")
    assert [name for name in state.done if ">" in name] == ["plan_trip>booking-agent/book#1"]
    assert len(asked) == 2

    bad = await orchestrator.run("plan_trip", "moon", id="moon")
    error = bad.document()["error"]
    assert error["code"] == "DELEGATION_FAILED"
    assert error["details"]["cause"]["code"] == "INVALID_FIELD_VALUE"
    assert error["details"]["agent"] == "booking-agent"
    assert bad.error.errors[0].field == "/what"
    assert [each[2] for each in undone] == ["moon/plan_trip>booking-agent/book#1/undo"]
    assert (await orchestrator.run("plan_trip", "x", id="third")).ok


async def test_delegating_to_an_unknown_agent(open_orchestrator):
    """DELEGATION_FAILED with AGENT_NOT_FOUND as its cause."""
    lead = Agent("lead")

    @lead.capability(idempotent=True)
    async def try_it(payload, ctx):
        await ctx.delegate("fly")

    orchestrator = await open_orchestrator(lead)
    response = await orchestrator.run("try_it")
    assert response.error.code == "DELEGATION_FAILED"
    assert response.error.details["cause"]["code"] == "AGENT_NOT_FOUND"
    assert response.error.recovery == "terminal"


async def test_a_retry_repeats_an_undone_delegation(manual):
    """An undone delegation runs again with a new key; one that was not undone does not."""
    booked, undone, works = [], [], []
    booker, lead = Agent("booking"), Agent("lead")

    @booker.capability(keyed=True, undo=lambda what, result, ctx: undone.append(ctx.key))
    async def book(what, ctx):
        booked.append(ctx.key)
        return len(booked)

    @booker.capability(keyed=True)
    async def note(what, ctx):
        booked.append(ctx.key)
        return len(booked)

    @lead.capability(keyed=True)
    async def plan_trip(payload, ctx):
        found = [await ctx.delegate("note", "n"), await ctx.delegate("book", "hotel")]
        if len(works) < 2:
            raise errors.KnowledgeNotFoundError
        return found

    manual.register(booker, lead)
    await manual.submit("plan_trip", id="t")
    await manual.drain()
    assert (await manual.get("t").response()).error.details["undone"] == ["plan_trip>booking/book#1"]
    for _ in range(2):
        works.append(1)
        await manual.retry("t")
        await manual.drain()
    assert (await manual.get("t").response()).result == [1, 4]
    key = "t/plan_trip>booking/book#1"
    assert booked == ["t/plan_trip>booking/note#1", key, f"{key}/2", f"{key}/3"]
    assert undone == [f"{key}/undo", f"{key}/2/undo"]


async def test_a_retry_repeats_the_steps_that_made_an_undone_delegation(manual):
    """Also a finished step, and an agent in between, run again with their old keys."""
    calls, works = [], []
    booker, between, lead = Agent("booking"), Agent("between"), Agent("lead")

    @booker.capability(keyed=True, undo=lambda: None)
    async def book(what, ctx):
        calls.append(ctx.key)
        return f"booking {len(calls)}"

    @between.capability(keyed=True)
    async def arrange(what, ctx):
        calls.append(ctx.key)
        return await ctx.delegate("book", what)

    @lead.capability(keyed=True)
    async def travel(payload, ctx):
        calls.append(ctx.key)
        return await ctx.delegate("arrange", "hotel")

    @lead.capability(keyed=True)
    async def shaky(payload):
        if not works:
            raise errors.KnowledgeNotFoundError
        return "ok"

    manual.register(booker, between, lead)
    await manual.submit(sequence(Step(name="a", type="travel"), Step(name="b", type="shaky")), id="t")
    await manual.drain()
    first, calls[:] = list(calls), []
    works.append(1)
    await manual.retry("t")
    await manual.drain()
    assert (await manual.get("t").response()).result == {"a": "booking 3", "b": "ok"}
    assert first == ["t/a", "t/a>between/arrange#1", "t/a>between/arrange#1>booking/book#1"]
    assert calls == ["t/a", "t/a>between/arrange#1", "t/a>between/arrange#1>booking/book#1/2"]


async def test_an_effect_of_a_delegation(manual):
    """It happens once, however often the delegating step is attempted, and once more after it was undone."""
    booker, lead, works = Agent("booking"), Agent("lead"), []

    def count(tx):
        row = tx.table("rooms").get("taken")
        tx.table("rooms").put("taken", str(1 + int(row.value if row else 0)).encode())
        return "room"

    def free(tx):
        row = tx.table("rooms").get("taken")
        tx.table("rooms").put("taken", str(int(row.value) - 1).encode())

    async def give_back(what, result, ctx):
        await ctx.once(free)

    @booker.capability(idempotent=True, undo=give_back)
    async def book(what, ctx):
        room = await ctx.once(count)
        if ctx.attempt == 1 and not works:
            works.append("tried")
            raise errors.McpRateLimitedError(retry_after=0.01)
        return room

    @lead.capability(idempotent=True)
    async def travel(payload, ctx):
        room = await ctx.delegate("book")
        if len(works) < 2:
            raise errors.KnowledgeNotFoundError
        return room

    async def taken():
        return int((await manual.store.table("rooms").get("taken")).value)

    manual.register(booker, lead)
    await manual.submit("travel", id="t")
    await manual.drain()
    assert (await manual.get("t").response()).error.code == "KNOWLEDGE_NOT_FOUND"
    assert await taken() == 0
    works.append("again")
    await manual.retry("t")
    await manual.drain()
    assert (await manual.get("t").response()).result == "room"
    assert await taken() == 1
