"""A model calls a tool that does not exist, in each framework, with a ledger."""

from types import SimpleNamespace

import pytest

from amends.effects import Effects
from tests.frameworks.matrix import Call, driver
from tests.frameworks.test_matrix import NAMES

ENDS = {"pydantic_ai"}
"""It ends the run after the retries of the agent, of which there is one, so the model makes one such call."""
SILENT = {"agent_framework", "claude_agent_sdk", "llama_index"}
"""Their own texts do not name the tools that there are, and nothing of ours is asked about such a call."""


class Script:
    """Calls a tool that does not exist, and answers."""

    def __init__(self, calls):
        self.left, self.read = calls, []

    def step(self, read):
        self.read = read
        self.left -= 1
        return [Call("play", {"order": 17})] if self.left >= 0 else "the end"


@pytest.mark.parametrize("name", NAMES)
def test_the_run_goes_on_and_nothing_is_in_doubt(name):
    """The model reads that there is no such tool, both times, and the run reaches its end."""
    calls = 1 if name in ENDS else 2
    script, paid = Script(calls), []

    def pay(order: int, currency: str = "EUR") -> str:
        """
        Pay an order.

        Args:
            order: the order.
            currency: the currency.
        """
        paid.append(order)
        return "receipt"

    with Effects("memory:") as effects:
        case = SimpleNamespace(
            alone=False,
            checks=False,
            model=script,
            helper=None,
            user="ann",
            session="s",
            pay=pay,
            options=lambda scope=None: {"effects": effects, **({} if scope is None else {"scope": scope})},
        )
        driver(name).run(case)
        assert effects.list() == []
    assert (paid, script.left) == ([], -1)
    assert len(script.read) == calls, script.read
    for text in script.read:
        assert "EFFECT_UNKNOWN" not in text
        assert "ALREADY_DONE" not in text
        assert name in SILENT or "pay" in text, text
