"""Calls with a single response: each attempt has a time limit, and recovery follows the policy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from a2a.client.client import ClientCallContext
from google.protobuf.message import Message as ProtoMessage  # type: ignore[import-untyped,unused-ignore]

from amends.bindings.a2a.connection import Connection
from amends.bindings.a2a.deadlines import Deadline
from amends.bindings.a2a.faults import failure
from amends.bindings.a2a.http_recorder import Recording
from amends.bindings.a2a.traces import limited, traced
from amends.core.operation import Operation
from amends.core.policy import Policy
from amends.foreign.trust import trusted
from amends.recovery.drivers import arecover
from amends.recovery.origins import Upstreams

__all__ = ["IDEMPOTENT", "READ", "UNSAFE", "Calls", "copy_of"]

M = TypeVar("M", bound=ProtoMessage)

READ = Operation(name="a2a", read_only=True, binding="a2a client")
IDEMPOTENT = Operation(name="a2a", idempotent=True, binding="a2a client")
UNSAFE = Operation(name="a2a", binding="a2a client")


@dataclass(frozen=True, slots=True)
class Calls:
    """The connection to one agent, and the settings of its calls."""

    connection: Connection
    policy: Policy
    upstreams: Upstreams
    timeout: float
    refresh: Callable[..., object] | None
    own: bool = False

    async def call(
        self,
        name: str,
        request: ProtoMessage,
        context: ClientCallContext | None,
        operation: Operation,
        deadline: Deadline | None = None,
        **more: object,
    ) -> Any:
        """
        Call a method of the SDK's client, and return its response.

        Args:
            name: the method.
            request: its request.
            context: the SDK's call context.
            operation: whether a repeat is safe.
            deadline: the deadline of the operation that the call belongs to; its own by default.
            more: further arguments of the method.

        Raises:
            FaultError: the call failed, and recovery has ended.

        """
        deadline = deadline or Deadline(self.policy)
        operation, context = traced(operation, context)

        async def attempt() -> object:
            sdk = await self.connection.sdk()
            recording = Recording()
            sent, call = limited(context, self.policy.attempts)
            try:
                with recording:
                    async with asyncio.timeout(deadline.seconds_left(self.timeout)):
                        return await getattr(sdk, name)(copy_of(request), context=sent, **more)
            except Exception as exc:
                error = trusted(failure(exc, recording), own=self.own, call=call)
                raise error from exc

        return await arecover(
            attempt,
            policy=self.policy,
            upstream=self.upstreams.of(operation.name),
            operation=operation,
            refresh=self.refresh,
        )


def copy_of(request: M) -> M:
    """Return a copy of a request; the SDK's client writes its own options into the request that it gets."""
    copy = type(request)()
    copy.CopyFrom(request)
    return copy
