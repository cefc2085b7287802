"""What both clients share: how a call is made with recovery."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from amends.bindings.mcp.tools import KEY, Promises
from amends.core.enums import Executed
from amends.core.operation import Operation
from amends.core.policy import Policy
from amends.errors.base import FaultError
from amends.recovery.drivers import arecover
from amends.recovery.perform import arun_flow, failed_call
from amends.recovery.plan import plan_for
from amends.recovery.policies import ADCP
from amends.recovery.scope import time_left
from amends.recovery.upstream import Upstream

__all__ = ["CONNECTING", "ERRORS", "READING", "UNKNOWN", "Calls", "Passed", "unpassed"]

READING = Operation(name="read", read_only=True)
"""Listings, resources, prompts, completions: the protocol says they change nothing."""

CONNECTING = Operation(name="connect", read_only=True)
UNKNOWN = Operation()

ERRORS = ("raise", "return")


class Passed:
    """An exception that is the application's business, on its way past recovery."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


def unpassed(result: Any) -> Any:
    """A result, or what was on its way past recovery, raised."""
    if result.__class__ is Passed:
        raise result.error
    return result


class Calls:
    """How calls of one client are made: the policy, what they share, and what is known about the tools."""

    def __init__(
        self,
        *,
        policy: Policy = ADCP,
        upstream: Upstream | None = None,
        errors: str = "raise",
        refresh: Callable[..., Any] | None = None,
        verify: Callable[..., Any] | None = None,
        limit: float | None = None,
    ) -> None:
        if errors not in ERRORS:
            raise ValueError(f"errors is one of {', '.join(ERRORS)}, not {errors!r}")
        self.policy, self.upstream, self.errors = policy, upstream, errors
        self.refresh, self.verify = refresh, verify
        self.limit = limit
        self._alone = upstream is None and policy.deadline is None
        self.tools: Promises = {}
        self.at_once: frozenset[str] = frozenset()
        """Tools whose first call needs nothing arranged around it: nobody to wait for, no deadline, no key to tell."""
        self.listed = False

    async def promised(
        self,
        name: str,
        arguments: dict[str, Any] | None,
        listing: Callable[[float | None], Awaitable[Promises]],
        policy: Policy | None,
    ) -> Operation:
        """
        What a call of this tool promises, where that is not known yet: asked for once, and the SDK lists the tools after
        the first call in any case.

        Raises:
            FaultError: the listing failed; the tool was not called.

        """
        try:
            tools = await self.run(listing, READING, policy=policy)
        except FaultError as error:
            error.fault = replace(error.fault, executed=Executed.NO)
            raise
        # One that asks for a page to be opened says nothing about the tools; the call itself will say it again.
        self.tools = {}
        self.add({} if tools.__class__ is Passed else tools)
        self.listed = True
        return self.known(name, arguments) or UNKNOWN

    def add(self, tools: Promises) -> None:
        """Remember some of them."""
        self.tools.update(tools)
        if self._alone:
            self.at_once = frozenset(name for name, (_, keyed) in self.tools.items() if not keyed)

    def forget(self) -> None:
        """Ask again before the next call."""
        self.tools, self.at_once, self.listed = {}, frozenset(), False

    def known(self, name: str, arguments: dict[str, Any] | None) -> Operation | None:
        """What a call of this tool promises; None where nobody has asked for its annotations yet."""
        found = self.tools.get(name)
        if found is None:
            return Operation(name=f"tools/call {name}") if self.listed else None
        operation, keyed = found
        key = arguments.get(KEY) if keyed and arguments else None
        return replace(operation, key=key) if isinstance(key, str) and key else operation

    async def run(
        self,
        attempt: Callable[[float | None], Awaitable[Any]],
        operation: Operation,
        *,
        policy: Policy | None = None,
        errors: str | None = None,
        first: tuple[float, FaultError] | None = None,
    ) -> Any:
        """
        What `attempt` returns in the end.

        Args:
            attempt: gets the seconds it may take, and raises FaultError.
            operation: what it promises.
            policy: another one than the client's.
            errors: another choice than the client's.
            first: when an attempt was made already, and how it failed.

        Raises:
            FaultError: where repeating cannot help, or may not be done.

        """

        async def bounded() -> Any:
            left = time_left()
            if left is None or (self.limit is not None and self.limit < left):
                left = self.limit
            return await attempt(left)

        try:
            if first is None:
                return await arecover(bounded, **self._options(operation, policy))
            plan = plan_for(**self._options(operation, policy))
            return await arun_flow(plan, bounded, (), {}, None, failed_call(*first))
        except FaultError as error:
            if (errors or self.errors) == "return" and hasattr(error, "result"):
                return error.result
            raise

    def _options(self, operation: Operation, policy: Policy | None) -> dict[str, Any]:
        return {
            "policy": policy or self.policy,
            "upstream": self.upstream,
            "operation": operation,
            "refresh": self.refresh,
            "verify": self.verify,
        }
