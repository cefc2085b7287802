"""
The steps of an operation's flow: what it asks the code that runs it to do.

The runner performs a step and sends its value back into the flow, or throws the exception that the step raised.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import msgspec

from amends.recovery.async_library import Waiter
from amends.recovery.scope import Scope

__all__ = ["Do", "Finish", "Park", "Send", "Step", "Steps", "Wait", "WaiterMaker"]


class Send(msgspec.Struct, frozen=True):
    """Make the call, inside `scope` if there is one."""

    call: Callable[..., Any]
    args: tuple[object, ...]
    kwargs: dict[str, object]
    scope: Scope | None
    changed: bool = False
    """Whether `on_fix` returned this call; it may be a plain function where the original one is async."""
    timeout: float | None = None
    """Seconds after which an async call is cancelled."""


class Do(msgspec.Struct, frozen=True):
    """Run a hook or a fallback of the caller."""

    call: Callable[..., object]
    args: tuple[object, ...] = ()
    kwargs: dict[str, object] = {}
    timeout: float | None = None
    """Seconds after which an async one is cancelled; a plain one sees them as `time_left()`."""


class Wait(msgspec.Struct, frozen=True):
    """Wait so many seconds."""

    seconds: float


class Park(msgspec.Struct, frozen=True):
    """Wait until the waiter is woken, at most so many seconds."""

    waiter: Any  # a ThreadWaiter or a TaskWaiter, whichever the runner of this flow waits with
    seconds: float


class Finish(msgspec.Struct, frozen=True):
    """End the operation with this result. It is the last step of a flow."""

    result: Any


Step = Send | Do | Wait | Park | Finish
Steps = Generator[Step, Any, Any]
WaiterMaker = Callable[[], Waiter]
