"""Microsoft Agent Framework's agent with a scripted model."""

import asyncio

import pytest
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    FunctionMiddleware,
    Message,
    tool,
)

from amends.bindings.agent_framework import Failures
from amends.effects import Effects
from tests.frameworks import catalogue


class Scripted(FunctionInvocationLayer, BaseChatClient):
    """A model that calls the tool a number of times and then answers."""

    def __init__(self, steps):
        super().__init__()
        self.steps, self.number = iter(steps), 0

    async def _inner_get_response(self, *, messages, stream, options, **more):
        asked = next(self.steps, ())
        self.number += 1
        contents = [
            Content.from_function_call(f"call-{self.number}-{index}", "act", arguments=arguments)
            for index, arguments in enumerate(asked)
        ]
        return ChatResponse(
            messages=[Message("assistant", contents or [Content.from_text("the end")])],
            response_id=str(self.number),
        )


def run_steps(function, steps, failures):
    """Return the texts that the model got, and its last answer."""

    async def work():
        made = tool(function, name="act", approval_mode="never_require")
        agent = Agent(client=Scripted(steps), tools=[made], middleware=[failures])
        response = await agent.run("act")
        texts = [
            str(part.result)
            for message in response.messages
            for part in message.contents
            if part.type == "function_result"
        ]
        return texts, response.text.endswith("the end")

    return asyncio.run(work())


def runner(failures=None):
    def run(function, times):
        return run_steps(function, [[{"order": 17}]] * times, failures or Failures())

    return run


def test_the_catalogue():
    """The model reads the same facts as everywhere, and the run goes on."""
    catalogue.check(runner())


def test_loops_and_success():
    """Loops are broken; results pass; the next run starts anew."""
    failures = Failures()
    catalogue.check_loop(runner(failures))
    catalogue.check_success(runner(failures))


def test_recovery_and_ledger():
    """A tool that only reads is repeated; another one has its effect once."""
    catalogue.check_recovery_and_ledger(lambda **options: runner(Failures(**options)))


def test_the_ledger_hands_out_an_outcome():
    """Two equal calls at once have one effect and one result; a repeat on purpose needs a reason."""
    catalogue.check_ledger_answers(
        lambda function, steps, **options: run_steps(function, steps, Failures(**options))
    )


def test_a_tool_that_hangs():
    """The run goes on when the time of the tool is over."""
    catalogue.check_hang(lambda **options: runner(Failures(**options)))


def test_a_replanned_call_is_the_same_payment():
    """A default written out, an argument too many, a number as text: the model means the same order."""
    catalogue.check_replanned(
        lambda function, steps, **options: run_steps(function, steps, Failures(**options))
    )
    catalogue.check_replanned_values(
        lambda function, steps, **options: run_steps(function, steps, Failures(**options))
    )


def test_a_ledger_needs_a_scope():
    """One ledger never spans all users."""
    catalogue.check_scope(Failures)


def test_refused_arguments_are_no_doubt():
    """Wrong arguments did not reach the tool, so nothing is in doubt."""
    catalogue.check_refused_arguments(
        lambda function, steps, **options: run_steps(function, steps, Failures(**options))
    )


class Blocks(FunctionMiddleware):
    """A guardrail of another author: it answers for the tool."""

    async def process(self, context, call_next):
        context.result = "blocked"


@pytest.mark.parametrize("first", [True, False])
def test_a_guardrail_is_asked_before_the_tool_runs(first):
    """A middleware that holds the payment back is asked, before ours and after it."""
    paid = []

    def act(order: int) -> str:
        """Pay."""
        paid.append(order)
        return "paid"

    async def work(ours):
        agent = Agent(
            client=Scripted([[{"order": 17}]]),
            tools=[tool(act, name="act", approval_mode="never_require")],
            middleware=[ours, Blocks()] if first else [Blocks(), ours],
        )
        response = await agent.run("act")
        return [
            str(part.result)
            for message in response.messages
            for part in message.contents
            if part.type == "function_result"
        ]

    with Effects("memory:") as effects:
        assert asyncio.run(work(Failures(effects=effects, scope="task"))) == ["blocked"]
    assert paid == []
