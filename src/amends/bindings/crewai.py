"""
CrewAI: a tool's failure becomes a text that the model can act on.

    from crewai import Agent
    from amends.bindings.crewai import Failures

    failures = Failures(read_only=["search"])
    agent = Agent(role=role, goal=goal, backstory=story, tools=[failures.guard(search), failures.guard(pay)])

The failure is CrewAI's own `ToolFailure`, so events, `TaskOutput.tool_failures` and `tool_failure_policy` know of it. Failures are
counted per kickoff of a crew. An agent without a crew has no run of its own: make one `Failures` for it, or pass `run=`.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable

try:
    from crewai.llms.base_llm import BaseLLM
    from crewai.tools import BaseTool
    from crewai.tools.tool_failure import ToolFailure as CrewFailure
    from crewai.tools.tool_failure import ToolFailureReason
    from crewai.utilities.crew.crew_context import get_crew_context
    from pydantic import PrivateAttr
except ImportError as missing:
    raise ImportError("amends.bindings.crewai needs CrewAI: pip install 'crewai>=1.15'") from missing

from amends.bindings.tool_arguments import by_model
from amends.bindings.tool_calls import (
    AGAIN,
    Caller,
    OneRun,
    ReturnedError,
    Run,
    ToolFailure,
    check_description,
)

__all__ = ["Failures"]


class Failures(OneRun):
    """Makes tools whose failures are texts for the model."""

    def guard(self, tool: BaseTool) -> BaseTool:
        """Return the tool as one that returns its failures."""
        return _Guarded.around(tool, self)

    def model(self, model: BaseLLM) -> BaseLLM:
        """Return a copy of a model whose calls are recovered within bounds: `Agent(llm=failures.model(LLM(...)), ...)`."""
        return self.calls.models.recovered(model, plain=["call"], awaited=["acall"], method_of=_unrepeated)

    def running(self) -> Caller:
        """Return the crew's run that this code is in: CrewAI makes a new context at each kickoff."""
        context = get_crew_context()
        return Caller(run=context, context=context)

    def check(self, tool: BaseTool) -> BaseTool:
        """
        Return a tool that finds out whether an earlier call of `tool` happened: `tools=[pay, failures.check(pay)]`.

        The effect of the tool is declared with a verification.
        """
        return _Check.of(tool, self)


def _unrepeated(model: BaseLLM, name: str) -> Callable[..., object]:
    """Return a method of a model without CrewAI's own repeats of calls that were refused for their rate."""
    method: Callable[..., object] = getattr(model, name)
    original = getattr(method, "__wrapped__", None)
    repeats = getattr(method, "_crewai_rate_limit_wrapped", False) is True
    return functools.partial(original, model) if repeats and callable(original) else method


class _Check(BaseTool):
    """A tool that finds out whether an earlier call of another one happened."""

    _checked: str = PrivateAttr()
    _failures: Failures = PrivateAttr()

    @classmethod
    def of(cls, tool: BaseTool, failures: Failures) -> _Check:
        checking = cls(
            name=failures.calls.offer_check(tool.name),
            description=check_description(tool.name),
            args_schema=tool.args_schema,
            cache_function=_never_cached,
        )
        checking._checked, checking._failures = tool.name, failures
        return checking

    def _run(self, **arguments: object) -> object:
        return self._failures.current.check(self._checked, by_model(self.args_schema, arguments))

    async def _arun(self, **arguments: object) -> object:
        return await self._failures.current.acheck(self._checked, by_model(self.args_schema, arguments))


def _never_cached(arguments: object = None, result: object = None) -> bool:
    return False


class _Guarded(BaseTool):
    """A tool that calls another one."""

    _tool: BaseTool = PrivateAttr()
    _failures: Failures = PrivateAttr()

    @classmethod
    def around(cls, tool: BaseTool, failures: Failures) -> _Guarded:
        fields = {name: getattr(tool, name) for name in BaseTool.model_fields}
        guarded = cls(**{**fields, "cache_function": _caching(tool)})
        guarded._tool, guarded._failures = tool, failures
        return guarded

    def _run(self, **arguments: object) -> object:
        received = by_model(self.args_schema, arguments)
        result = self._in_run.call(
            self.name,
            received,
            lambda: _done(self._tool._run(**arguments)),  # noqa: SLF001 - what a tool of CrewAI implements
            failure_of=_returned_error,
            takes_again=AGAIN in received,
        )
        return _answer(result)

    async def _arun(self, **arguments: object) -> object:
        received = by_model(self.args_schema, arguments)
        result = await self._in_run.acall(
            self.name,
            received,
            lambda: self._tool._arun(**arguments),  # noqa: SLF001
            failure_of=_returned_error,
            takes_again=AGAIN in received,
        )
        return _answer(result)

    @property
    def _in_run(self) -> Run:
        return self._failures.current


def _done(result: object) -> object:
    """Return the result of a tool whose `_run` is a coroutine, as CrewAI does. The call is counted for the limit of uses once."""
    return asyncio.run(result) if asyncio.iscoroutine(result) else result


def _caching(tool: BaseTool) -> Callable[[object, object], bool]:
    """Return the rule which results CrewAI caches: those that the tool's own rule says, and no failure."""

    def cache(arguments: object, result: object) -> bool:
        return not isinstance(result, CrewFailure) and bool(tool.cache_function(arguments, result))

    return cache


def _returned_error(result: object) -> Exception | None:
    """Return the failure that CrewAI's own result says."""
    return ReturnedError() if isinstance(result, CrewFailure) else None


def _answer(result: object) -> object:
    if not isinstance(result, ToolFailure):
        return result
    return CrewFailure(
        message=result.text, reason=ToolFailureReason.EXCEPTION, retryable=result.fault.retryable is True
    )
