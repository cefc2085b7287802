"""
An agent with two tools: one that only reads is repeated, the other one pays once although the model calls it twice.

    python examples/agent_with_ledger.py

It needs `pip install amends`. The model is a script; docs/agent-frameworks.md shows the same for real frameworks.
"""

import logging

from amends.bindings.tool_calls import ToolCalls, ToolFailure
from amends.effects import Effects
from amends.errors import ServiceUnavailableError

logging.disable()
answers = iter([ServiceUnavailableError("The catalogue restarts", retry_after=0.1), ["book"]])
payments: list[str] = []


def search(query: str) -> list[str]:
    """Search the catalogue."""
    answer = next(answers)
    if isinstance(answer, Exception):
        raise answer
    return answer


def pay(order: str) -> str:
    """Pay an order. The answer of the payment service is lost."""
    payments.append(order)
    raise ConnectionResetError("connection to payments.internal lost")


def main() -> None:
    with Effects("memory:") as effects:  # in a real program: sqlite:///effects.db
        run = ToolCalls(effects=effects, scope="task-42", read_only=["search"]).run("run-1")
        print(run.call("search", {"query": "book"}, lambda: search("book")))
        for _ in range(2):  # the model loses the answer, plans again and makes a new call
            result = run.call("pay", {"order": "17"}, lambda: pay("17"))
            assert isinstance(result, ToolFailure)
            print(result.fault.code, result.fault.executed)
        print(len(payments), "payment")
        doubtful = effects.pending()[0]
        effects.verify(doubtful.key, happened=True, outcome="receipt 1")  # a person looked it up
        print(run.call("pay", {"order": "17"}, lambda: pay("17")), len(payments))


main()
# > ['book']
# > EFFECT_UNKNOWN maybe
# > EFFECT_UNKNOWN maybe
# > 1 payment
# > receipt 1 1
