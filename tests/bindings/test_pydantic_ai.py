"""
Tests of the pydantic-ai binding with its own test models: the model gets a text it can act on, and the run goes on.
"""

from dataclasses import dataclass

import pytest
from fastmcp import FastMCP
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import (
    ModelHTTPError,
    ToolFailed,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
    UserError,
)
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import FunctionToolset, WrapperToolset

from amends.bindings.fastmcp import guard
from amends.bindings.pydantic_ai import Failures
from amends.errors import RateLimitedError, ServiceUnavailableError, ValidationError
from amends.testing import FakeClock
from amends.tools import failure_text
from tests.foreign.test_leaks import POISONS, poisoned


def agent_with(work, *, model=None, **options):
    """Return an agent with one tool that calls `work`."""
    agent = Agent(model or TestModel(), capabilities=[Failures()], **options)

    @agent.tool_plain
    def book(day: str) -> str:
        return work(day)

    return agent


def raises(error):
    def work(day):
        raise error

    return work


def tool_returns(result):
    """Return the tool results of a run as (outcome, text for the model)."""
    return [
        (part.outcome, part.content)
        for message in result.all_messages()
        for part in message.parts
        if part.part_kind == "tool-return"
    ]


async def test_without_the_capability_an_exception_ends_the_run():
    """This is the behaviour that the binding replaces."""
    agent = Agent(TestModel())
    agent.tool_plain(raises(ValueError("hunter2")), name="book")
    with pytest.raises(ValueError, match="hunter2"):
        await agent.run("hi")


async def test_a_typed_error_reaches_the_model_as_text():
    """The tool result is a failed one, and the run goes on to its output."""
    error = RateLimitedError("Slow down", retry_after=5)
    result = await agent_with(raises(error)).run("hi")
    assert tool_returns(result) == [("failed", failure_text(error))]
    assert result.output


async def test_the_text_of_a_foreign_exception_is_not_shown(caplog):
    """It is logged, with the name of the tool."""
    result = await agent_with(raises(OSError("db-7.acme.internal"))).run("hi")
    ((outcome, text),) = tool_returns(result)
    assert outcome == "failed"
    assert "acme" not in text
    (record,) = [each for each in caplog.records if each.name == "amends.tools"]
    assert "acme" in str(record.exc_info[1])
    assert "book" in record.getMessage()


async def test_poisoned_exceptions_are_not_shown():
    """No attribute of them reaches the model."""
    current = []
    agent = agent_with(lambda day: raises(current[-1])(day))
    for number in range(60):
        poison = POISONS[number % len(POISONS)]
        current.append(poisoned(f"acme_{number}.Own", poison))
        assert "acme" not in str((await agent.run("hi")).all_messages())


async def test_a_correctable_failure_is_a_retry():
    """The model gets the field and the suggestion, and sends another request."""
    seen = []

    def model(messages, info):
        last = messages[-1].parts[-1]
        if last.part_kind == "user-prompt":
            return ModelResponse([ToolCallPart("book", {"day": "someday"})])
        if last.outcome == "retried":
            seen.append(last.content)
            return ModelResponse([ToolCallPart("book", {"day": "Monday"})])
        return ModelResponse([TextPart(f"booked {last.content}")])

    def work(day):
        if day == "someday":
            raise ValidationError("No such day", field="/day", suggestions=["Name a weekday"])
        return day

    result = await agent_with(work, model=FunctionModel(model)).run("hi")
    assert result.output == "booked Monday"
    assert "field: /day" in str(seen)
    assert "suggestion: Name a weekday" in str(seen)


@pytest.mark.parametrize("retries", [0, 1, 3])
async def test_spent_retries_do_not_end_the_run(retries):
    """The last failure is a failed result; a ModelRetry would raise UnexpectedModelBehavior."""
    agent = agent_with(raises(ValidationError("No such day")), retries=retries)
    assert [outcome for outcome, _ in tool_returns(await agent.run("hi"))] == ["retried"] * retries + [
        "failed"
    ]
    with pytest.raises(UnexpectedModelBehavior):
        bare = Agent(TestModel(), retries=retries)
        bare.tool_plain(raises(ModelRetry("No such day")), name="book")
        await bare.run("hi")


async def test_tools_of_toolsets_and_async_tools():
    """All kinds of tools are covered."""
    toolset = FunctionToolset()

    @toolset.tool
    async def look(ctx: RunContext, day: str) -> str:
        raise ServiceUnavailableError("Closed")

    agent = Agent(TestModel(), toolsets=[toolset], capabilities=[Failures()])
    ((outcome, text),) = tool_returns(await agent.run("hi"))
    assert (outcome, "SERVICE_UNAVAILABLE" in text) == ("failed", True)
    async with agent.run_stream("hi") as streamed:
        await streamed.get_output()
    assert "SERVICE_UNAVAILABLE" in str(streamed.all_messages())


async def test_an_agent_as_a_tool_fails_like_any_other():
    """The inner model was rate limited; the outer one does not get the provider's body."""
    error = ModelHTTPError(429, "inner", {"error": "acme is over quota"})
    ((outcome, text),) = tool_returns(await agent_with(raises(error)).run("hi"))
    assert outcome == "failed"
    assert "acme" not in text


@pytest.mark.parametrize("error", [UserError("wrong"), UsageLimitExceeded("enough")])
async def test_exceptions_of_the_framework_end_the_run(error):
    """Usage limits and user errors are for the program that runs the agent."""
    with pytest.raises(type(error)):
        await agent_with(raises(error)).run("hi")


@pytest.mark.parametrize(
    ("error", "outcome"), [(ModelRetry("again"), "retried"), (ToolFailed("no"), "failed")]
)
async def test_exceptions_of_the_framework_for_the_model_are_kept(error, outcome):
    """The tool's author meant ModelRetry and ToolFailed for the model."""
    current = [error]

    def work(day):
        if current:
            raise current.pop()
        return "fine"

    results = tool_returns(await agent_with(work).run("hi"))
    assert results[0][0] == outcome
    assert error.message in results[0][1]


@dataclass
class _Broken(WrapperToolset):
    async def call_tool(self, *args):
        await super().call_tool(*args)
        raise OSError("db-7.acme.internal")


class _Other(AbstractCapability):
    """A capability whose toolset fails around the tool."""

    def get_wrapper_toolset(self, toolset):
        return _Broken(toolset)


async def test_the_toolset_of_another_capability():
    """Its failures are texts, too, when it is around the tools that are covered."""
    agent = Agent(TestModel(), capabilities=[_Other(), Failures()])
    agent.tool_plain(lambda: "fine", name="book")
    ((outcome, text),) = tool_returns(await agent.run("hi"))
    assert outcome == "failed"
    assert "acme" not in text


async def test_an_mcp_tool_that_only_reads_is_repeated():
    """Its annotations say so; another one is called once."""
    calls = []
    server = FastMCP("shop")

    def failing(name):
        def tool() -> str:
            calls.append(name)
            if calls.count(name) == 1:
                raise ServiceUnavailableError("Closed", retry_after=1)
            return "open"

        return tool

    server.tool(failing("look"), name="look", annotations={"readOnlyHint": True})
    server.tool(failing("buy"), name="buy", annotations={"readOnlyHint": False})
    guard(server)
    async with MCPToolset(server) as toolset:
        agent = Agent(TestModel(), toolsets=[toolset], capabilities=[Failures()])
        with FakeClock():
            results = tool_returns(await agent.run("hi"))
    assert sorted(calls) == ["buy", "look", "look"]
    assert sorted(outcome for outcome, _ in results) == ["failed", "success"]
