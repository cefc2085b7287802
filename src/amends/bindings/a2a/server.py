"""
`guard`: what an agent's code raises becomes what S4 says, and nothing else of it leaves.

- An executor: a typed error ends the task as failed, with artifact and message; a foreign exception does the same as
  SERVICE_UNAVAILABLE, in our own words, logged with the trace id that the task carries.
- A request handler: what fails around the executor (the task store, a push sender, a lookup) is a JSON-RPC error with
  the object in its data.
- A builder of call contexts: the same.
"""

from __future__ import annotations

from typing import Any, TypeVar, overload

from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers.request_handler import RequestHandler

from amends.bindings.a2a.executor import GuardedExecutor
from amends.bindings.a2a.handler import GuardedHandler

__all__ = ["guard"]

T = TypeVar("T")


@overload
def guard(part: AgentExecutor, *, mime_type: bool = False) -> AgentExecutor: ...
@overload
def guard(part: RequestHandler, *, mime_type: bool = False) -> RequestHandler: ...
@overload
def guard(part: T, *, mime_type: bool = False) -> T: ...


def guard(part: Any, *, mime_type: bool = False) -> Any:
    """
    The same part of a server, with failures an agent can act on.

    Args:
        part: an AgentExecutor, a RequestHandler, or a ServerCallContextBuilder. Guarding twice is guarding once.
        mime_type: mark the error's data part with its MIME type (optional in S4, never required by a reader).

    Raises:
        TypeError: for anything else.

    """
    if isinstance(part, GuardedExecutor | GuardedHandler):
        return part
    if isinstance(part, AgentExecutor):
        return GuardedExecutor(part, mime_type=mime_type)
    if isinstance(part, RequestHandler):
        return GuardedHandler(part)
    if callable(getattr(part, "build", None)):
        # Its base class is where Starlette is needed, which not every server has.
        from amends.bindings.a2a.contexts import GuardedContexts

        return part if isinstance(part, GuardedContexts) else GuardedContexts(part)
    raise TypeError(
        f"guard takes an AgentExecutor, a RequestHandler or a ServerCallContextBuilder, not {type(part).__name__}"
    )
