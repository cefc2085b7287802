"""The OpenAI Agents SDK with a scripted model."""

import asyncio
import json

from agents import (
    Agent,
    RunConfig,
    Runner,
    ToolGuardrailFunctionOutput,
    function_tool,
    set_tracing_disabled,
    tool_input_guardrail,
)
from agents.items import ModelResponse
from agents.models.interface import Model
from agents.usage import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from amends.bindings.openai_agents import Failures
from amends.effects import Effects
from tests.frameworks import catalogue

set_tracing_disabled(disabled=True)


class Scripted(Model):
    """A model that calls the tool a number of times and then answers."""

    def __init__(self, steps):
        self.steps = [[{"order": 17}]] * steps if isinstance(steps, int) else list(steps)
        self.number = 0

    async def get_response(self, *args, **options):
        if not self.steps:
            text = ResponseOutputText(text="the end", type="output_text", annotations=[])
            output = [
                ResponseOutputMessage(
                    id="m", content=[text], role="assistant", status="completed", type="message"
                )
            ]
        else:
            self.number += 1
            output = [
                ResponseFunctionToolCall(
                    name="act",
                    arguments=json.dumps(arguments),
                    call_id=f"c{self.number}-{index}",
                    type="function_call",
                )
                for index, arguments in enumerate(self.steps.pop(0))
            ]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args, **options):
        raise NotImplementedError


def runner(failures=None, make=None):
    def run(tool, times):
        made = failures or Failures()
        decorated = (make or (lambda function: made.function_tool(function, name_override="act")))(tool)
        agent = Agent(name="a", tools=[decorated], model=Scripted(times))
        result = asyncio.run(Runner.run(agent, "act", max_turns=20, run_config=RunConfig()))
        texts = [str(each.output) for each in result.new_items if each.type == "tool_call_output_item"]
        return texts, result.final_output == "the end"

    return run


def test_the_catalogue():
    """The model reads the same facts as everywhere, and the run goes on."""
    catalogue.check(runner())


def test_loops_and_success():
    """Loops are broken; results pass; the next run starts anew."""
    failures = Failures()
    catalogue.check_loop(runner(failures))
    catalogue.check_success(runner(failures))


def test_the_sdks_own_decorator():
    """`failure_error_function=failures.error_text` gives the model the same texts."""
    failures = Failures()

    def make(function):
        return function_tool(function, name_override="act", failure_error_function=failures.error_text)

    # The SDK formats the exception for its log before it asks for the text.
    catalogue.check(runner(failures, make), without=("unprintable exception",))


def test_recovery_and_ledger():
    """A tool that only reads is repeated; another one has its effect once."""
    catalogue.check_recovery_and_ledger(lambda **options: runner(Failures(**options)))


def test_a_tool_that_hangs():
    """The run goes on when the time of the tool is over."""
    catalogue.check_hang(lambda **options: runner(Failures(**options)))


def test_a_replanned_call_is_the_same_payment():
    """A default written out, an argument too many, a number as text: the model means the same order."""
    catalogue.check_replanned(lambda function, steps, **options: runner(Failures(**options))(function, steps))
    catalogue.check_replanned_values(
        lambda function, steps, **options: runner(Failures(**options))(function, steps)
    )


def test_a_ledger_needs_a_scope():
    """One ledger never spans all users."""
    catalogue.check_scope(Failures)


def test_refused_arguments_are_no_doubt():
    """Wrong arguments did not reach the tool, so nothing is in doubt."""
    catalogue.check_refused_arguments(
        lambda function, steps, **options: runner(Failures(**options))(function, steps)
    )


def test_a_tool_with_an_error_function_of_its_own():
    """A plain tool that is guarded raises its failures for the ledger; a text of its author is what the model reads."""

    def explain(context, error):
        return f"explained {type(error).__name__}"

    for made, says in (
        ({}, "EFFECT_UNKNOWN"),
        ({"failure_error_function": explain}, "explained InDoubtError"),
    ):
        calls = []

        def plain(order: int) -> str:
            """Act on an order."""
            calls.append(order)  # noqa: B023 - called in this pass of the loop
            raise ConnectionResetError("db.internal")

        with Effects("memory:") as effects:
            failures = Failures(effects=effects, scope="task")
            run = runner(
                failures,
                lambda function, made=made, failures=failures: failures.guard(
                    function_tool(function, name_override="act", **made)
                ),
            )
            texts, finished = run(plain, 2)
            assert [each.state for each in effects.list()] == ["doubt"]
        assert finished
        assert len(calls) == 1
        assert all(says in text for text in texts), texts


def test_a_guardrail_is_asked_before_the_tool_runs():
    """A guardrail of the tool blocks the payment, and the ledger has nothing."""
    paid = []

    @tool_input_guardrail
    def block(data):
        return ToolGuardrailFunctionOutput.reject_content("blocked")

    def act(order: int) -> str:
        """Pay."""
        paid.append(order)
        return "paid"

    with Effects("memory:") as effects:
        failures = Failures(effects=effects, scope="task")
        run = runner(
            failures,
            lambda function: failures.function_tool(
                function, name_override="act", tool_input_guardrails=[block]
            ),
        )
        texts, _ = run(act, 1)
        assert effects.list() == []
    assert (texts, paid) == (["blocked"], [])
