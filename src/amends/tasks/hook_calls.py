"""Call the further functions of a capability: `verify`, `undo`, fallbacks, `setup` and `reauth`, each with a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from amends.tasks.capability import HOOK_SECONDS, Capability, Hook
from amends.tasks.invoke import invoke
from amends.tasks.lease_guard import LeaseGuard
from amends.tasks.threads import Threads

__all__ = ["HookCalls"]


class HookCalls:
    """The calls of one capability's hooks for one task."""

    def __init__(
        self,
        guard: LeaseGuard | None,
        threads: Threads | None,
        capability: Capability | None,
        key: str,
        *,
        clock: Callable[[], float],
        until: float | None,
    ) -> None:
        """
        Args:
            guard: the worker's hold on the task, which is checked before each call.
            threads: the agent's threads.
            capability: has the time limit; without one, or without a time limit of its own, it is 300 s.
            key: identifies the step among all steps of all tasks.
            clock: wall-clock seconds.
            until: the task's deadline.
        """
        self._guard, self._threads, self._key = guard, threads or Threads(), key
        self._seconds = HOOK_SECONDS
        if capability is not None and capability.timeout is not None:
            self._seconds = capability.timeout
        self._clock, self._until = clock, until

    async def call(self, hook: Hook, *arguments: Any, most: float | None = None) -> Any:
        """
        Call a hook and return what it returns.

        Args:
            hook: the function.
            arguments: its arguments, as many as it takes.
            most: seconds for this call, if less than usual.

        Raises:
            TimeoutError: the call took too long, or the deadline is over.
            Fenced: this worker has lost the task; nothing was called.
        """
        seconds = self._seconds if most is None else min(most, self._seconds)
        if self._until is not None:
            seconds = min(seconds, self._until - self._clock())
        if seconds <= 0:
            raise TimeoutError
        if self._guard is not None:
            await self._guard.ensure()
        async with asyncio.timeout(seconds):
            return await invoke(hook, *arguments, threads=self._threads, key=self._key)
