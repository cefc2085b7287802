"""
An agent of a framework with a scripted model that pays three orders, in a process that kills itself at a point.

    python -m tests.frameworks.durable_agent FRAMEWORK FOLDER AT

A point is before and after each model call, each payment and each write of the job's log; AT is `pay:2`, the second point in payments,
or a number, or 0 for none. Payments and model calls are rows of a file of their own.
"""

import asyncio
import json
import os
import signal
import sqlite3
import sys
import uuid
from contextlib import closing

from amends.arcp import Limits, Runtime, connect
from amends.arcp.runtime.ledger import Ledger

ORDERS = [11, 12, 13]


class Points:
    def __init__(self, at):
        self.at, self.seen = at, {"": 0}

    def __call__(self, kind):
        for counted in ("", kind):
            self.seen[counted] = self.seen.get(counted, 0) + 1
        if self.at in {str(self.seen[""]), f"{kind}:{self.seen[kind]}"}:
            os.kill(os.getpid(), signal.SIGKILL)


def execute(folder, statement, *values):
    with closing(sqlite3.connect(f"{folder}/world.db", timeout=20)) as file, file:
        file.execute("CREATE TABLE IF NOT EXISTS calls (what TEXT, number INTEGER)")
        return file.execute(statement, values).fetchall()


def rows(folder, what):
    return [number for (number,) in execute(folder, "SELECT number FROM calls WHERE what = ?", what)]


class World:
    """What the agent calls: the model's answers by the number of results it has seen, and the payments."""

    def __init__(self, folder, point):
        self.folder, self.point = folder, point

    def plan(self, results):
        """Return the order to pay next and the id of the call; None: the answer is ready."""
        self.point("model")
        execute(self.folder, "INSERT INTO calls VALUES ('model', ?)", results)
        self.point("model")
        # Real models make up a new id whenever they are asked.
        return (ORDERS[results], f"call-{uuid.uuid4().hex}") if results < len(ORDERS) else None

    async def pay(self, order):
        self.point("pay")
        execute(self.folder, "INSERT INTO calls VALUES ('pay', ?)", order)
        self.point("pay")
        return f"receipt {order}"

    def find(self, order):
        return f"receipt {order}" if order in rows(self.folder, "pay") else False


def pydantic_ai(world, **options):
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from amends.bindings.pydantic_ai_steps import Durability

    def answer(messages, info):
        results = sum(part.part_kind == "tool-return" for each in messages for part in each.parts)
        wanted = world.plan(results)
        if wanted is None:
            return ModelResponse([TextPart("the end")])
        return ModelResponse([ToolCallPart("pay", {"order": wanted[0]}, wanted[1])])

    async def pay(order: int) -> str:
        return await world.pay(order)

    agent = Agent(FunctionModel(answer), tools=[pay], capabilities=[Durability(**options)])

    async def run():
        return (await agent.run("pay")).output

    return run


def langchain(world, **options):
    from langchain.agents import create_agent
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage, ToolMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.tools import tool

    from amends.bindings.langchain_steps import Durability

    class Scripted(BaseChatModel):
        @property
        def _llm_type(self):
            return "scripted"

        def bind_tools(self, tools, **options):
            return self

        def _generate(self, messages, stop=None, run_manager=None, **options):
            wanted = world.plan(sum(isinstance(each, ToolMessage) for each in messages))
            calls = [] if wanted is None else [{"name": "pay", "args": {"order": wanted[0]}, "id": wanted[1]}]
            return ChatResult(generations=[ChatGeneration(message=AIMessage("the end", tool_calls=calls))])

    @tool
    async def pay(order: int) -> str:
        """Pay an order."""
        return await world.pay(order)

    agent = create_agent(Scripted(), [pay], middleware=[Durability(**options)])

    async def run():
        state = await agent.ainvoke({"messages": [("user", "pay")]})
        return state["messages"][-1].content

    return run


def openai_agents(world, **options):
    from agents import Agent, Runner, function_tool, set_tracing_disabled
    from agents.items import ModelResponse
    from agents.models.interface import Model
    from agents.usage import Usage
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from amends.bindings.openai_agents_steps import Durability

    set_tracing_disabled(disabled=True)

    class Scripted(Model):
        async def get_response(self, instructions, input, *args, **more):
            items = [] if isinstance(input, str) else input
            wanted = world.plan(sum(item.get("type") == "function_call_output" for item in items))
            if wanted is None:
                text = ResponseOutputText(text="the end", type="output_text", annotations=[])
                output = ResponseOutputMessage(
                    id=f"msg-{uuid.uuid4()}",
                    content=[text],
                    role="assistant",
                    status="completed",
                    type="message",
                )
            else:
                output = ResponseFunctionToolCall(
                    name="pay",
                    arguments=json.dumps({"order": wanted[0]}),
                    call_id=wanted[1],
                    type="function_call",
                )
            return ModelResponse(output=[output], usage=Usage(), response_id=None)

        def stream_response(self, *args, **options):
            raise NotImplementedError

    @function_tool
    async def pay(order: int) -> str:
        """Pay an order."""
        return await world.pay(order)

    durability = Durability(**options)
    agent = durability.agent(Agent(name="checkout", tools=[pay], model=Scripted()))

    async def run():
        return (await Runner.run(agent, "pay", run_config=durability.run_config())).final_output

    return run


FRAMEWORKS = {each.__name__: each for each in (pydantic_ai, langchain, openai_agents)}


async def main(framework, folder, at, verified="yes"):
    point = Points(at)
    for name in ("write",):
        inner = getattr(Ledger, name)

        async def pointed(self, *args, _inner=inner, **options):
            point("write")
            await _inner(self, *args, **options)
            point("write")

        setattr(Ledger, name, pointed)
    world = World(folder, point)
    options = {"verify": {"pay": world.find}} if verified == "yes" else {}
    options["timeout"] = 0.5
    run = FRAMEWORKS[framework](world, **options)
    limits = Limits(node_lease=0.5, drain=0.0, cancel_grace=0.2)
    runtime = Runtime(f"sqlite:///{folder}/jobs.db", tokens={"secret": "alice"}, limits=limits)

    @runtime.register_agent("checkout", repeatable=True)
    async def checkout(input, ctx):
        return await run()

    async with runtime, connect(runtime, token="secret") as client:
        handle = await client.submit("checkout", idempotency_key="k")
        try:
            result = await handle.done
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
        steps = {step["step"]: step["state"] for step in await client.steps(handle.job_id)}
    print(json.dumps({"result": result, "steps": steps, "points": point.seen[""]}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
