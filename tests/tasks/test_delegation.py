"""Capabilities that delegate to other agents."""

import pytest

from amends.errors import task as errors
from amends.tasks import (
    Agent,
    Step,
    sequence,
)
from tests.tasks.agents import booking
from tests.tasks.conftest import advance_until_rest


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


@pytest.mark.parametrize("promise", [{}, {"idempotent": True}])
async def test_a_question_of_a_delegated_capability(open_orchestrator, promise):
    """The task waits for the answer, which the delegated capability gets when the step runs again."""
    lead, clerk, calls = Agent("lead"), Agent("clerk"), []

    @lead.capability(**promise)
    async def plan(payload, ctx):
        return [await ctx.delegate("seat", n) for n in range(2)]

    @clerk.capability(**promise)
    async def seat(n, ctx):
        calls.append(n)
        return f"{ctx.ask('Which seat?', {'type': 'string'})}{n}"

    orchestrator = await open_orchestrator(lead, clerk)
    handle = await orchestrator.submit("plan", id="t")
    for number in (1, 2):
        asked = (await handle.wait(timeout=20)).input
        assert asked == {
            "step": f"plan>clerk/seat#{number}",
            "kind": "answer",
            "question": "Which seat?",
            "schema": {"type": "string"},
        }
        with pytest.raises(errors.InvalidFieldTypeError):
            await handle.answer(7)
        await handle.answer("A")
    assert (await handle.wait(timeout=20)).result == ["A0", "A1"]
    assert calls == [0, 0, 1, 1]


async def test_a_question_of_a_nested_delegation_after_a_crash(manual):
    """The calls that led to the question begin again; what they delegated before is not repeated."""
    lead, middle, clerk, calls = Agent("lead"), Agent("middle"), Agent("clerk"), []

    @lead.capability
    async def plan(payload, ctx):
        return await ctx.delegate("relay")

    @middle.capability
    async def relay(payload, ctx):
        await ctx.delegate("note")
        return await ctx.delegate("seat")

    @clerk.capability
    async def note(payload):
        calls.append("note")

    @clerk.capability
    async def seat(payload, ctx):
        return ctx.ask("Which seat?")

    manual.register(lead, middle, clerk)
    handle = await manual.submit("plan", id="t")
    await manual.drain()
    assert (await handle.response()).input["kind"] == "answer"
    await handle.answer("12A")
    await manual.drain()
    assert (await handle.response()).result == "12A"
    assert calls == ["note"]


async def test_an_undo_that_delegates(manual):
    """Its delegations are its own: a delegation of the step does not replace them, and they are not undone themselves."""
    lead, stock, changes, keys = Agent("lead"), Agent("stock"), [], []

    @stock.capability(keyed=True, undo=lambda payload, result: changes.append("undone"))
    async def adjust(by, ctx):
        changes.append(by)
        keys.append(ctx.key)

    async def free(payload, result, ctx):
        await ctx.delegate("adjust", -1)

    @lead.capability(idempotent=True, undo=free)
    async def reserve(payload, ctx):
        await ctx.delegate("adjust", 1)

    @lead.capability
    async def fail(payload):
        raise errors.KnowledgeNotFoundError

    manual.register(lead, stock)
    handle = await manual.submit(
        sequence(Step(name="a", type="reserve"), Step(name="b", type="fail")), id="t"
    )
    await manual.drain()
    assert (await handle.response()).error.details["undone"] == ["a>stock/adjust#1", "a"]
    assert changes == [1, -1, "undone"]
    await manual.retry("t")
    await manual.drain()
    assert changes == [1, -1, "undone"] * 2
    assert len(set(keys)) == 4  # no key of the first round is used again


async def test_a_retry_after_an_undo_has_new_keys_for_all_delegations(manual):
    """The undo of the step reversed them, although they have no undo of their own."""
    lead, stock, keys = Agent("lead"), Agent("stock"), []

    @stock.capability(keyed=True)
    async def adjust(by, ctx):
        keys.append(ctx.key)

    @lead.capability(idempotent=True, undo=lambda payload: None)
    async def reserve(payload, ctx):
        await ctx.delegate("adjust", 1)

    @lead.capability
    async def fail(payload):
        raise errors.KnowledgeNotFoundError

    manual.register(lead, stock)
    await manual.submit(sequence(Step(name="a", type="reserve"), Step(name="b", type="fail")), id="t")
    await manual.drain()
    await manual.retry("t")
    await manual.drain()
    assert keys == ["t/a>stock/adjust#1", "t/a>stock/adjust#1/2"]


async def test_a_verify_that_delegates(manual, clock):
    """Each check asks again: what an earlier check found out may have changed."""
    lead, bank, paid, looked = Agent("lead"), Agent("bank"), [], []

    @bank.capability(read_only=True)
    async def look_up(payload):
        looked.append(len(paid))
        return len(paid)

    async def check(payload, ctx):
        return await ctx.delegate("look_up") or False

    @lead.capability(verify=check)
    async def pay(payload, ctx):
        if ctx.attempt == 2:
            paid.append(ctx.key)
        raise errors.TimeoutError

    manual.register(lead, bank)
    handle = await manual.submit("pay", id="t")
    await advance_until_rest(manual, clock, handle)
    assert (await handle.response()).result == 1
    assert (paid, looked) == (["t/pay"], [0, 1])
    assert (await manual.state("t")).done == ["pay"]


async def test_delegations_in_a_circle(manual):
    """TASK_GRAPH_CYCLE before a call is made again with the same payload, or after 32 calls with different ones."""
    agents, calls = [Agent("a"), Agent("b")], []

    @agents[0].capability(idempotent=True)
    async def ping(n, ctx):
        calls.append(n)
        return await ctx.delegate("pong", None if n is None else n + 1)

    @agents[1].capability
    async def pong(n, ctx):
        return await ctx.delegate("ping", n)

    manual.register(*agents)
    for payload, count, cycle in (
        (None, 1, ["a/ping", "b/pong", "a/ping"]),
        (0, 16, ["a/ping", "b/pong"] * 16 + ["a/ping"]),
    ):
        calls.clear()
        handle = await manual.submit("ping", payload)
        await manual.drain()
        fault = (await handle.response()).error
        assert fault.recovery == "terminal"
        while fault.code == "DELEGATION_FAILED":
            (fault,) = fault.errors
        assert (fault.code, fault.details["cycle"]) == ("TASK_GRAPH_CYCLE", cycle)
        assert len(calls) == count
