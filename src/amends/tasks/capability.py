"""One capability of an agent: the function, and what may be assumed about calling it."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from msgspec.structs import replace

from amends.core.policy import Policy
from amends.core.wrong_calls import explains_wrong_calls

__all__ = ["HOOK_SECONDS", "Capability", "Hook", "Policies", "input_type", "policies_of"]

Policies = tuple[Policy, Policy]
"""A policy for a failure without a fallback, and the same one for a failure with a fallback."""

Hook = Callable[..., object]
HOOK_SECONDS = 300.0
"""Seconds for one call of `verify`, `undo`, a fallback, `setup` or `reauth`, if the capability has no time-out."""


@explains_wrong_calls
@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """
    One capability of an agent: the function, and what may be assumed about calling it.

    `Agent.capability` makes them; `Agent.capabilities` has them by name.

    >>> from amends.tasks import Agent
    >>> trains = Agent("trains")
    >>> @trains.capability(read_only=True, timeout=10)
    ... async def search(station: str) -> list[str]:
    ...     return ["09:12"]
    >>> capability = trains.capabilities["search"]
    >>> capability.repeatable, capability.timeout
    (True, 10)
    """

    name: str
    call: Hook
    """`(input, ctx)`, or a function with fewer parameters; a function that is not async runs in a thread."""
    check: Callable[[object], object] | None = None
    """Converts the payload into the input of `call`, or raises the input fault."""
    read_only: bool = False
    idempotent: bool = False
    keyed: bool = False
    """It passes `ctx.key` on to the service it changes, and that service recognises a repeated key."""
    requires: tuple[str, ...] = ()
    """MCP servers that have to be connected."""
    fallbacks: tuple[Hook, ...] = ()
    """`(input, ctx)`: functions to call instead, in order."""
    undo: Hook | None = None
    """`(input, result, ctx)`: undoes the step. Called at least once, with a key of its own in `ctx.key`."""
    verify: Hook | None = None
    """`(input, ctx)`: checks whether the step happened. False: it did not; None: unknown; anything else: the result."""
    timeout: float | None = None
    policy: Policy | None = None
    relays: bool = False
    """The call is one call of another service and does nothing else, so that service's statement about it is kept."""

    promises: str = field(init=False)
    """What is declared about repeating a call, as it is recorded in the log; empty if nothing is."""
    repeatable: bool = field(init=False)
    """Whether a call may be repeated when it is unknown whether it happened."""
    policies: Policies | None = field(init=False)

    def __post_init__(self) -> None:
        declared = [name for name in ("read_only", "idempotent", "keyed") if getattr(self, name)]
        object.__setattr__(self, "promises", "+".join(declared))
        object.__setattr__(self, "repeatable", bool(declared))
        object.__setattr__(self, "policies", None if self.policy is None else policies_of(self.policy))

    @property
    def longest(self) -> float:
        """Seconds after which a call of this capability, or of one of its hooks, must have ended; at most five minutes."""
        return HOOK_SECONDS if self.timeout is None else min(self.timeout, HOOK_SECONDS)


def policies_of(policy: Policy) -> Policies:
    """The policy without and with a fallback."""
    return replace(policy, fallback=False), replace(policy, fallback=True)


def input_type(function: Hook) -> object:
    """The annotation of the first positional parameter; Any if there is none."""
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
        hints = typing.get_type_hints(_with_annotations(function), include_extras=True)
    except Exception as error:
        raise TypeError(
            f"the annotation of {parameters[0].name!r} in {function!r} cannot be resolved: "
            "define it at module level, or pass input=…"
        ) from error
    return hints.get(parameters[0].name, Any)


def _with_annotations(function: Hook) -> Hook:
    """The function that has the annotations: inside a partial, or the `__call__` of an object."""
    while isinstance(function, partial):
        function = function.func
    return function if inspect.isroutine(function) or inspect.isclass(function) else type(function).__call__
