"""One thing an agent can do: what is promised about doing it, and how functions of any shape are called."""

from __future__ import annotations

import asyncio
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from amends.core.operation import Operation
from amends.core.policy import Policy

__all__ = ["Capability", "Hook", "called", "input_type"]

Hook = Callable[..., Any]
_ANY_NUMBER = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """One thing an agent can do, and what is promised about doing it."""

    name: str
    call: Callable[..., Any]
    """`(input, ctx)`, fewer if it wants fewer; plain functions run in a thread."""
    check: Callable[[Any], Any] | None = None
    """Turns the payload into what `call` takes, or raises the input fault."""
    read_only: bool = False
    idempotent: bool = False
    keyed: bool = False
    """It hands `ctx.key` on to whatever it changes, and that recognises a repeat."""
    requires: tuple[str, ...] = ()
    """MCP servers that have to be connected."""
    fallbacks: tuple[Hook, ...] = ()
    """`(input, ctx)`: other ways, in order."""
    undo: Hook | None = None
    """`(input, result, ctx)`: takes it back. Called at least once, with a key of its own in `ctx.key`."""
    verify: Hook | None = None
    """`(input, ctx)`: looks whether it happened. False: it did not; None: nobody can tell; else: the result."""
    timeout: float | None = None
    policy: Policy | None = None

    def operation(self, agent: str, key: str) -> Operation:
        """What is known about repeating it."""
        return Operation(
            name=f"{agent}/{self.name}",
            read_only=self.read_only,
            idempotent=self.idempotent,
            key=key if self.keyed else None,
        )

    @property
    def repeatable(self) -> bool:
        """Whether it may be begun again when nobody knows whether it happened."""
        return self.read_only or self.idempotent or self.keyed


async def called(function: Callable[..., Any], *available: Any) -> Any:
    """`function` with as many of the arguments as it takes; awaited, or run in a thread if it is a plain one."""
    try:
        arity, awaits = _shape(function)
    except TypeError:  # it cannot be hashed, and so not be remembered
        arity, awaits = _shape.__wrapped__(function)
    arguments = available if arity >= len(available) else available[:arity]
    if awaits:
        return await function(*arguments)
    found = await asyncio.to_thread(function, *arguments)
    return await found if inspect.isawaitable(found) else found


@lru_cache(maxsize=4096)
def _shape(function: Callable[..., Any]) -> tuple[int, bool]:
    """How many positional arguments it takes, and whether it is awaited."""
    awaits = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - of an object that can be called
    )
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return _ANY_NUMBER, awaits
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return _ANY_NUMBER, awaits
    return sum(each.kind in {each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD} for each in parameters), awaits


def input_type(function: Callable[..., Any]) -> Any:
    """The annotation of the first parameter, where there is one."""
    try:
        parameters = [
            each
            for each in inspect.signature(function).parameters.values()
            if each.kind in {each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD}
        ]
    except (TypeError, ValueError):
        return Any
    if not parameters or parameters[0].annotation is inspect.Parameter.empty:
        return Any
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise TypeError(
            f"the annotation of {parameters[0].name!r} in {function!r} cannot be resolved: "
            "define it at module level, or pass input=…"
        ) from error
    return hints.get(parameters[0].name, Any)
