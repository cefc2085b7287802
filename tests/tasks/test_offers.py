"""Who can do what: refused at once where nobody can, left to whoever can, on every store."""

import pytest

from amends.errors import task as errors
from amends.tasks import Agent, Capability, Step, offers, sequence
from tests.tasks.conftest import through_time, until


class Elsewhere(Agent):
    """An agent whose capabilities are known where it is."""

    dynamic = True

    async def find(self, type):
        async def call(payload):
            return [type, payload]

        if type == "fly":
            raise errors.CapabilityNotFoundError
        return Capability(name=type, call=call, read_only=True)


async def test_what_another_workers_agent_has_to_be_asked_about(open_at, other):
    """It may have more than anybody knows: handed to it by name, from a process that does not have it."""
    await open_at(Elsewhere("shop"))
    client = await open_at(on=other, worker=False)
    assert (await client.run("price", "pen", agent="shop")).result == ["price", "pen"]
    assert (await client.run("fly", agent="shop")).error.code == "CAPABILITY_NOT_FOUND"


async def test_refused_at_once(open_at, other):
    """By a process that knows its own agents, and those of the others."""
    agent = Agent("shop")

    @agent.capability(read_only=True)
    async def price(item):
        return 7

    await open_at(agent)
    client = await open_at(Agent("other"), on=other)
    for type, agent, code in (
        ("fly", "shop", "CAPABILITY_NOT_FOUND"),
        ("fly", "other", "CAPABILITY_NOT_FOUND"),
        ("fly", "nobody", "AGENT_NOT_FOUND"),
        ("fly", None, "AGENT_NOT_FOUND"),
    ):
        refused = await client.run(type, agent=agent)
        assert (refused.error.code, refused.metadata.started) == (code, None)
    assert [each async for each in client.list()] == []


async def test_nobody_is_up_yet(open_at):
    """A client on its own cannot tell: the first worker will see."""
    client = await open_at(worker=False)
    handle = await client.submit("price", agent="shop")
    assert (await handle.response()).status == "pending"


async def test_what_is_no_offer_is_left_alone(open_at, other, store):
    """Rows of another version or none: as if nobody had said anything."""
    await store.table("tasks.workers").put("odd", b'{"shop": ["price"]}')
    await store.table("tasks.workers").put("broken", b"\xff")
    client = await open_at(on=other, worker=False)
    handle = await client.submit("price", agent="shop")
    assert (await handle.response()).status == "pending"


class Away(Agent):
    """An agent elsewhere that cannot be reached for a while, in the way connections fail."""

    dynamic = True
    away = 0

    def __init__(self, name, undone):
        super().__init__(name)
        self.undone = undone

    async def find(self, type):
        if self.away:
            self.away -= 1
            raise ConnectionRefusedError("10.0.0.7")

        async def call(payload):
            if payload == "moon":
                self.away = self.after
                raise errors.KnowledgeNotFoundError
            return payload

        async def undo(payload):
            self.undone.append(payload)

        return Capability(name=type, call=call, keyed=True, undo=undo)


@pytest.mark.parametrize(("after", "undone", "left"), [(1, ["hotel"], None), (1000, [], ["hotel"])])
async def test_undoing_with_an_agent_that_is_away(still, clock, after, undone, left):
    """It is waited for within the bounds of recovery, and then said what was not taken back."""
    agent = Away("travel", [])
    agent.after = after
    still.register(agent)
    plan = sequence(
        Step(name="hotel", type="book", payload="hotel", agent="travel"),
        Step(name="moon", type="book", payload="moon", agent="travel"),
    )
    handle = await still.submit(plan)
    assert await through_time(still, clock, handle)
    error = (await handle.response()).error
    assert agent.undone == undone
    assert error.details.get("notUndone") == left
    assert "10.0.0.7" not in str(error)


async def test_a_worker_says_again_what_it_offers(open_at, store, other, monkeypatch):
    """Its word expires, so it is renewed for as long as it lives, and taken back when it ends."""
    monkeypatch.setattr(offers, "_EXPIRES", 0.3)
    worker = await open_at(Agent("shop"))
    rows, name = other.table("tasks.workers"), worker._house.worker
    first = (await rows.get(name)).revision

    async def said_again():
        row = await rows.get(name)
        return row is not None and row.revision > first + 2

    await until(said_again)
    await worker.close()
    assert await rows.get(name) is None
