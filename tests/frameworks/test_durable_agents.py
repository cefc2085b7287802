"""Agents of frameworks whose process is killed and started again: a payment is made once, and a stored answer is not asked for again."""

import asyncio
import json
import random
import sys

import pytest

from amends.arcp import Runtime, connect
from amends.bindings.agent_steps import AgentSteps
from amends.bindings.tool_calls import ToolEffect
from amends.effects import Effects
from tests.frameworks import durable_agent

ORDERS = durable_agent.ORDERS


async def started(framework, folder, at, verified="yes"):
    """Run the agent's process; returns its exit code and what it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.frameworks.durable_agent",
        framework,
        str(folder),
        str(at),
        verified,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(100):
        out, err = await process.communicate()
    return process.returncode, json.loads(out) if out else err.decode()[-2000:]


@pytest.mark.parametrize("framework", durable_agent.FRAMEWORKS)
async def test_killed_in_the_middle_of_a_payment(framework, tmp_path):
    """Paid once, and the model is not asked again for what it answered."""
    code, out = await started(framework, tmp_path, "pay:4")
    assert code == -9, out
    code, out = await started(framework, tmp_path, 0)
    assert (code, out["result"]) == (0, "the end"), out
    assert durable_agent.rows(tmp_path, "pay") == ORDERS
    assert durable_agent.rows(tmp_path, "model") == [0, 1, 2, 3]


@pytest.mark.parametrize("framework", durable_agent.FRAMEWORKS)
async def test_killed_at_any_point(framework, tmp_path):
    """A seeded choice of a point: only the model call that was interrupted is made again."""
    at = random.Random(framework).randrange(1, 35)
    code, out = await started(framework, tmp_path, at)
    assert code == -9, out
    code, out = await started(framework, tmp_path, 0)
    assert (code, out["result"]) == (0, "the end"), out
    assert durable_agent.rows(tmp_path, "pay") == ORDERS, at
    asked = durable_agent.rows(tmp_path, "model")
    assert sorted(set(asked)) == [0, 1, 2, 3]
    assert len(asked) <= 5, at


@pytest.mark.parametrize("framework", durable_agent.FRAMEWORKS)
async def test_in_doubt_and_answered(framework, tmp_path):
    """Without `verify` the job ends in doubt about the tool call, and the answer of a person is the tool's result."""
    code, out = await started(framework, tmp_path, "pay:4", "no")
    assert code == -9, out
    code, out = await started(framework, tmp_path, 0, "no")
    assert code == 0
    [(step, _)] = [(step, state) for step, state in out["steps"].items() if state == "doubt"]
    assert step.startswith("tool pay/call-")
    assert durable_agent.rows(tmp_path, "pay") == ORDERS[:2]
    world = durable_agent.World(tmp_path, lambda kind: None)
    run = durable_agent.FRAMEWORKS[framework](world)
    runtime = Runtime(f"sqlite:///{tmp_path}/jobs.db", tokens={"secret": "alice"})

    @runtime.register_agent("checkout", repeatable=True)
    async def checkout(input, ctx):
        return await run()

    async with runtime, connect(runtime, token="secret") as client:
        [job] = await client.jobs()
        await client.answer(job.job_id, step, happened=True, value="receipt 12")
        async with asyncio.timeout(60):
            assert await (await client.subscribe(job.job_id)).done == "the end"
    assert durable_agent.rows(tmp_path, "pay") == ORDERS
    assert durable_agent.rows(tmp_path, "model") == [0, 1, 2, 3]


async def test_a_plan_made_again_under_other_ids_pays_once(tmp_path):
    """A declared effect has its key from the arguments: another job whose model makes up other ids gets the receipt."""
    from pydantic_ai import Agent
    from pydantic_ai.models.function import FunctionModel

    from amends.bindings.pydantic_ai import Failures
    from amends.bindings.pydantic_ai_steps import Durability

    world = durable_agent.World(tmp_path, lambda kind: None)
    effects = {"pay": ToolEffect(key="order")}
    failures = Failures(effects=effects, ledger=Effects(f"sqlite:///{tmp_path}/ledger.db"), scope="shop")

    def answer(messages, info):
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

        results = [part for each in messages for part in each.parts if part.part_kind == "tool-return"]
        wanted = world.plan(len(results))
        if wanted is None:
            return ModelResponse([TextPart(" ".join(str(each.content) for each in results))])
        return ModelResponse([ToolCallPart("pay", {"order": wanted[0]}, wanted[1])])

    async def pay(order: int) -> str:
        return await world.pay(order)

    agent = Agent(FunctionModel(answer), tools=[pay], capabilities=[Durability(repeat=["pay"]), failures])
    runtime = Runtime(f"sqlite:///{tmp_path}/jobs.db", tokens={"secret": "alice"})

    @runtime.register_agent("checkout", repeatable=True)
    async def checkout(input, ctx):
        return (await agent.run("pay")).output

    async with runtime, connect(runtime, token="secret") as client:
        results = [await (await client.submit("checkout")).done for _ in range(2)]
    assert results == [" ".join(f"receipt {order}" for order in ORDERS)] * 2
    assert durable_agent.rows(tmp_path, "pay") == ORDERS


async def test_what_a_tool_raises_for_the_model_is_stored(tmp_path):
    """pydantic-ai's ModelRetry: the tool is not in doubt, and a second start raises the same."""
    from pydantic_ai import Agent, ModelRetry
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from amends.bindings.pydantic_ai_steps import Durability

    called = []

    def answer(messages, info):
        if called[1:]:
            return ModelResponse([TextPart("the end")])
        return ModelResponse([ToolCallPart("look", {"word": f"w{len(messages)}"})])

    async def look(word: str) -> dict[str, list[int]]:
        called.append(word)
        if len(called) == 1:
            raise ModelRetry("another word")
        return {"found": [1, 2]}

    agent = Agent(FunctionModel(answer), tools=[look], capabilities=[Durability()])
    runtime = Runtime(tokens={"secret": "alice"})

    @runtime.register_agent("plan")
    async def plan(input, ctx):
        return (await agent.run("look")).output

    async with runtime, connect(runtime, token="secret") as client:
        assert await (await client.submit("plan")).done == "the end"
    assert called == ["w1", "w3"]


async def test_outside_of_a_job(caplog):
    """The agent runs as it would without, and a warning says so once."""
    steps = AgentSteps()

    async def call():
        return {"result": 1}

    for _ in range(2):
        assert await steps.model({}, call) == {"result": 1}
        assert await steps.tool("pay", "c", {}, call, found=lambda value: value) == {"result": 1}
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize("options", [{"repeat": "pay"}, {"verify": {"pay": 1}}])
def test_wrong_options(options):
    """The error names the option."""
    with pytest.raises(TypeError, match=next(iter(options))):
        AgentSteps(**options)
