"""
The MCP servers an agent needs: connected when first asked for, and found out to be missing, never declared so.

A connection that breaks is dropped, and the next call opens it anew: a server that was missing and appears is found.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.vocabulary import row_for
from amends.errors.base import FaultError
from amends.recovery.to_fault import fault_in_response, fault_of
from amends.tasks.persistent_client import Kept

__all__ = ["Connection", "Connections"]


class Connections:
    """An agent's MCP servers by name."""

    def __init__(self, agent: str, targets: Mapping[str, Any]) -> None:
        self.agent = agent
        self.targets = dict(targets)
        self._kept = {name: Kept(partial(_client, target)) for name, target in self.targets.items()}

    async def connected(self, name: str, capability: str) -> Connection:
        """
        A connection to a server.

        Raises:
            FaultError: MCP_NOT_CONNECTED, MCP_AUTH_FAILED or MCP_RATE_LIMITED, naming who needs it for what.
        """
        told = {"mcp": name, "requiredBy": self.agent, "capability": capability}
        kept = self._kept[name]
        try:
            client = await kept.client()
        except Exception as exc:
            raise FaultError.from_fault(_missing(fault_of(exc), told)) from exc
        return Connection(client, told, partial(kept.drop, client))

    def drop(self, name: str) -> None:
        """Let go of a connection; the next call opens a new one."""
        kept = self._kept.get(name)
        if kept is not None:
            kept.drop()

    async def close(self) -> None:
        """Close them all."""
        await asyncio.gather(*(kept.close() for kept in self._kept.values()))


def _client(target: Any) -> Any:
    """An unopened client for whatever was given."""
    if inspect.isfunction(target) or inspect.ismethod(target) or isinstance(target, partial):
        return target()
    from amends.bindings.mcp import Client
    from amends.recovery.policies import NONE

    # Whoever handed the task out repeats it, and counts: two layers of repeats would multiply.
    return Client(target, policy=NONE)


class Connection:
    """
    An open client: its methods, with failures in S3's words.

    `await ctx.mcp["notion"].call_tool("create_page", {...})` returns what the client returns, or raises the MCP error.
    """

    def __init__(self, client: Any, told: dict[str, Any], broken: Callable[[], None]) -> None:
        self.client = client
        """The client itself, for what is not a call."""
        self._told = told
        self._broken = broken

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.client, name)
        return partial(self._call, found) if inspect.iscoroutinefunction(found) else found

    async def _call(self, method: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            answer = await method(*args, **kwargs)
        except Exception as exc:
            fault = fault_of(exc)
            if any(_unreachable(part) for part in _parts(fault)):
                self._broken()
            raise FaultError.from_fault(_said(fault, self._told)) from exc
        failed = fault_in_response(answer) if getattr(answer, "is_error", False) else None
        if failed is not None:
            raise FaultError.from_fault(_said(failed, self._told))
        return answer


def _parts(fault: Fault) -> Iterator[Fault]:
    yield fault
    for part in fault.errors:
        yield from _parts(part)


def _unreachable(fault: Fault) -> bool:
    return row_for(fault.vocabulary, fault.code, fault.status).everyday in {"SERVICE_UNAVAILABLE", "TIMEOUT"}


# The first of them that is among the parts of what happened.
_WORDS = {
    "UNAUTHENTICATED": "MCP_AUTH_FAILED",
    "PERMISSION_DENIED": "MCP_AUTH_FAILED",
    "RATE_LIMITED": "MCP_RATE_LIMITED",
}


def _word(fault: Fault) -> tuple[str | None, Fault]:
    for part in _parts(fault):
        word = _WORDS.get(row_for(part.vocabulary, part.code, part.status).everyday)
        if word is not None:
            return word, part
    return None, fault


def _missing(fault: Fault, told: dict[str, Any]) -> Fault:
    """Why there is no connection. Nothing was asked of the server yet, so nothing happened."""
    word, part = _word(fault)
    if word is None:
        shown = told["mcp"][:1].upper() + told["mcp"][1:]
        return Fault(
            code="MCP_NOT_CONNECTED",
            vocabulary="task",
            message=f"The {shown} MCP is not connected. Run setup to configure.",
            details=dict(told),
        )
    return Fault(
        code=word,
        vocabulary="task",
        message=row_for("task", word).message,
        details=dict(told),
        retry_after=part.retry_after,
    )


def _said(fault: Fault, told: dict[str, Any]) -> Fault:
    """What a connected server said, in S3's words; its own code is kept in the details."""
    if fault.vocabulary == "task":
        return replace(fault, details={**told, **(fault.details or {})})
    word, part = _word(fault)
    if word is None and _unreachable(fault) and fault.executed is Executed.NO:
        return _missing(fault, told)
    code = word or "MCP_ERROR"
    changes: dict[str, Any] = {} if word else {"recovery": fault.recovery, "executed": fault.executed}
    return Fault(
        code=code,
        vocabulary="task",
        message=fault.message if fault.origin is not None else row_for("task", code).message,
        details={**told, "cause": {"vocabulary": part.vocabulary, "code": part.code}},
        retry_after=part.retry_after,
        suggestions=fault.suggestions,
        **changes,
    )
