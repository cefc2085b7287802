"""CrewAI's Crew with a scripted model."""

import json
import os

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", CREWAI_TRACING_ENABLED="false", OTEL_SDK_DISABLED="true")

from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM
from crewai.tools import tool
from pydantic import PrivateAttr

from amends.bindings.crewai import Failures
from amends.errors import NotFoundError
from tests.frameworks import catalogue


class Scripted(BaseLLM):
    """A model that makes the given calls and then answers."""

    _steps: list = PrivateAttr(default_factory=list)
    _number: int = PrivateAttr(default=0)

    def call(self, messages, tools=None, callbacks=None, available_functions=None, **options):
        self._number += 1
        if not self._steps:
            return "the end"
        return [
            {
                "id": f"call-{self._number}-{index}",
                "type": "function",
                "function": {"name": "act", "arguments": json.dumps(arguments)},
            }
            for index, arguments in enumerate(self._steps.pop(0))
        ]

    def supports_function_calling(self):
        return True


def run_steps(function, steps, failures, *, cache=False):
    """Return the texts that the model got, and whether it answered."""
    seen = []

    class Recording(Scripted):
        def call(self, messages, *args, **options):
            seen[:] = [each["content"] for each in messages if each.get("role") == "tool"]
            return super().call(messages, *args, **options)

    function.__doc__ = "Act on an order."
    model = Recording(model="scripted")
    model._steps = list(steps)
    made = tool("act")(function)
    agent = Agent(
        role="helper",
        goal="act",
        backstory="none",
        llm=model,
        tools=[failures.guard(made) if failures else made],
        cache=cache,
        max_iter=30,
    )
    task = Task(description="act", expected_output="text", agent=agent)
    output = Crew(agents=[agent], tasks=[task], cache=cache, tracing=False).kickoff()
    return list(seen), output.raw == "the end"


def runner(failures=None):
    return lambda function, times: run_steps(function, [[{"order": 17}]] * times, failures or Failures())


def test_the_catalogue():
    """The model reads the same facts as everywhere, and the run goes on."""
    catalogue.check(runner())


def test_loops_and_success():
    """Loops are broken; results pass."""
    catalogue.check_loop(runner())
    catalogue.check_success(runner())


def test_recovery_and_ledger():
    """A tool that only reads is repeated; another one has its effect once."""
    catalogue.check_recovery_and_ledger(lambda **options: runner(Failures(**options)))


def test_the_ledger_hands_out_an_outcome():
    """Two equal calls at once have one effect; a repeat on purpose needs a reason."""
    catalogue.check_ledger_answers(
        lambda function, steps, **options: run_steps(function, steps, Failures(**options)), parallel=False
    )


def test_failures_are_not_cached():
    """CrewAI caches results of equal calls, but a failure is no result."""
    calls = []

    def act(order: int) -> str:
        calls.append(order)
        if len(calls) == 1:
            raise NotFoundError("There is no such order")
        return "found"

    steps = [[{"order": 17}]] * 3
    texts, _ = run_steps(act, steps, Failures(), cache=True)
    assert ["NOT_FOUND" in text for text in texts] == [True, False, False]
    assert len(calls) == 2


def test_a_tool_that_hangs():
    """The run goes on when the time of the tool is over."""
    catalogue.check_hang(lambda **options: runner(Failures(**options)))


def test_a_replanned_call_is_the_same_payment():
    """A default written out, an argument too many, a number as text: the model means the same order."""
    catalogue.check_replanned(
        lambda function, steps, **options: run_steps(function, steps, Failures(**options))
    )


def test_a_ledger_needs_a_scope():
    """One ledger never spans all users."""
    catalogue.check_scope(Failures)
