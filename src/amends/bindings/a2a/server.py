"""
`guard`: exceptions in a server's code are answered with AdCP errors, and nothing else of them is sent.

- An executor: a typed error ends the task as failed, with an artifact and a status message. A foreign exception does so
  as SERVICE_UNAVAILABLE with a standard message, and is logged with the trace id that the task has.
- A request handler: a failure outside of the executor (the task store, a push sender, a lookup) is a JSON-RPC error with
  the error object in its data.
- A builder of call contexts: the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, overload

from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers.request_handler import RequestHandler

from amends.bindings.a2a.executor import GuardedExecutor
from amends.bindings.a2a.handler import GuardedHandler
from amends.bindings.a2a.message_effects import MessageEffects
from amends.core.wrong_calls import explains_wrong_calls
from amends.effects import Effects
from amends.serving.server_errors import OwnErrors

__all__ = ["guard"]

T = TypeVar("T")


@overload
def guard(
    part: AgentExecutor,
    *,
    mime_type: bool = False,
    errors: Mapping[type[BaseException], str] | None = None,
    code_prefix: str | None = None,
    effects: Effects | None = None,
) -> AgentExecutor: ...
@overload
def guard(
    part: RequestHandler,
    *,
    mime_type: bool = False,
    errors: Mapping[type[BaseException], str] | None = None,
    code_prefix: str | None = None,
) -> RequestHandler: ...
@overload
def guard(
    part: T,
    *,
    mime_type: bool = False,
    errors: Mapping[type[BaseException], str] | None = None,
    code_prefix: str | None = None,
) -> T: ...


@explains_wrong_calls
def guard(
    part: Any,
    *,
    mime_type: bool = False,
    errors: Mapping[type[BaseException], str] | None = None,
    code_prefix: str | None = None,
    effects: Effects | None = None,
) -> object:
    """
    Return a guarded part of a server: its failures are AdCP errors.

        handler = guard(DefaultRequestHandler(guard(MyExecutor()), InMemoryTaskStore(), card))

    Args:
        part: an AgentExecutor, a RequestHandler, or a ServerCallContextBuilder. A guarded one is returned as it is.
        mime_type: set the MIME type of the error's data part (optional in AdCP; readers do not require it).
        errors: exception classes of yours with the code that each means, for this part alone: `{SeatTaken: "CONFLICT"}`.
        code_prefix: your vendor name: with "ACME", your own code OUT_OF_STOCK is sent as X_ACME_OUT_OF_STOCK.
        effects: for an AgentExecutor: the ledger that executes a message with a key (`metadata["amends/key"]`) once.

    Raises:
        TypeError: `part` is anything else.
        ValueError: a code or the prefix is not valid.

    """
    own_errors = OwnErrors.of(errors, code_prefix)
    if isinstance(part, GuardedExecutor | GuardedHandler):
        return part
    if isinstance(part, AgentExecutor):
        ledger = None if effects is None else MessageEffects(effects)
        return GuardedExecutor(part, mime_type=mime_type, own_errors=own_errors, ledger=ledger)
    if effects is not None:
        raise TypeError("effects belongs to an AgentExecutor: guard(executor, effects=Effects(...))")
    if isinstance(part, RequestHandler):
        return GuardedHandler(part, own_errors=own_errors)
    if callable(getattr(part, "build", None)):
        # The module of its base class imports Starlette, which not every server has installed.
        from amends.bindings.a2a.contexts import GuardedContexts

        return part if isinstance(part, GuardedContexts) else GuardedContexts(part)
    raise TypeError(
        f"guard takes an AgentExecutor, a RequestHandler or a ServerCallContextBuilder, not {type(part).__name__}"
    )
