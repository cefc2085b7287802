"""
smolagents: a tool's failure becomes a text that the model can act on, and does not end the run.

    from smolagents import ToolCallingAgent, tool
    from amends.bindings.smolagents import Failures

    failures = Failures(read_only=["search"])
    agent = ToolCallingAgent(tools=[failures.guard(search), failures.guard(pay)], model=model)

It serves `CodeAgent` too: the code of the model gets the text as the tool's result. smolagents does not say which run a call
belongs to: use one `Failures` for each run, or give it the run's key with `run=`.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable

try:
    from smolagents import Model, Tool
except ImportError as missing:
    raise ImportError("amends.bindings.smolagents needs smolagents: pip install smolagents") from missing

from amends.bindings.tool_arguments import by_function, by_schema
from amends.bindings.tool_calls import AGAIN, OneRun, ToolFailure, check_description

__all__ = ["Failures"]

_MEDIA = frozenset({"image", "audio"})
"""Types of output that smolagents makes an object of, so that a text cannot be one."""


class Failures(OneRun):
    """Makes tools whose failures are texts for the model."""

    def guard(self, tool: Tool) -> Tool:
        """Return the tool as one that returns the text of its failures."""
        guarded, forward = copy.copy(tool), tool.forward

        @functools.wraps(forward)
        def call(*args: object, **kwargs: object) -> object:
            received = _received(tool, forward, args, kwargs)
            result = self.calls.run(self.key).call(
                tool.name, received, lambda: forward(*args, **kwargs), takes_again=AGAIN in received
            )
            if not isinstance(result, ToolFailure):
                return result
            if tool.output_type in _MEDIA:
                raise RuntimeError(result.text)
            return result.text

        guarded.forward = call
        return guarded

    def model(self, model: Model) -> Model:
        """Return a copy of a model whose calls are recovered within bounds, in place of smolagents' own repeats."""
        return self.calls.models.recovered(model, plain=["generate"])

    def check(self, tool: Tool) -> Tool:
        """
        Return a tool that finds out whether an earlier call of `tool` happened: `tools=[pay, failures.check(pay)]`.

        The effect of the tool is declared with a verification.
        """
        checking, forward = copy.copy(tool), tool.forward
        checking.name = self.calls.offer_check(tool.name)
        checking.description, checking.output_type = check_description(tool.name), "string"

        def find_out(*args: object, **kwargs: object) -> str:
            received = _received(tool, forward, args, kwargs)
            return self.calls.run(self.key).check(tool.name, received)

        checking.forward = find_out
        return checking


def _received(
    tool: Tool, forward: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> dict[str, object]:
    """Return the arguments that the tool receives."""
    named = {**dict(zip(tool.inputs, args, strict=False)), **kwargs}
    return by_function(forward, by_schema({"properties": tool.inputs}, named))
