"""Tasks that no worker can do are refused; others go to a worker that has the agent, on every store."""

import pytest

from amends.errors import task as errors
from amends.tasks import Agent, Capability, Step, offers, sequence
from tests.tasks.conftest import advance_until_rest, wait_until


class DynamicAgent(Agent):
    """An agent whose capabilities are looked up at a service."""

    dynamic = True

    async def find(self, type):
        async def call(payload):
            return [type, payload]

        if type == "fly":
            raise errors.CapabilityNotFoundError
        return Capability(name=type, call=call, read_only=True)


async def test_a_dynamic_agent_of_another_worker(open_orchestrator, other):
    """Any capability is accepted if the agent is named; the agent decides whether it has it."""
    await open_orchestrator(DynamicAgent("shop"))
    client = await open_orchestrator(on=other, worker=False)
    assert (await client.run("price", "pen", agent="shop")).result == ["price", "pen"]
    assert (await client.run("fly", agent="shop")).error.code == "CAPABILITY_NOT_FOUND"


async def test_a_task_that_no_worker_offers_is_refused(open_orchestrator, other):
    """By the agents of this process and of all other workers."""
    agent = Agent("shop")

    @agent.capability(read_only=True)
    async def price(item):
        return 7

    await open_orchestrator(agent)
    client = await open_orchestrator(Agent("other"), on=other)
    for type, agent, code in (
        ("fly", "shop", "CAPABILITY_NOT_FOUND"),
        ("fly", "other", "CAPABILITY_NOT_FOUND"),
        ("fly", "unknown", "AGENT_NOT_FOUND"),
        ("fly", None, "AGENT_NOT_FOUND"),
    ):
        refused = await client.run(type, agent=agent)
        assert (refused.error.code, refused.metadata.agent) == (code, agent)
        assert refused.metadata.completed == refused.metadata.started
    assert [each async for each in client.list()] == []


async def test_a_task_is_accepted_when_no_worker_runs(open_orchestrator):
    """A process that only submits cannot check the agents."""
    client = await open_orchestrator(worker=False)
    handle = await client.submit("price", agent="shop")
    assert (await handle.response()).status == "pending"


async def test_rows_that_are_no_offers_are_ignored(open_orchestrator, other, store):
    """Rows of another version, and rows that cannot be decoded."""
    await store.table("tasks.workers").put("odd", b'{"shop": ["price"]}')
    await store.table("tasks.workers").put("broken", b"\xff")
    client = await open_orchestrator(on=other, worker=False)
    handle = await client.submit("price", agent="shop")
    assert (await handle.response()).status == "pending"


class UnreachableAgent(Agent):
    """A dynamic agent whose look-ups fail with a connection error for a while."""

    dynamic = True
    failures = 0

    def __init__(self, name, undone):
        super().__init__(name)
        self.undone = undone

    async def find(self, type):
        if self.failures:
            self.failures -= 1
            raise ConnectionRefusedError("10.0.0.7")

        async def call(payload):
            if payload == "moon":
                self.failures = self.after
                raise errors.KnowledgeNotFoundError
            return payload

        async def undo(payload):
            self.undone.append(payload)

        return Capability(name=type, call=call, keyed=True, undo=undo)


@pytest.mark.parametrize(("after", "undone", "left"), [(1, ["hotel"], None), (1000, [], ["hotel"])])
async def test_undoing_with_an_unreachable_agent(manual, clock, after, undone, left):
    """Undoing is retried within the policy; after that the step is in `notUndone`."""
    agent = UnreachableAgent("travel", [])
    agent.after = after
    manual.register(agent)
    plan = sequence(
        Step(name="hotel", type="book", payload="hotel", agent="travel"),
        Step(name="moon", type="book", payload="moon", agent="travel"),
    )
    handle = await manual.submit(plan)
    assert await advance_until_rest(manual, clock, handle)
    error = (await handle.response()).error
    assert agent.undone == undone
    assert error.details.get("notUndone") == left
    assert "10.0.0.7" not in str(error)


async def test_an_offer_is_renewed_and_deleted(open_orchestrator, store, other, monkeypatch):
    """The worker renews its row before it expires, and deletes it when it is closed."""
    monkeypatch.setattr(offers, "_EXPIRES", 0.3)
    worker = await open_orchestrator(Agent("shop"))
    rows, name = other.table("tasks.workers"), worker._registry.worker
    first = (await rows.get(name)).revision

    async def renewed():
        row = await rows.get(name)
        return row is not None and row.revision > first + 2

    await wait_until(renewed)
    await worker.close()
    assert await rows.get(name) is None
