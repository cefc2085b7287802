"""Exceptions inside others: frameworks, retries, groups; and the frameworks' own."""

import asyncio

import pytest

from tests.sdks import clients
from tests.sdks.checks import PROSE, difference, raised, wrong
from tests.sdks.server import Answer, serving
from tests.sdks.test_connections import instructor, langchain, litellm, openai_agents, pydantic_ai
from tests.sdks.test_models import (
    ANTHROPIC,
    GOOGLE,
    OPENAI,
    SSE,
    chunk,
    failed,
    openai,
    stream,
)

NAMES = ("quota", "throttle in ms", "overload", "context", "content", "key", "region", "model", "field", "conflict", "internal", "no body")  # fmt: skip
CASES = [case for case in OPENAI if case[0] in NAMES]


def litellm_anthropic(url):
    import litellm as sdk

    sdk.completion("anthropic/m", clients.CHAT, api_base=url, api_key="k", max_retries=0, num_retries=0)


def litellm_gemini(url):
    import litellm as sdk

    sdk.completion("gemini/m", clients.CHAT, api_base=url, api_key="k", max_retries=0, num_retries=0)


def litellm_async(url):
    import litellm as sdk

    asyncio.run(
        sdk.acompletion("openai/m", clients.CHAT, api_base=f"{url}/v1", api_key="k", max_retries=0, num_retries=0)
    )  # fmt: skip


def litellm_router(url):
    from litellm import Router

    model = {
        "model_name": "m",
        "litellm_params": {"model": "openai/m", "api_base": f"{url}/v1", "api_key": "k"},
    }
    Router([model], num_retries=0, disable_cooldowns=True).completion("m", clients.CHAT)


def langgraph(url):
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(dict)
    graph.add_node("call", lambda state: langchain(url))
    graph.add_edge(START, "call")
    graph.add_edge("call", END)
    graph.compile().invoke({})


def langchain_retry(url):
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="m", base_url=f"{url}/v1", api_key="k", max_retries=0)
    model.with_retry(stop_after_attempt=1).invoke("x")


def langchain_fallbacks(url):
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="m", base_url=f"{url}/v1", api_key="k", max_retries=0)
    model.with_fallbacks([model]).invoke("x")


def pydantic_fallback(url):
    import openai as sdk
    from pydantic_ai import Agent
    from pydantic_ai.models.fallback import FallbackModel
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = sdk.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
    model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))
    Agent(FallbackModel(model, model)).run_sync("x")


def instructor_retries(url):
    import instructor as sdk
    import openai
    from pydantic import BaseModel

    class Reply(BaseModel):
        text: str

    client = sdk.from_openai(openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0))
    client.chat.completions.create(model="m", messages=clients.CHAT, response_model=Reply, max_retries=2)


def tenacity(url):
    from tenacity import retry, stop_after_attempt

    retry(stop=stop_after_attempt(2))(clients.openai)(url)


def group(url):
    raise ExceptionGroup("tasks", [raised(clients.openai, url)])


def task_group(url):
    async def call():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.to_thread(clients.openai, url))

    asyncio.run(call())


def with_cause(url):
    from langchain_core.exceptions import LangChainException

    try:
        clients.openai(url)
    except Exception as error:
        raise LangChainException(PROSE) from error


@pytest.mark.parametrize(
    ("call", "cases"),
    [
        (litellm, CASES),
        (litellm_async, CASES),
        (litellm_router, [case for case in CASES if case[0] != "model"]),  # the router keeps no body
        (litellm_anthropic, ANTHROPIC),
        (litellm_gemini, GOOGLE),
        (pydantic_ai, CASES),
        (pydantic_fallback, [(name, answer, kind) for name, answer, kind, *_ in CASES]),
        (langchain, CASES),
        (langchain_retry, CASES),
        (langchain_fallbacks, CASES),
        (langgraph, CASES),
        (openai_agents, CASES),
        (instructor, CASES),
        (instructor_retries, CASES),
        (tenacity, CASES),
        (group, [(name, answer, kind) for name, answer, kind, *_ in CASES]),
        (task_group, [(name, answer, kind) for name, answer, kind, *_ in CASES]),
        (with_cause, CASES),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_wrapped(call, cases, monkeypatch):
    """Wait, field and code word survive the wrapping."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    with serving(Answer(500)) as server:

        def ask(answer):
            server.script = [answer]
            call(server.url)

        assert wrong(cases, ask) == {}


def completion(content="{}", finish="stop", tools=None):
    message = {"role": "assistant", "content": content} | ({"tool_calls": tools} if tools else {})
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return Answer(200, {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage})  # fmt: skip


def pydantic_agent(url, **more):
    import openai as sdk
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = sdk.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
    return Agent(OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client)), **more)


def pydantic_output(url):
    pydantic_agent(url, output_type=int).run_sync("x")


def pydantic_limit(url):
    from pydantic_ai.usage import UsageLimits

    pydantic_agent(url).run_sync("x", usage_limits=UsageLimits(request_limit=0))


def pydantic_stream(url):
    async def call():
        async with pydantic_agent(url).run_stream("x") as result:
            async for _ in result.stream_text():
                pass

    asyncio.run(call())


def agent(url, **more):
    import agents
    import openai as sdk

    client = sdk.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
    agents.set_tracing_disabled(disabled=True)
    return agents.Agent("a", model=agents.OpenAIChatCompletionsModel(model="m", openai_client=client), **more)


def agents_turns(url):
    import agents

    @agents.function_tool
    def again() -> str:
        """Go on."""
        return "x"

    asyncio.run(agents.Runner.run(agent(url, tools=[again]), "x", max_turns=1))


def agents_unknown_tool(url):
    import agents

    asyncio.run(agents.Runner.run(agent(url), "x"))


def agents_guardrail(url):
    import agents

    @agents.input_guardrail
    async def never(context, me, text):
        return agents.GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    asyncio.run(agents.Runner.run(agent(url, input_guardrails=[never]), "x"))


def agents_stream(url):
    import agents

    async def call():
        async for _ in agents.Runner.run_streamed(agent(url), "x").stream_events():
            pass

    asyncio.run(call())


def langchain_parser(url):
    from langchain_core.output_parsers import JsonOutputParser

    JsonOutputParser().parse("hunter2")


def langchain_stream(url):
    from langchain_openai import ChatOpenAI

    for _ in ChatOpenAI(model="m", base_url=f"{url}/v1", api_key="k", max_retries=0).stream("x"):
        pass


def langgraph_recursion(url):
    from langgraph.graph import START, StateGraph

    graph = StateGraph(dict)
    graph.add_node("a", lambda state: state)
    graph.add_edge(START, "a")
    graph.add_edge("a", "a")
    graph.compile().invoke({"x": 1}, {"recursion_limit": 3})


def langgraph_tool(url):
    from langchain_core.tools import ToolException

    raise ToolException(PROSE)


def litellm_stream(url):
    import litellm as sdk

    for _ in sdk.completion(
        "openai/m", clients.CHAT, api_base=f"{url}/v1", api_key="k", max_retries=0, num_retries=0, stream=True
    ):  # fmt: skip
        pass


def litellm_cooldown(url):
    from litellm import Router

    model = {
        "model_name": "m",
        "litellm_params": {"model": "openai/m", "api_base": f"{url}/v1", "api_key": "k"},
    }
    router = Router([model], num_retries=0, allowed_fails=0, cooldown_time=30)
    for _ in range(2):
        error = raised(router.completion, "m", clients.CHAT)
    raise error


def litellm_budget(url):
    import litellm as sdk

    raise sdk.BudgetExceededError(current_cost=2, max_budget=1)


def instructor_incomplete(url):
    instructor_retries(url)


def cancelled(url):
    async def call():
        task = asyncio.create_task(asyncio.sleep(10))
        await asyncio.sleep(0)
        task.cancel()
        await task

    asyncio.run(call())


TOOL = [{"id": "t", "type": "function", "function": {"name": "again", "arguments": "{}"}}]
OVER = Answer(200, stream(chunk(content="a"), failed("insufficient_quota", "insufficient_quota")), SSE)
BUSY = Answer(200, stream(chunk(content="a"), failed("rate_limit_exceeded", "tokens")), SSE)
OTHERS = [
    ("pydantic-ai output", pydantic_output, completion("not a number"), None, {"executed": "maybe"}),
    ("pydantic-ai limit", pydantic_limit, completion(), "quota", {}),
    ("pydantic-ai filter", pydantic_ai, completion(None, "content_filter"), "content", {}),
    ("pydantic-ai stream", pydantic_stream, OVER, "quota", {"executed": "maybe"}),
    ("pydantic-ai busy stream", pydantic_stream, BUSY, "throttle", {"executed": "maybe", "action": "verify"}),
    ("agents turns", agents_turns, completion(None, "tool_calls", TOOL), None, {"recovery": ("uncertain", "terminal")}),
    ("agents tool", agents_unknown_tool, completion(None, "tool_calls", TOOL), None, {"recovery": "uncertain"}),
    ("agents guardrail", agents_guardrail, completion(), "content", {}),
    ("agents stream", agents_stream, OVER, "quota", {"executed": "maybe"}),
    ("langchain parser", langchain_parser, completion(), None, {"executed": "maybe"}),
    ("langchain stream", langchain_stream, OVER, "quota", {"executed": "maybe"}),
    ("langgraph recursion", langgraph_recursion, completion(), None, {"recovery": ("uncertain", "terminal")}),
    ("langchain tool", langgraph_tool, completion(), "internal", {}),
    ("litellm stream", litellm_stream, OVER, "quota", {"executed": "maybe"}),
    ("litellm busy stream", litellm_stream, BUSY, "throttle", {"executed": "maybe", "action": "verify"}),
    ("litellm cooldown", litellm_cooldown, openai(429, "rate_limit_exceeded", "tokens"), None, {"recovery": "transient", "executed": "no"}),
    ("litellm budget", litellm_budget, completion(), "quota", {}),
    ("instructor output", instructor_retries, completion('{"text": 1}'), None, {"recovery": ("uncertain", "correctable")}),
    ("instructor incomplete", instructor_retries, completion('{"te', "length"), None, {"recovery": "correctable"}),
    ("cancelled", cancelled, completion(), "cancelled", {}),
]  # fmt: skip


@pytest.mark.parametrize(("call", "answer", "kind", "more"), [case[1:] for case in OTHERS], ids=[case[0] for case in OTHERS])  # fmt: skip
def test_others(call, answer, kind, more, monkeypatch):
    """Streams inside frameworks, their limits, and what they refuse by themselves."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    with serving(answer) as server:
        error = raised(call, server.url)
    assert difference(error, kind, **more) == {}, repr(error)
