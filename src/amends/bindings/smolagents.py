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

try:
    from smolagents import Tool
except ImportError as missing:
    raise ImportError("amends.bindings.smolagents needs smolagents: pip install smolagents") from missing

from amends.bindings.tool_arguments import by_function, by_schema
from amends.bindings.tool_calls import AGAIN, OneRun, ToolFailure

__all__ = ["Failures"]

_MEDIA = frozenset({"image", "audio"})
"""Types of output that smolagents makes an object of, so that a text cannot be one."""


class Failures(OneRun):
    """Makes tools whose failures are texts for the model."""

    def guard(self, tool: Tool) -> Tool:
        """Return the tool as one that returns the text of its failures."""
        guarded, forward = copy.copy(tool), tool.forward

        def call(*args: object, **kwargs: object) -> object:
            given = {**dict(zip(tool.inputs, args, strict=False)), **kwargs}
            received = by_function(forward, by_schema({"properties": tool.inputs}, given))
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
