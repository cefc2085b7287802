"""CrewAI's Crew with a scripted model."""

import json
import os

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", CREWAI_TRACING_ENABLED="false", OTEL_SDK_DISABLED="true")

import pytest
from crewai import Agent, Crew, Task, hooks
from crewai.llms.base_llm import BaseLLM
from crewai.tools import tool
from pydantic import PrivateAttr

from amends.bindings.crewai import Failures
from amends.errors import NotFoundError, ServiceUnavailableError
from amends.testing import FakeClock
from tests.frameworks import catalogue, matrix, test_hooks


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
    """Loops are broken; results pass; the next run of the same object starts anew."""
    failures = Failures()
    catalogue.check_loop(runner(failures))
    catalogue.check_success(runner(failures))


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
    catalogue.check_replanned_values(
        lambda function, steps, **options: run_steps(function, steps, Failures(**options))
    )


def test_a_ledger_needs_a_scope():
    """One ledger never spans all users."""
    catalogue.check_scope(Failures)


def hooked(trial):
    """Run a crew with the hooks of CrewAI around a model and a tool, and return what the model read."""

    def pay(order: int) -> str:
        """Pay an order."""
        return trial.pay(order)

    def before(context):
        trial.notes.append(f"before {context.tool_name}")
        return False if trial.hook == test_hooks.BLOCK else None

    def note(name):
        def noted(context):
            trial.notes.append(name)

        return noted

    def guardrail(output):
        trial.notes.append("guardrail")
        return True, output.raw

    def caching(arguments, result):
        trial.notes.append(f"may be cached: {result}")
        return True

    noted = {
        "after_tool": note("after_tool"),
        "before_llm": note("before_llm"),
        "after_llm": note("after_llm"),
    }
    script = test_hooks.Script()
    made = tool("pay", max_usage_count=2)(pay)
    made.cache_function = caching
    if trial.ours is not None:
        made = trial.ours(Failures).guard(made)
    hooks.register_before_tool_call_hook(before)
    hooks.register_after_tool_call_hook(noted["after_tool"])
    hooks.register_before_llm_call_hook(noted["before_llm"])
    hooks.register_after_llm_call_hook(noted["after_llm"])
    try:
        agent = Agent(
            role="helper",
            goal="pay",
            backstory="none",
            llm=matrix.driver("crewai").Scripted.of(script),
            tools=[made],
            step_callback=lambda step: trial.notes.append(f"step {type(step).__name__}"),
        )
        task = Task(
            description="pay",
            expected_output="text",
            agent=agent,
            guardrail=guardrail,
            callback=lambda output: trial.notes.append("task"),
        )
        Crew(agents=[agent], tasks=[task], tracing=False).kickoff()
    finally:
        hooks.clear_all_global_hooks()
    trial.notes.append(f"used {made.current_usage_count}")
    return script.read


@pytest.mark.parametrize("hook", [test_hooks.PASS, test_hooks.BLOCK])
def test_the_hooks_of_the_user_run_as_they_do_alone(hook):
    """The hooks that run, the payments, and what the model reads are those of CrewAI alone."""
    test_hooks.check(hooked, hook)


def test_the_limit_of_uses_counts_calls():
    """A tool that is repeated because it only reads is used once."""
    outcomes = iter([ServiceUnavailableError("later"), "found", "found again"])

    @tool("act", max_usage_count=2)
    def act(order: int) -> str:
        """Look an order up."""
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    guarded = Failures(read_only=["act"]).guard(act)
    with FakeClock():
        assert [guarded.run(order=number) for number in (1, 2)] == ["found", "found again"]
    assert "usage limit" in guarded.run(order=3).message
