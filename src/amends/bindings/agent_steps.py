"""Calls of models and tools as durable steps, for the bindings of agent frameworks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import timedelta
from typing import Any

from amends.effects.steps import Steps, current_steps, in_step
from amends.errors.base import FaultError
from amends.logs import logger

__all__ = ["AgentSteps", "without"]

_log = logger("amends.effects")
_RESULT = "amends.tool"
"""The member of a stored result of a tool that was called. A result that was found has none."""


class _NotFinished(FaultError):
    """
    A tool call that stopped to ask, so that it did not happen

    Raised inside a step and replaced by what the tool raised.
    """

    code = "CANCELLED"
    executed = "no"
    asked: BaseException


class AgentSteps:
    """
    Makes the calls of an agent durable steps of the job or the task that runs it.

    A model call may be made again, so that only its end is stored. A tool call is a step with the id that the model gave it as its
    key: before it, its begin is stored. Outside of a job or a task, and inside of another step, calls are made as they are.

    >>> AgentSteps(repeat=["search"]).name
    'model'
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        repeat: Collection[str] = (),
        verify: Mapping[str, Callable[..., object]] | None = None,
        timeout: float | timedelta | None = None,
    ) -> None:
        """
        Args:
            name: tells this agent's model calls from those of other agents in the same job.
            repeat: names of tools that may be called again if the process was lost during the call: those that only read, and
                those whose effect a ledger protects (`effects=` of `Failures`).
            verify: for tools by name, what is called with the arguments by name if it is not known whether the call happened:
                returns the tool's result, or True, if it did; False if it did not; None if that is not known.
            timeout: seconds in which a tool call can have its effect; 60 without it.

        """
        if isinstance(repeat, str):
            raise TypeError("repeat= is a collection of names, not one text: repeat=[...]")
        for tool, hook in (verify or {}).items():
            if not callable(hook):
                raise TypeError(f"verify[{tool!r}] is a function, not {type(hook).__name__}")
        self.name = "model" if name is None else f"model {name}"
        self._repeat, self._verify, self._timeout = frozenset(repeat), dict(verify or {}), timeout
        self._warned = False

    def _steps(self) -> Steps | None:
        steps = current_steps()
        if steps is None and not self._warned:
            self._warned = True
            _log.warning("the agent is run outside of a job or a task, so that its steps are not stored")
        return None if in_step() else steps

    async def model(
        self, form: object, call: Callable[[], Awaitable[object]], name: str | None = None
    ) -> object:
        """
        Call a model, or return the stored answer.

        Args:
            form: the call as plain values, without times, ids of runs and ids of messages. Its digest is stored.
            call: makes it; returns JSON values.
            name: replaces the name of the steps.

        """
        steps = self._steps()
        if steps is None:
            return await call()
        return await steps.run(name or self.name, lambda _: call(), (form,), repeat=True)

    async def tool(
        self,
        name: str,
        call_id: str | None,
        arguments: Mapping[str, object],
        call: Callable[[], Awaitable[object]],
        found: Callable[[object], object],
        asking: tuple[type[BaseException], ...] = (),
    ) -> Any:
        """
        Call a tool once, or return the stored result.

        Args:
            name: the tool.
            call_id: the id that the model gave the call.
            arguments: its arguments by name. Their digest is stored.
            call: makes it; returns JSON values.
            found: makes such values of a result that `verify` or a person has found.
            asking: exceptions with which it asks for something before it does anything.

        """
        steps = self._steps()
        if steps is None:
            return await call()
        verify = self._verify.get(name)

        async def called(_: object) -> object:
            try:
                return {_RESULT: await call()}
            except asking as error:
                stopped = _NotFinished()
                stopped.asked = error
                raise stopped from error

        try:
            stored = await steps.run(
                f"tool {name}"[:200],
                called,
                (dict(arguments),),
                key=call_id or None,
                repeat=name in self._repeat,
                verify=None if verify is None else lambda named: verify(**named),
                timeout=self._timeout,
            )
        except _NotFinished as stopped:
            raise stopped.asked from None
        return stored[_RESULT] if isinstance(stored, dict) and _RESULT in stored else found(stored)


def without(value: object, names: Collection[str]) -> object:
    """
    Return plain values without the members with these names, at any depth.

    >>> without([{"id": 1, "text": "a"}], {"id"})
    [{'text': 'a'}]
    """
    if isinstance(value, Mapping):
        return {name: without(each, names) for name, each in value.items() if name not in names}
    if isinstance(value, list | tuple):
        return [without(each, names) for each in value]
    return value
