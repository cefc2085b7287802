"""
The MCP servers that an agent needs. A server is connected when a capability first needs it.

A connection that breaks is dropped, and the next call opens a new one. A server that was missing is therefore used as soon as it
is available.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

from msgspec.structs import replace

from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.vocabularies.task import VOCABULARY
from amends.core.vocabulary import row_for
from amends.dialects.outgoing import FORMATS
from amends.errors.base import FaultError
from amends.recovery.classify import fault_in_response, fault_of
from amends.tasks.faults import log_foreign_text
from amends.tasks.persistent_client import PersistentClient

__all__ = ["Connection", "Connections"]


class Connections:
    """An agent's MCP servers by name."""

    def __init__(self, agent: str, targets: Mapping[str, object]) -> None:
        self.agent = agent
        self.targets = dict(targets)
        self._clients = {
            name: PersistentClient(partial(_client, target)) for name, target in self.targets.items()
        }

    async def connect(self, name: str, capability: str) -> Connection:
        """
        Return a connection to a server; open it if necessary.

        Raises:
            FaultError: MCP_NOT_CONNECTED, MCP_AUTH_FAILED or MCP_RATE_LIMITED, with the agent and the capability.
        """
        context = {"mcp": name, "requiredBy": self.agent, "capability": capability}
        persistent = self._clients[name]
        try:
            client = await persistent.get()
        except Exception as exc:
            raise FaultError.from_fault(_connect_fault(fault_of(exc), context)) from exc
        return Connection(client, context, partial(persistent.drop, client))

    def drop(self, name: str) -> None:
        """Close a connection; the next call opens a new one."""
        persistent = self._clients.get(name)
        if persistent is not None:
            persistent.drop()

    async def close(self) -> None:
        """Close all connections."""
        await asyncio.gather(*(persistent.close() for persistent in self._clients.values()))


def _client(target: Any) -> AbstractAsyncContextManager[object]:
    """An unopened client for `target`: a function that makes one, or whatever the MCP binding connects to."""
    if inspect.isfunction(target) or inspect.ismethod(target) or isinstance(target, partial):
        made: AbstractAsyncContextManager[object] = target()
        return made
    from amends.bindings.mcp import Client
    from amends.recovery.policies import NONE

    # The orchestrator repeats calls and counts attempts; a second layer of retries would multiply them.
    return Client(target, policy=NONE)


class Connection:
    """
    An open client whose methods raise failures in the task vocabulary.

    `await ctx.mcp["notion"].call_tool("create_page", {...})` returns what the client returns, or raises an MCP error of the
    task vocabulary.
    """

    def __init__(self, client: object, context: dict[str, str], broken: Callable[[], None]) -> None:
        self.client = client
        """The client itself."""
        self._context = context
        self._broken = broken

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.client, name)
        return partial(self._call, found) if inspect.iscoroutinefunction(found) else found

    async def _call(
        self, method: Callable[..., Awaitable[object]], *args: object, **kwargs: object
    ) -> object:
        try:
            answer = await method(*args, **kwargs)
        except Exception as exc:
            fault = fault_of(exc)
            if any(_unreachable(part) for part in _parts(fault)):
                self._broken()
            raise FaultError.from_fault(_call_fault(fault, self._context)) from exc
        failed = fault_in_response(answer) if getattr(answer, "is_error", False) else None
        if failed is not None:
            raise FaultError.from_fault(_call_fault(failed, self._context))
        return answer


def _parts(fault: Fault) -> Iterator[Fault]:
    yield fault
    for part in fault.errors:
        yield from _parts(part)


def _unreachable(fault: Fault) -> bool:
    return row_for(fault.vocabulary, fault.code, fault.status).everyday in {"SERVICE_UNAVAILABLE", "TIMEOUT"}


# Codes for a failed connection or call. The first part of the fault that has one decides.
_TASK_CODES = {
    "UNAUTHENTICATED": "MCP_AUTH_FAILED",
    "PERMISSION_DENIED": "MCP_AUTH_FAILED",
    "RATE_LIMITED": "MCP_RATE_LIMITED",
}


_OWN_CODES = frozenset(VOCABULARY.rows) - {"TIMEOUT", "RATE_LIMITED", "INTERNAL_ERROR"}
"""Codes of the task vocabulary that no other format uses: they are kept."""


def _task_code(fault: Fault) -> tuple[str | None, Fault]:
    for part in _parts(fault):
        code = _TASK_CODES.get(row_for(part.vocabulary, part.code, part.status).everyday)
        if code is not None:
            return code, part
    return None, fault


def _connect_fault(fault: Fault, context: dict[str, str]) -> Fault:
    """The fault of a failed connection. The server was not called, so the call had no effect."""
    code, part = _task_code(fault)
    if code is None:
        shown = context["mcp"][:1].upper() + context["mcp"][1:]
        return Fault(
            code="MCP_NOT_CONNECTED",
            vocabulary="task",
            message=f"The {shown} MCP is not connected. Run setup to configure.",
            details=dict(context),
        )
    return Fault(
        code=code,
        vocabulary="task",
        message=row_for("task", code).message,
        details=dict(context),
        retry_after=part.retry_after,
    )


def _call_fault(fault: Fault, context: dict[str, str]) -> Fault:
    """The fault of a failed call in the task vocabulary; the server's own code is kept in `details.cause`."""
    if fault.vocabulary == "task":
        return replace(fault, details={**context, **(fault.details or {})})
    known, part = _task_code(fault)
    if known is None and _unreachable(fault) and fault.executed is Executed.NO:
        return _connect_fault(fault, context)
    if known is None and fault.code in _OWN_CODES:
        # The server is an agent of the same contract.
        return replace(fault, vocabulary="task", details={**context, **(fault.details or {})})
    code = known or "MCP_ERROR"
    # The text of a failed tool is often that of an exception.
    told = fault.origin is not None and fault.origin.dialect in FORMATS
    if fault.origin is not None and not told:
        log_foreign_text(fault)
    found = Fault(
        code=code,
        vocabulary="task",
        message=fault.message if told else row_for("task", code).message,
        details={**context, "cause": {"vocabulary": part.vocabulary, "code": part.code}},
        retry_after=part.retry_after,
        field=fault.field if told else None,
        suggestions=fault.suggestions if told else (),
    )
    return found if known else replace(found, recovery=fault.recovery, executed=fault.executed)
