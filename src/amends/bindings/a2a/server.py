"""
`guard`: exceptions in a server's code are answered with AdCP errors, and nothing else of them is sent.

- An executor: a typed error ends the task as failed, with an artifact and a status message. A foreign exception does so
  as SERVICE_UNAVAILABLE with a standard message, and is logged with the trace id that the task has.
- A request handler: a failure outside of the executor (the task store, a push sender, a lookup) is a JSON-RPC error with
  the error object in its data.
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
    Return a guarded part of a server: its failures are AdCP errors.

    Args:
        part: an AgentExecutor, a RequestHandler, or a ServerCallContextBuilder. A guarded one is returned as it is.
        mime_type: set the MIME type of the error's data part (optional in AdCP; readers do not require it).

    Raises:
        TypeError: `part` is anything else.

    """
    if isinstance(part, GuardedExecutor | GuardedHandler):
        return part
    if isinstance(part, AgentExecutor):
        return GuardedExecutor(part, mime_type=mime_type)
    if isinstance(part, RequestHandler):
        return GuardedHandler(part)
    if callable(getattr(part, "build", None)):
        # The module of its base class imports Starlette, which not every server has installed.
        from amends.bindings.a2a.contexts import GuardedContexts

        return part if isinstance(part, GuardedContexts) else GuardedContexts(part)
    raise TypeError(
        f"guard takes an AgentExecutor, a RequestHandler or a ServerCallContextBuilder, not {type(part).__name__}"
    )
