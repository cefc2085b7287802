"""Tasks from request to response, on every backend."""

import asyncio

import msgspec
import pytest

from amends import FaultError
from amends.errors import task as errors
from amends.tasks import (
    Agent,
    Orchestrator,
    Request,
    Step,
    TaskNotFoundError,
    graph,
    result_of,
)
from tests.tasks.agents import calendar
from tests.tasks.conftest import wait_until

SOON = {"maxAttempts": 3, "initialDelay": 30}


async def test_one_task(open_orchestrator):
    """A request document in, a response document out."""
    orchestrator = await open_orchestrator(calendar())
    response = await orchestrator.run({"id": "t-1", "type": "create_event", "payload": {"title": "Dinner"}})
    document = response.document()
    assert document["status"] == "completed"
    assert document["result"] == {"title": "Dinner", "key": "t-1/create_event", "attempt": 1}
    assert set(document["metadata"]) == {"startedAt", "completedAt", "duration_ms", "agent"}
    assert document["metadata"]["agent"] == "calendar-agent"
    assert (await orchestrator.get("t-1").response()) == response
    assert [listed.status async for listed in orchestrator.list()] == ["completed"]
    assert [listed async for listed in orchestrator.list("failed")] == []


async def test_a_failed_task(open_orchestrator):
    """T3, T4: the error has its context and no text of the exception."""
    agent = calendar()

    @agent.capability
    async def broken(payload):
        raise RuntimeError("postgres://admin:hunter2@10.0.0.7/prod")

    orchestrator = await open_orchestrator(agent)
    handle = await orchestrator.submit("broken", {"a": 1})
    response = await handle.wait()
    document = response.document()
    assert document["status"] == "failed"
    assert set(document["error"]) == {"code", "message", "details", "recoverable"}
    assert document["error"]["code"] == "INTERNAL_ERROR"
    assert document["error"]["details"]["context"] == {"agent": "calendar-agent", "capability": "broken"}
    assert b"hunter2" not in msgspec.json.encode(document)
    with pytest.raises(errors.InternalError):
        await handle.result()


async def test_a_retry_after_a_wait(open_orchestrator):
    """T5, T8: a recoverable failure is retried after its wait, by a delay of the queue."""
    agent, tries = calendar(), []

    @agent.capability(read_only=True)
    async def flaky(payload, ctx):
        tries.append((ctx.attempt, ctx.key))
        if len(tries) < 3:
            raise errors.McpRateLimitedError(retry_after=0.05)
        return "done"

    orchestrator = await open_orchestrator(agent)
    response = await orchestrator.run("flaky", retry_policy=SOON, id="t")
    assert response.result == "done"
    assert tries == [(1, "t/flaky"), (2, "t/flaky"), (3, "t/flaky")]
    state = await orchestrator.state("t")
    # From the second repeat on, the own backoff is a lower bound of the named wait.
    assert [attempt.wait for attempt in state.steps["flaky"].stepper.history] == [0.05, 0.06, 0.0]


async def test_the_same_request_twice_is_one_task(open_orchestrator):
    """By id and by idempotency key; another request with the same id or key is refused."""
    agent, calls = calendar(), []

    @agent.capability(read_only=True)
    async def count(payload):
        calls.append(payload)
        return len(calls)

    orchestrator = await open_orchestrator(agent)
    first = await orchestrator.run("count", 1, id="a")
    assert await orchestrator.run("count", 1, id="a") == first
    keyed = await orchestrator.run("count", 2, key="k")
    again = await orchestrator.run({"id": "other", "type": "count", "payload": 2, "idempotencyKey": "k"})
    assert again.id == keyed.id
    assert calls == [1, 2]
    for options in ({"id": "a"}, {"key": "k"}):
        refused = await orchestrator.run("count", 3, **options)
        assert refused.error.code == "INVALID_FIELD_VALUE"


async def test_unknown_agents_and_capabilities_are_refused(open_orchestrator):
    """AGENT_NOT_FOUND and CAPABILITY_NOT_FOUND; nothing is stored."""
    orchestrator = await open_orchestrator(calendar())
    unknown = await orchestrator.run("fly")
    assert unknown.error.code == "AGENT_NOT_FOUND"
    assert unknown.error.recovery == "terminal"
    assert (await orchestrator.run("fly", agent="pilot")).error.code == "AGENT_NOT_FOUND"
    lacking = await orchestrator.run("fly", agent="calendar-agent")
    assert lacking.error.code == "CAPABILITY_NOT_FOUND"
    assert (await orchestrator.run({"type": "create_event"})).error.code == "MISSING_REQUIRED_FIELD"
    with pytest.raises(TaskNotFoundError):
        await orchestrator.get("nothing").wait()
    with pytest.raises(TaskNotFoundError):
        await orchestrator.cancel("nothing")
    assert [listed async for listed in orchestrator.list()] == []


async def test_steps_use_the_results_of_other_steps(open_orchestrator):
    """Steps of a graph that do not wait for one another run at once."""
    agent, running = Agent("worker"), []

    @agent.capability(read_only=True)
    async def double(number: int):
        running.append(number)
        await asyncio.sleep(0.02)
        return number * 2

    @agent.capability(read_only=True)
    async def add(numbers: list[int]):
        return {"sum": sum(numbers)}

    orchestrator = await open_orchestrator(agent)
    plan = graph(
        [
            Step(name="end", type="double", payload=result_of("sum", "/sum")),
            Step(name="sum", type="add", payload=[result_of("a"), result_of("b")]),
            Step(name="a", type="double", payload=1),
            Step(name="b", type="double", payload=2),
        ]
    )
    response = await orchestrator.run(plan)
    assert response.result == {"end": 12, "sum": {"sum": 6}, "a": 2, "b": 4}
    assert sorted(running[:2]) == [1, 2]


async def test_a_task_waits_for_an_answer(open_orchestrator):
    """The status is input_required, and the step starts again with the answer."""
    agent, begun = Agent("cooking-agent"), []

    @agent.capability(read_only=True)
    async def import_recipe(url: str, ctx):
        begun.append(url)
        text = ctx.ask("Please paste the recipe", {"type": "string"})
        servings = await asyncio.to_thread(ctx.ask, "For how many?")
        return f"{text} for {servings}"

    orchestrator = await open_orchestrator(agent)
    handle = await orchestrator.submit("import_recipe", "https://x", id="r")
    asked = await handle.wait()
    assert asked.status == "input_required"
    assert asked.document()["input"] == {
        "step": "import_recipe",
        "kind": "answer",
        "question": "Please paste the recipe",
        "schema": {"type": "string"},
    }
    assert [listed.status async for listed in orchestrator.list()] == ["input_required"]
    with pytest.raises(FaultError):
        await handle.answer("x", step="unknown")
    await handle.answer("Soup")
    assert (await handle.wait()).input["question"] == "For how many?"
    await handle.answer(4)
    assert (await handle.wait()).result == "Soup for 4"
    assert len(begun) == 3
    with pytest.raises(FaultError):
        await handle.answer("too late")


async def test_a_deadline(open_orchestrator):
    """After the deadline no attempt starts, and a running one is stopped."""
    agent = calendar()

    @agent.capability(read_only=True)
    async def slow(payload, ctx):
        assert 0 < ctx.time_left <= 0.2
        await asyncio.sleep(60)

    orchestrator = await open_orchestrator(agent)
    response = await orchestrator.run("slow", deadline=0.2)
    assert response.error.code == "TIMEOUT"
    late = await orchestrator.run({"id": "x", "type": "slow", "deadline": "2020-01-01T00:00:00Z"})
    assert late.error.code == "TIMEOUT"
    assert late.error.executed == "no"
    with pytest.raises(FaultError):
        await orchestrator.submit("slow", deadline="whenever")


async def test_an_effect_in_the_transaction_happens_once(open_orchestrator, store):
    """However often the step is attempted. Without transactions, `once` raises."""
    agent, tries = Agent("shop"), []

    @agent.capability(idempotent=True)
    async def order(item: str, ctx):
        made = await ctx.once(lambda tx: (tx.table("orders").put(f"{item}-{len(tries)}", b"1"), item)[1])
        tries.append(made)
        if len(tries) < 3:
            raise errors.AgentUnavailableError
        return await ctx.once(lambda tx: "second", "other")

    orchestrator = await open_orchestrator(agent)
    response = await orchestrator.run("order", "book", retry_policy=SOON)
    if not store.traits.transactions:
        assert response.error.code == "INTERNAL_ERROR"
        return
    assert response.result == "second"
    assert tries == ["book"] * 3
    assert [row.key async for row in store.table("orders").scan()] == ["book-0"]


async def test_a_failed_effect_is_rolled_back(open_orchestrator, store):
    """The capability gets its own ConflictError, and the transaction has no effect."""
    agent, seen = Agent("shop"), []

    @agent.capability(idempotent=True)
    async def order(item: str, ctx):
        def work(tx):
            tx.table("orders").create("one", b"1")
            tx.table("orders").create("one", b"2")

        try:
            await ctx.once(work)
        except Exception as exc:
            seen.append(type(exc).__name__)
            raise errors.InvalidFieldValueError from exc

    orchestrator = await open_orchestrator(agent)
    await orchestrator.run("order", "x")
    assert seen == ["ConflictError" if store.traits.transactions else "UnsupportedError"]
    assert await store.table("orders").get("one") is None


async def test_two_workers_share_the_queue(other, open_orchestrator):
    """Each task is done once. A task for an agent of one worker goes to that worker."""
    done = []

    def agent(name, where):
        made = Agent(name)

        @made.capability(f"{name}_work", read_only=True)
        async def work(number):
            done.append((where, number))
            await asyncio.sleep(0.02)
            return where

        return made

    one = await open_orchestrator(agent("both", 1), agent("only_one", 1), concurrency=2)
    two = await open_orchestrator(agent("both", 2), on=other, concurrency=2)
    handles = [await two.submit("both_work", n) for n in range(30)]
    assert all(response.ok for response in await asyncio.gather(*(handle.wait() for handle in handles)))
    assert sorted(number for _, number in done) == list(range(30))
    assert {where for where, _ in done} == {1, 2}

    async def announced():
        return (await two.store.table("tasks.workers").get(one._registry.worker)) is not None

    await wait_until(announced)
    elsewhere = await two.run("only_one_work", 1)
    assert elsewhere.result == 1
    assert (await two.run("only_one_nothing", agent="only_one")).error.code == "CAPABILITY_NOT_FOUND"


async def test_forgetting_a_task(open_orchestrator):
    """An ended task can be forgotten; others cannot."""
    agent = calendar()

    @agent.capability(read_only=True)
    async def ask(payload, ctx):
        return ctx.ask("?")

    orchestrator = await open_orchestrator(agent)
    await orchestrator.run("create_event", {"title": "x"}, id="a", key="k")
    await orchestrator.run("ask", id="b")
    with pytest.raises(FaultError):
        await orchestrator.forget("b")
    await orchestrator.forget("a")
    assert [listed.id async for listed in orchestrator.list()] == ["b"]
    with pytest.raises(TaskNotFoundError):
        await orchestrator.state("a")
    assert (await orchestrator.run("create_event", {"title": "y"}, id="a2", key="k")).ok


async def test_an_orchestrator_without_a_worker(other, open_orchestrator):
    """It submits tasks, waits for them, and sends commands, while another process works on them."""
    agent = calendar()

    @agent.capability(read_only=True)
    async def ask(payload, ctx):
        return ctx.ask("?")

    client = await open_orchestrator(on=other, worker=False)
    early = await client.submit("create_event", {"title": "early"})
    worker = await open_orchestrator(agent)
    assert (await asyncio.wait_for(early.wait(), 100)).result["title"] == "early"
    handle = await client.submit(Request(id="q", type="ask"))
    assert (await asyncio.wait_for(handle.wait(), 100)).status == "input_required"
    await handle.answer("yes")
    assert (await asyncio.wait_for(handle.wait(), 100)).result == "yes"
    assert (await worker.get("q").response()).result == "yes"


async def test_wrong_use_raises():
    """Before `start`, with a plan of other things than Steps, and with two agents of one name."""
    closed = Orchestrator()
    with pytest.raises(RuntimeError, match="async with"):
        closed.store  # noqa: B018
    with pytest.raises(TypeError, match="Steps"):
        async with Orchestrator([calendar()]) as orchestrator:
            await orchestrator.submit([{"name": "x"}])
    with pytest.raises(ValueError, match="another agent"):
        Orchestrator([calendar(), calendar()])
