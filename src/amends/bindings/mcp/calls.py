"""Calls with recovery, as both MCP clients (the official SDK's and FastMCP's) make them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from msgspec.structs import replace

from amends.bindings.mcp.tools import KEY, ToolOperations
from amends.core.enums import Executed
from amends.core.operation import Operation
from amends.core.policy import Policy
from amends.errors.base import FaultError
from amends.recovery.drivers import arecover
from amends.recovery.effect_context import check_time_limit
from amends.recovery.origins import PER_ORIGIN, PerOrigin, Upstreams
from amends.recovery.policies import TOOL
from amends.recovery.scope import time_left
from amends.recovery.upstream import Upstream
from amends.serving.tracing import id_of, incoming, traceparent

__all__ = ["CONNECT", "READ", "UNKNOWN", "Calls", "trace_meta"]

T = TypeVar("T")

READ = Operation(name="read", read_only=True, binding="mcp client")
"""Listings, resources, prompts and completions: the protocol defines them as read-only."""

CONNECT = Operation(name="connect", read_only=True, binding="mcp client")
UNKNOWN = Operation()


def trace_meta(operation: Operation) -> dict[str, str]:
    """Return the `_meta` that continues the trace of an operation; empty if it has no trace id of W3C's form."""
    parent = traceparent(operation.trace_id)
    return {} if id_of(parent) is None else {"traceparent": parent}


class Calls:
    """The recovery settings of one client, and the operations of its server's tools."""

    def __init__(
        self,
        *,
        policy: Policy = TOOL,
        upstream: Upstream | PerOrigin | None = PER_ORIGIN,
        address: object = None,
        shared: bool = True,
        refresh: Callable[..., object] | None = None,
        verify: Callable[..., object] | None = None,
        limit: float | None = None,
    ) -> None:
        self.policy = policy
        self._upstreams = Upstreams(upstream, address, shared=shared and refresh is None)
        self.refresh, self.verify = refresh, verify
        self.limit = limit
        self._tools: ToolOperations = {}
        self._listed = False

    async def list_operation(
        self,
        name: str,
        arguments: Mapping[str, object] | None,
        list_operations: Callable[[], Awaitable[ToolOperations]],
        policy: Policy | None,
    ) -> Operation:
        """
        List the server's tools, and return the operation of one of them.

        The SDK lists the tools after the first call in any case; listing them before it gives the annotations in time.

        Args:
            name: the tool.
            arguments: the arguments of the call.
            list_operations: makes one attempt at the listing.
            policy: replaces the client's policy.

        Raises:
            FaultError: the listing failed; the tool was not called.

        """
        try:
            tools = await self.run(list_operations, operation=READ, policy=policy)
        except FaultError as error:
            error.fault = replace(error.fault, executed=Executed.NO)
            raise
        self._tools = tools
        self._listed = True
        return self.operation_of(name, arguments) or UNKNOWN

    def add(self, tools: ToolOperations) -> None:
        """Add the operations of a page of a listing."""
        self._tools.update(tools)

    def forget(self) -> None:
        """Forget the listing, so that the next call lists the tools again."""
        self._tools, self._listed = {}, False

    def operation_of(self, name: str, arguments: Mapping[str, object] | None) -> Operation | None:
        """Return the operation of a tool call, with its idempotency key; None if the tools were not listed yet."""
        found = self._tools.get(name)
        if found is None:
            return Operation(name=f"tools/call {name}", binding="mcp client") if self._listed else None
        operation, takes_key = found
        key = arguments.get(KEY) if takes_key and arguments else None
        return replace(operation, key=key) if isinstance(key, str) and key else operation

    def seconds_left(self) -> float | None:
        """
        Return the seconds that an attempt may take now: the limit, or less if the operation's deadline is near.

        Raises:
            FaultError: the time limit of the effect around it is over.

        """
        check_time_limit()
        left = time_left()
        if left is None or (self.limit is not None and self.limit < left):
            return self.limit
        return left

    def traced(self, operation: Operation) -> Operation:
        """Return the operation with the trace of the request or task that is being handled, if there is one."""
        parent = incoming()
        if parent is None or operation.trace_id:
            return operation
        trace = id_of(parent)
        return operation if trace is None else replace(operation, trace_id=trace)

    def run(
        self,
        attempt: Callable[[], Awaitable[T]],
        *,
        operation: Operation,
        policy: Policy | None = None,
    ) -> Awaitable[T]:
        """
        Run attempts until one succeeds or the policy ends recovery; the awaited result is the last attempt's.

        Args:
            attempt: makes one attempt within `seconds_left`, raises FaultError.
            operation: whether a repeat is safe.
            policy: replaces the client's policy.

        Raises:
            FaultError: the call failed, and a repeat cannot help or is not safe.

        """
        return arecover(
            attempt,
            policy=policy or self.policy,
            upstream=self._upstreams.of(operation.name),
            operation=operation,
            refresh=self.refresh,
            verify=self.verify,
        )
