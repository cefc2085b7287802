"""
smolagents: a tool's failure becomes a text that the model can act on, and does not end the run.

    from smolagents import ToolCallingAgent, tool
    from amends.bindings.smolagents import Failures

    failures = Failures(read_only=["search"])
    agent = ToolCallingAgent(tools=[failures.guard(search), failures.guard(pay)], model=model)

It serves `CodeAgent` too: the code of the model gets the text as the tool's result. Failures are counted per task of an agent.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable

try:
    from smolagents import Model, MultiStepAgent, TaskStep, Tool
except ImportError as missing:
    raise ImportError("amends.bindings.smolagents needs smolagents: pip install smolagents") from missing

from amends.bindings.tool_arguments import by_function, by_schema
from amends.bindings.tool_calls import AGAIN, Caller, OneRun, ToolFailure, check_description

__all__ = ["Failures"]

_MEDIA = frozenset({"image", "audio"})
"""Types of output that smolagents makes an object of, so that a text cannot be one."""


class Failures(OneRun):
    """Makes tools whose failures are texts for the model."""

    def running(self) -> Caller:
        """
        Return the run that this code is in: the task that the agent works on.

        smolagents gives a tool nothing of its agent, which is looked up among the callers. A `CodeAgent` with a time limit for its
        code runs tools in a thread without it; their failures count together.
        """
        frame = inspect.currentframe()
        while frame is not None:
            agent = frame.f_locals.get("self")
            if isinstance(agent, MultiStepAgent):
                tasks = [step for step in agent.memory.steps if isinstance(step, TaskStep)]
                return Caller(run=tasks[-1] if tasks else None, context=agent)
            frame = frame.f_back
        return Caller()

    def guard(self, tool: Tool) -> Tool:
        """Return the tool as one that returns the text of its failures."""
        guarded, forward = copy.copy(tool), tool.forward

        @functools.wraps(forward)
        def call(*args: object, **kwargs: object) -> object:
            received = _received(tool, forward, args, kwargs)
            result = self.current.call(
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
            return self.current.check(tool.name, received)

        checking.forward = find_out
        return checking


def _received(
    tool: Tool, forward: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> dict[str, object]:
    """Return the arguments that the tool receives."""
    named = {**dict(zip(tool.inputs, args, strict=False)), **kwargs}
    return by_function(forward, by_schema({"properties": tool.inputs}, named))
