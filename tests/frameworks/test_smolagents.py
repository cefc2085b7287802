"""smolagents' ToolCallingAgent and CodeAgent with a scripted model."""

import pytest
from smolagents import ChatMessage, CodeAgent, LogLevel, Model, Tool, ToolCallingAgent, ToolOutput
from smolagents import tool as make_tool
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole

from amends.bindings.smolagents import Failures
from amends.errors import NotFoundError
from tests.frameworks import catalogue


class Act(Tool):
    """A tool that calls a function."""

    name, description, output_type = "act", "Acts on an order.", "string"
    inputs = {
        "order": {"type": "integer", "description": "the order"},
        "again": {"type": "string", "description": "why it is done once more", "nullable": True},
    }

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, order: int, again: str | None = None) -> str:
        return self.function(order)


class Scripted(Model):
    """A model that calls the given tool and then answers."""

    def __init__(self, steps):
        super().__init__()
        self.steps, self.number = iter([*steps, None]), 0

    def generate(self, messages, **options):
        self.number += 1
        asked = next(self.steps)
        calls = (
            [("final_answer", {"answer": "the end"})] if asked is None else [("act", each) for each in asked]
        )
        return ChatMessage(
            role=MessageRole.ASSISTANT,
            content="",
            tool_calls=[
                ChatMessageToolCall(
                    id=f"call-{self.number}-{index}",
                    type="function",
                    function=ChatMessageToolCallFunction(name=name, arguments=arguments),
                )
                for index, (name, arguments) in enumerate(calls)
            ],
        )


def run_steps(function, steps, failures):
    """Return the texts that the model got, and whether it answered."""
    agent = ToolCallingAgent(
        tools=[failures.guard(Act(function))],
        model=Scripted(steps),
        verbosity_level=LogLevel.OFF,
        max_steps=20,
    )
    texts, last = [], None
    for event in agent.run("act", stream=True):
        if isinstance(event, ToolOutput):
            last = event.output
            if not event.is_final_answer:
                texts.append(str(event.output))
    return texts, last == "the end"


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


def test_a_code_agent():
    """The code of the model gets the text as the result of the tool."""

    class Coder(Model):
        steps = iter(["<code>\nprint(act(order=17))\n</code>", "<code>\nfinal_answer('the end')\n</code>"])

        def generate(self, messages, **options):
            self.seen = str(messages)
            return ChatMessage(role=MessageRole.ASSISTANT, content=next(self.steps))

    def act(order):
        raise NotFoundError("No order 17")

    model = Coder()
    agent = CodeAgent(tools=[Failures().guard(Act(act))], model=model, verbosity_level=LogLevel.OFF)
    assert agent.run("act") == "the end"
    assert "Failed: NOT_FOUND" in model.seen


def test_a_tool_that_makes_an_image():
    """A text cannot be its result, so smolagents gets an exception with the text."""

    class Draw(Tool):
        name, description, output_type = "draw", "Draws.", "image"
        inputs = {"order": {"type": "integer", "description": "the order"}}

        def forward(self, order: int):
            raise KeyError("hunter2")

    with pytest.raises(RuntimeError, match="INTERNAL_ERROR"):
        Failures().guard(Draw())(order=17)


def test_a_tool_that_hangs():
    """The run goes on when the time of the tool is over."""

    def bind(**options):
        run = runner(Failures(**options))
        return lambda function, times: run(catalogue.plain(function), times)

    catalogue.check_hang(bind)


def pay_steps(function, steps, failures):
    """Return the texts that the model got from a tool that smolagents makes of a function."""
    function.__name__ = "act"
    agent = ToolCallingAgent(
        tools=[failures.guard(make_tool(function))],
        model=Scripted(steps),
        verbosity_level=LogLevel.OFF,
        max_steps=20,
    )
    texts = []
    for event in agent.run("act", stream=True):
        if isinstance(event, ToolOutput) and not event.is_final_answer:
            texts.append(str(event.output))
    return texts, True


def test_a_replanned_call_is_the_same_payment():
    """A default written out, an argument too many, a number as text: the model means the same order."""
    catalogue.check_replanned(
        lambda function, steps, **options: pay_steps(function, steps, Failures(**options)),
        refused=("again", "extra", "type"),
    )


def test_a_ledger_needs_a_scope():
    """One ledger never spans all users."""
    catalogue.check_scope(Failures)
