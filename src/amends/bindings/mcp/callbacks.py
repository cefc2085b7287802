"""
Guards the functions that answer a server's requests: sampling, elicitation, roots.

The SDK sends the text of an exception that such a function raises to the server. A guarded one answers with a JSON-RPC
error that has a standard message and an AdCP error, and the exception is logged.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from inspect import isawaitable

from mcp.shared.exceptions import MCPError

from amends.bindings.mcp.responses import LOG, rpc_error
from amends.serving.reporting import report
from amends.serving.server_errors import classify_safely, with_executed

__all__ = ["guard_callback"]


def guard_callback(callback: Callable[..., object], name: str) -> Callable[..., Awaitable[object]]:
    """Return the function with its failures as JSON-RPC errors; an MCPError that it raises is sent as it is."""

    @wraps(callback)
    async def guarded(*args: object, **options: object) -> object:
        try:
            result = callback(*args, **options)
            return await result if isawaitable(result) else result
        except MCPError:
            raise
        except Exception as exc:  # noqa: BLE001 - failures of any kind are answered
            failure = with_executed(classify_safely(exc, log=LOG), read_only=False)
            number, message, data = rpc_error(report(failure, log=LOG, what=name))
            raise MCPError(number, message, data) from None

    return guarded
