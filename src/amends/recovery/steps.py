"""What the flow of one operation asks its driver to do. A driver answers with the value, or throws the exception."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import msgspec

from amends.recovery.scope import Scope
from amends.recovery.waiter import Waiter

__all__ = ["Do", "Park", "Send", "Step", "Steps", "Wait", "WaiterMaker"]


class Send(msgspec.Struct, frozen=True):
    """Make the call, inside `scope` if there is one."""

    call: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    scope: Scope | None
    changed: bool = False
    """It is what a hook gave instead of the call, and so may be plain where that is async."""


class Do(msgspec.Struct, frozen=True):
    """Run a hook of the caller's."""

    call: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}


class Wait(msgspec.Struct, frozen=True):
    """Let time pass."""

    seconds: float


class Park(msgspec.Struct, frozen=True):
    """Let time pass, or until somebody wakes the waiter."""

    waiter: Any  # a Waiter; msgspec has no word for it
    seconds: float


Step = Send | Do | Wait | Park
Steps = Generator[Step, Any, Any]
WaiterMaker = Callable[[], Waiter]
