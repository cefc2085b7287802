"""What the function given as `scope` reads in each framework."""

from types import SimpleNamespace

import pytest

from amends.effects import Effects
from tests.frameworks.matrix import Call, driver
from tests.frameworks.test_matrix import NAMES

READS = {
    "agent_framework": ("FunctionInvocationContext", {"session": "ann/s"}),
    "claude_agent_sdk": ("NoneType", {}),
    "google_adk": ("Context", {"session": "shop/s", "user": "ann"}),
    "langchain": ("ToolRuntime", {"thread": "s", "user": "ann"}),
    "llama_index": ("NoneType", {}),
    "openai_agents": ("ToolContext", {"thread": "ann/s"}),
    "pydantic_ai": ("RunContext", {"thread": "ann/s"}),
    "smolagents": ("ToolCallingAgent", {}),
    "strands": ("ExecuteToolContext", {}),
}


class Script:
    """Pays once, and answers."""

    def __init__(self):
        self.steps = [[Call("pay", {"order": 17})]]

    def step(self, read):
        return self.steps.pop(0) if self.steps else "the end"


@pytest.mark.parametrize("name", NAMES)
def test_the_function_reads_who_makes_the_call(name):
    """The conversation as the framework names it, and the framework's own context."""
    callers = []

    def scope(caller):
        callers.append(caller)
        return "task"

    def pay(order: int, currency: str = "EUR") -> str:
        """Pay an order."""
        return "receipt"

    with Effects("memory:") as effects:
        case = SimpleNamespace(
            alone=False,
            checks=False,
            model=Script(),
            helper=None,
            user="ann",
            session="s",
            pay=pay,
            options=lambda _=None: {"effects": effects, "scope": scope},
        )
        driver(name).run(case)
        (effect,) = effects.list()
    assert effect.scope == "task"
    context, members = READS[name]
    caller = callers[-1]
    assert type(caller.context).__name__ == context
    assert {each: getattr(caller, each) for each in members} == members
    assert caller.run is not None or name == "claude_agent_sdk"  # no client of the SDK serves here
