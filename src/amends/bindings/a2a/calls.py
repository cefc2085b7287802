"""Calls that answer once: each within its time, with what was heard of its failure, recovered by policy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from a2a.client.client import ClientCallContext

from amends.bindings.a2a.connection import Connection
from amends.bindings.a2a.deadlines import Clock
from amends.bindings.a2a.faults import failure
from amends.bindings.a2a.http_recorder import HEARD, Heard
from amends.core.operation import Operation
from amends.core.policy import Policy
from amends.recovery.drivers import arecover
from amends.recovery.upstream import Upstream

__all__ = ["READ", "SAME", "UNSAFE", "Calls", "copy_of"]

READ = Operation(name="a2a", read_only=True)
SAME = Operation(name="a2a", idempotent=True)
UNSAFE = Operation(name="a2a")


@dataclass(frozen=True, slots=True)
class Calls:
    """One agent, and how far calls of it may go."""

    connection: Connection
    policy: Policy
    upstream: Upstream | None
    timeout: float
    refresh: Callable[..., Any] | None

    async def call(
        self,
        name: str,
        request: Any,
        context: ClientCallContext | None,
        operation: Operation,
        clock: Clock | None = None,
        **more: Any,
    ) -> Any:
        """
        The answer to a method of the SDK's client.

        Raises:
            FaultError: there is none, after everything the policy allows.

        """
        clock = clock or Clock(self.policy)

        async def attempt() -> Any:
            sdk = await self.connection.sdk()
            heard = Heard()
            before = HEARD.set(heard)
            try:
                async with asyncio.timeout(clock.left(self.timeout)):
                    return await getattr(sdk, name)(copy_of(request), context=context, **more)
            except Exception as exc:
                raise failure(exc, heard) from exc
            finally:
                HEARD.reset(before)

        return await arecover(
            attempt,
            policy=self.policy,
            upstream=self.upstream,
            operation=operation,
            refresh=self.refresh,
        )


def copy_of(request: Any) -> Any:
    """The SDK's client writes its own options into what it is given."""
    found = type(request)()
    found.CopyFrom(request)
    return found
