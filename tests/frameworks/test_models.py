"""The recovery of the model's own calls, with the SDK's clients against a local server."""

import asyncio
import functools
from typing import Any

import openai
import pytest
from agent_framework import Agent as FrameworkAgent
from agent_framework.openai import OpenAIChatCompletionClient
from agents import Agent as OpenAIAgent
from agents import OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.genai import types
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.messages.tool import InvalidToolCall
from langchain_openai import ChatOpenAI
from llama_index.core.agent.workflow import FunctionAgent
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from smolagents import LogLevel, OpenAIModel, ToolCallingAgent
from strands import Agent as StrandsAgent

from amends import FaultError
from amends.bindings import (
    agent_framework,
    google_adk,
    langchain,
    llama_index,
    openai_agents,
    pydantic_ai,
    smolagents,
    strands,
)
from amends.errors import ContextTooLongError, QuotaExceededError, ServiceUnavailableError
from amends.testing import FakeClock
from tests.frameworks import matrix
from tests.frameworks.model_server import BROKEN, CUT, DOWN, QUOTA, RATE, TOO_LONG, answer, serving

set_tracing_disabled(disabled=True)


@pytest.fixture(autouse=True)
def clock():
    """Waits take no time."""
    with FakeClock() as fake:
        yield fake


def client(url, **options):
    return openai.AsyncOpenAI(base_url=url, api_key="none", **options)


def with_openai_agents(url, second=None, **options):
    failures = openai_agents.Failures(
        fallback_models=[OpenAIChatCompletionsModel("second", client(second))] if second else []
    )
    model = failures.model(OpenAIChatCompletionsModel("first", client(url, **options)))
    return asyncio.run(Runner.run(OpenAIAgent(name="a", model=model), "hello")).final_output


def with_pydantic_ai(url, second=None, **options):
    def model(name, url, **options):
        return OpenAIChatModel(name, provider=OpenAIProvider(openai_client=client(url, **options)))

    failures = pydantic_ai.Failures(fallback_models=[model("second", second)] if second else [])
    agent = PydanticAgent(model("first", url, **options), capabilities=[failures])
    return asyncio.run(agent.run("hello")).output


def with_smolagents(url, second=None, **options):
    def model(name, url, **options):
        return OpenAIModel(name, api_base=url, api_key="none", client_kwargs=options)

    failures = smolagents.Failures(fallback_models=[model("second", second)] if second else [])
    recovered: Any = failures.model(model("first", url, **options))
    agent = ToolCallingAgent(tools=[], model=recovered, verbosity_level=LogLevel.OFF, max_steps=1)
    return agent.run("hello")


FINAL = answer(calls=[("final_answer", '{"answer": "the end"}')])


def with_langchain_openai(url, second=None, **options):
    def model(name, url, **options):
        return ChatOpenAI(model=name, base_url=url, api_key="none", **options)

    failures = langchain.Failures(fallback_models=[model("second", second)] if second else [])
    agent = create_agent(model("first", url, **options), [], middleware=[failures])
    return agent.invoke({"messages": [{"role": "user", "content": "hello"}]})["messages"][-1].content


def with_agent_framework_openai(url, second=None, *, stream=False, **options):
    def model(name, url, **options):
        return OpenAIChatCompletionClient(model=name, async_client=client(url, **options))

    failures = agent_framework.Failures(fallback_models=[model("second", second)] if second else [])
    agent = FrameworkAgent(client=failures.model(model("first", url, **options)), middleware=[failures])

    async def work():
        if stream:
            return "".join([update.text async for update in agent.run("hello", stream=True)])
        return (await agent.run("hello")).text

    return asyncio.run(work())


RUNS = {
    "langchain": (with_langchain_openai, answer()),
    "agent framework": (with_agent_framework_openai, answer()),
    "agent framework, stream": (functools.partial(with_agent_framework_openai, stream=True), answer()),
    "openai agents": (with_openai_agents, answer()),
    "pydantic-ai": (with_pydantic_ai, answer()),
    "smolagents": (with_smolagents, FINAL),
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("fault", [RATE, DOWN, BROKEN, CUT], ids=["429", "503", "500", "cut"])
def test_a_call_that_failed_is_made_again(name, fault):
    """What a repeat can help is repeated."""
    run, done = RUNS[name]
    with serving([fault, done]) as (url, requests):
        assert run(url) == "the end"
    assert len(requests) == 2


@pytest.mark.parametrize("name", RUNS)
def test_tries_do_not_multiply(name):
    """A service that stays down gets the tries of one policy, and used-up quota is asked for once."""
    run, _ = RUNS[name]
    for fault, most in ((DOWN, 4), (QUOTA, 1)):
        with serving([fault] * 40) as (url, requests), pytest.raises(Exception) as raised:
            run(url)
        assert 1 <= len(requests) <= most, (fault, len(requests))
        assert raised.value is not None


@pytest.mark.parametrize("name", RUNS)
def test_a_number_of_the_user_stays(name):
    """A client with a number of retries is not changed, and its tries are counted."""
    run, _ = RUNS[name]
    with serving([DOWN] * 40) as (url, requests), pytest.raises(Exception):  # noqa: B017
        run(url, max_retries=3)
    assert len(requests) == 4


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("fault", [QUOTA, RATE, TOO_LONG], ids=["quota", "load", "too long"])
def test_another_model_answers(name, fault):
    """A model out of quota, or refusing for load, or with too small a context, is replaced for this call."""
    run, done = RUNS[name]
    with serving([fault] * 40) as (first, requests), serving([done]) as (second, others):
        assert run(first, second) == "the end"
    assert len(requests) == 1
    assert [each["model"] for each in others] == ["second"]


def test_the_model_of_the_user_is_not_changed():
    """Retries are turned off on a copy."""
    with serving([DOWN, answer()]) as (url, _):
        own = client(url)
        model = OpenAIChatCompletionsModel("first", own)
        failures = openai_agents.Failures()
        asyncio.run(Runner.run(OpenAIAgent(name="a", model=failures.model(model)), "hello"))
    assert own.max_retries == 2


def test_a_tool_that_does_not_exist():
    """The model reads which tools there are, and the run goes on."""
    failures = openai_agents.Failures()

    @failures.function_tool
    def pay(order: int) -> str:
        """Pay."""
        return "receipt"

    with serving([answer(calls=[("play", "{}")]), answer()]) as (url, requests):
        model = OpenAIChatCompletionsModel("first", client(url))
        agent = OpenAIAgent(name="a", model=failures.model(model), tools=[pay])
        result = asyncio.run(Runner.run(agent, "hello", run_config=failures.run_config()))
    assert result.final_output == "the end"
    assert "There are: pay." in requests[1]["messages"][-1]["content"]


class Steps:
    """A scripted model for the drivers of the matrix: it raises the errors of a list, and then answers."""

    def __init__(self, *errors):
        self.errors, self.calls = list(errors), 0

    def step(self, read):
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "the end"


def with_langchain(model, second):
    driver = matrix.driver("langchain")
    middleware = langchain.Failures(fallback_models=[driver.Scripted(model=each) for each in second])
    agent = create_agent(driver.Scripted(model=model), [], middleware=[middleware])
    return agent.invoke({"messages": [{"role": "user", "content": "hello"}]})["messages"][-1].content


def with_langchain_async(model, second):
    driver = matrix.driver("langchain")
    middleware = langchain.Failures(fallback_models=[driver.Scripted(model=each) for each in second])
    agent = create_agent(driver.Scripted(model=model), [], middleware=[middleware])
    state = asyncio.run(agent.ainvoke({"messages": [{"role": "user", "content": "hello"}]}))
    return state["messages"][-1].content


def with_llama_index(model, second):
    driver = matrix.driver("llama_index")
    failures = llama_index.Failures(fallback_models=[driver.Scripted(model=each) for each in second])
    agent = FunctionAgent(tools=[], llm=failures.model(driver.Scripted(model=model)))

    async def work():
        return str(await agent.run("hello"))

    return asyncio.run(work())


def with_strands(model, second):
    driver = matrix.driver("strands")
    plugin = strands.Failures(fallback_models=[driver.Scripted(each) for each in second])
    agent = StrandsAgent(model=driver.Scripted(model), plugins=[plugin], callback_handler=None)
    return str(agent("hello")).strip()


def with_google_adk(model, second):
    driver = matrix.driver("google_adk")
    plugin = google_adk.Failures(
        fallback_models=[driver.Scripted(model="second", scripted=each) for each in second]
    )
    agent = LlmAgent(name="a", model=plugin.model(driver.Scripted(model="first", scripted=model)))

    async def work():
        runner = InMemoryRunner(agent=agent, app_name="shop", plugins=[plugin])
        await runner.session_service.create_session(app_name="shop", user_id="u", session_id="s")
        message = types.Content(role="user", parts=[types.Part(text="hello")])
        texts = [
            part.text
            async for event in runner.run_async(user_id="u", session_id="s", new_message=message)
            for part in event.content.parts
        ]
        return texts[-1]

    return asyncio.run(work())


def with_agent_framework(model, second):
    driver = matrix.driver("agent_framework")
    failures = agent_framework.Failures(fallback_models=[driver.Scripted(each) for each in second])
    agent = FrameworkAgent(client=failures.model(driver.Scripted(model)), middleware=[failures])
    return asyncio.run(agent.run("hello")).text


def with_agent_framework_streaming(model, second):
    driver = matrix.driver("agent_framework")
    failures = agent_framework.Failures(fallback_models=[driver.Scripted(each) for each in second])
    agent = FrameworkAgent(client=failures.model(driver.Scripted(model)), middleware=[failures])

    async def work():
        stream = agent.run("hello", stream=True)
        text = "".join([update.text async for update in stream])
        assert (await stream.get_final_response()).text == text
        return text

    return asyncio.run(work())


SCRIPTED = {
    "langchain": with_langchain,
    "langchain in an event loop": with_langchain_async,
    "llama_index": with_llama_index,
    "strands": with_strands,
    "google_adk": with_google_adk,
    "agent_framework": with_agent_framework,
    "agent_framework streaming": with_agent_framework_streaming,
}


@pytest.mark.parametrize("name", SCRIPTED)
def test_scripted_models_are_recovered(name):
    """In each framework a call that failed is made again, within the tries of one policy."""
    model = Steps(ServiceUnavailableError("later"), ConnectionResetError("cut"))
    assert SCRIPTED[name](model, []) == "the end"
    assert model.calls == 3
    for error, most in ((ServiceUnavailableError("down"), 4), (QuotaExceededError("pay"), 1)):
        model = Steps(*[error] * 40)
        with pytest.raises(Exception) as raised:
            SCRIPTED[name](model, [])
        assert 1 <= model.calls <= most, raised.value


@pytest.mark.parametrize("name", SCRIPTED)
@pytest.mark.parametrize("error", [QuotaExceededError, ContextTooLongError])
def test_another_scripted_model_answers(name, error):
    """The second model is asked if the first cannot answer."""
    first, second = Steps(*[error("no")] * 40), Steps()
    assert SCRIPTED[name](first, [second]) == "the end"
    assert (first.calls, second.calls) == (1, 1)


def test_a_cut_tool_call_is_asked_for_again():
    """LangChain alone ends the run with an empty text when the JSON of the only tool call was cut."""
    cut = InvalidToolCall(name="pay", args='{"order": 1', id="c", error="cut")
    broken = AIMessage("", invalid_tool_calls=[cut])
    for answers, text in (([broken, AIMessage("the end")], "the end"), ([broken] * 9, None)):
        model = GenericFakeChatModel(messages=iter(answers))
        agent = create_agent(model, [], middleware=[langchain.Failures()])
        question = {"messages": [{"role": "user", "content": "hello"}]}
        if text is None:
            with pytest.raises(FaultError, match="pay was cut"):
                agent.invoke(question)
        else:
            assert agent.invoke(question)["messages"][-1].content == text
