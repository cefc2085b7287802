"""pydantic-ai's Agent with its FunctionModel."""

import asyncio
from datetime import date

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, DeferredToolResults, ModelRetry, Tool
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturn
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.toolsets import FunctionToolset

from amends.bindings.pydantic_ai import Failures
from amends.effects import Effects
from amends.errors import NotFoundError, ServiceUnavailableError
from tests.frameworks import catalogue


def scripted(steps):
    """Return a model that makes the given calls and then answers."""
    left = iter(steps)

    def answer(messages, info):
        calls = [ToolCallPart("act", each) for each in next(left, ())]
        return ModelResponse(calls or [TextPart("the end")])

    return FunctionModel(answer)


def parts_of(result):
    """Return the tool results that the model got."""
    return [
        part for message in result.all_messages() for part in message.parts if part.part_kind == "tool-return"
    ]


def run_steps(function, steps, failures, **options):
    """Return the texts that the model got, and whether it answered."""
    tool = function if isinstance(function, Tool) else Tool(function, name="act")
    agent = Agent(scripted(steps), tools=[tool], capabilities=[failures] if failures else [], **options)
    result = agent.run_sync("act")
    parts = parts_of(result)
    assert len({each.tool_call_id for each in parts}) == len(parts)
    return [str(each.content) for each in parts], result.output == "the end"


def runner(failures=None):
    return lambda function, times: run_steps(function, [[{"order": 17}]] * times, failures or Failures())


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
    """Two equal calls at once have one effect and a result each; a repeat on purpose needs a reason."""
    catalogue.check_ledger_answers(
        lambda function, steps, **options: run_steps(function, steps, Failures(**options))
    )


def test_the_program_gets_the_fault():
    """`on_failure` is called with the fault and the exception of the tool."""
    seen = []

    def act(order: int) -> str:
        raise NotFoundError("There is no such order")

    texts, _ = run_steps(act, [[{"order": 17}]], Failures(on_failure=seen.append))
    (failure,) = seen
    assert (failure.tool, failure.fault.code, failure.text) == ("act", "NOT_FOUND", texts[0])
    assert isinstance(failure.error, NotFoundError)


def test_a_tool_that_asks_a_person():
    """The question reaches the program, the ledger frees the key, and the answer runs the tool once."""
    done = []

    def act(ctx, order: int) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        done.append(order)
        return "done"

    with Effects("memory:") as effects:
        agent = Agent(
            scripted([[{"order": 17}]]),
            tools=[Tool(act, name="act", takes_ctx=True)],
            capabilities=[Failures(effects=effects, scope="task")],
            output_type=[str, DeferredToolRequests],
        )
        asked = agent.run_sync("act")
        (call,) = asked.output.approvals
        assert effects.list() == []
        answered = agent.run_sync(
            message_history=asked.all_messages(),
            deferred_tool_results=DeferredToolResults(approvals={call.tool_call_id: True}),
        )
        assert [each.state for each in effects.list()] == ["done"]
    assert (done, answered.output) == ([17], "the end")


def test_a_retry_that_the_tool_asks_for():
    """ModelRetry asks the model to call the tool anew, with its author's text: the ledger frees the key."""
    outcomes = ["Not now, call again", "done"]

    def act(order: int) -> str:
        if outcomes[0] != "done":
            raise ModelRetry(outcomes.pop(0))
        return outcomes[0]

    with Effects("memory:") as effects:
        texts, finished = run_steps(act, [[{"order": 17}]] * 2, Failures(effects=effects, scope="task"))
    assert "Not now" in texts[0]
    assert (texts[1], finished) == ("done", True)


def test_a_tool_that_times_out_may_have_had_its_effect():
    """pydantic-ai asks the model to try again after a time-out; the ledger does not run the tool again."""
    calls = []

    async def act(order: int) -> str:
        calls.append(order)
        await asyncio.sleep(60)
        return "done"

    with Effects("memory:") as effects:
        texts, finished = run_steps(
            Tool(act, name="act", timeout=0.01),
            [[{"order": 17}]] * 2,
            Failures(effects=effects, scope="task"),
        )
        assert [each.state for each in effects.list()] == ["doubt"]
    assert (calls, finished) == ([17], True)
    assert all("may have had its effect" in each for each in texts)
    texts, finished = run_steps(Tool(act, name="act", timeout=0.01), [[{"order": 17}]] * 7, Failures())
    assert "TIMEOUT" in texts[0]
    assert (len(calls), finished) == (6, True)


class Order(BaseModel):
    """An argument that is no plain value."""

    number: int
    day: date


def test_results_and_arguments_that_are_no_text():
    """A model as an argument has a key; a result of the framework's own type comes out of the ledger as one."""
    done = []

    def act(order: Order) -> ToolReturn:
        done.append(order)
        raise ConnectionResetError

    steps = [[{"order": {"number": 17, "day": "2026-11-18"}}]]
    with Effects("memory:") as effects:
        run_steps(act, steps, Failures(effects=effects, scope="task"))
        (effect,) = effects.pending()
        returned = ToolReturn(return_value={"receipt": 17}, content="a picture", metadata={"id": 1})
        effects.verify(effect.key, happened=True, outcome=returned)
        agent = Agent(
            scripted(steps),
            tools=[Tool(act, name="act")],
            capabilities=[Failures(effects=effects, scope="task")],
        )
        result = agent.run_sync("act")
    assert len(done) == 1
    (part,) = parts_of(result)
    assert (part.content, part.metadata) == ({"receipt": 17}, {"id": 1})
    assert "a picture" in str(result.all_messages())


def test_arguments_that_do_not_fit():
    """The model gets pydantic-ai's own text while there are retries; then a failed result, and the run goes on."""

    def act(order: int) -> str:
        raise AssertionError("not called")

    wrong = [[{"order": "many"}]] * 6
    texts, finished = run_steps(act, wrong, Failures(), retries=1)
    assert finished
    assert "Failed: VALIDATION_ERROR" in texts[1]
    assert "closed for this run" in texts[-1]
    with pytest.raises(UnexpectedModelBehavior):
        Agent(scripted(wrong), tools=[Tool(act, name="act")], retries=1).run_sync("act")


def test_tools_of_toolsets():
    """A tool of a toolset is recovered under the name that the model calls it by."""
    outcomes = iter([ServiceUnavailableError("later", retry_after=0.01), "found"])
    toolset = FunctionToolset()

    @toolset.tool_plain
    def look(order: int) -> str:
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    agent = Agent(
        scripted([[{"order": 17}]]),
        toolsets=[toolset.renamed({"act": "look"})],
        capabilities=[Failures(read_only=["act"])],
    )
    assert [each.content for each in parts_of(agent.run_sync("act"))] == ["found"]


def test_a_tool_that_hangs():
    """The run goes on when the time of the tool is over."""
    catalogue.check_hang(lambda **options: runner(Failures(**options)))


def test_a_replanned_call_is_the_same_payment():
    """A default written out, an argument too many, a number as text: the model means the same order."""
    catalogue.check_replanned(
        lambda function, steps, **options: run_steps(function, steps, Failures(**options)),
        refused=("again", "extra"),
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
