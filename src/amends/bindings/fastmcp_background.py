"""
Tools of FastMCP that run in the background (the tasks extension, SEP-2663), guarded like the others.

A worker calls the tool's function itself, perhaps in another process, and `tasks/get` returns what it stored. So the guard
wraps the functions that the worker gets, and replaces the text of an exception that was raised around them.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from fastmcp import FastMCP
from fastmcp.tools.base import Tool, ToolResult
from fastmcp.tools.function_tool import FunctionTool
from fastmcp.utilities.components import FastMCPComponent
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, CallToolResult

from amends.bindings.mcp.guard import Guard
from amends.bindings.mcp.handler_errors import raised_by_client, unwrap
from amends.bindings.mcp.responses import ERRORS_BESIDE_SCHEMA, report, rpc_error, tool_result
from amends.bindings.mcp.tool_declarations import is_read_only, is_repeatable
from amends.dialects.adcp import KEY
from amends.serving.server_errors import with_executed

__all__ = ["GET_TASK", "guard_background_tools", "without_exception_text"]

GET_TASK = "tasks/get"


def guard_background_tools(guard: Guard, server: FastMCP[object]) -> None:
    """Wrap `FastMCP.get_tasks`, which returns the components that the worker runs, also those of mounted servers."""
    get_tasks = server.get_tasks

    @wraps(get_tasks)
    async def guarded() -> list[FastMCPComponent]:
        return [_guarded(guard, each) if isinstance(each, Tool) else each for each in await get_tasks()]

    setattr(server, "get_tasks", guarded)  # noqa: B010


def _guarded(guard: Guard, tool: Tool) -> Tool:
    """Return a copy of a tool whose failures are results with an AdCP error."""
    if isinstance(tool, FunctionTool):
        return tool.model_copy(update={"fn": _answering(guard, tool, tool.fn)})
    changed = tool.model_copy()
    # The worker calls `run`, which is not a field of the model.
    object.__setattr__(changed, "run", _answering(guard, tool, tool.run))
    return changed


def _answering(guard: Guard, tool: Tool, function: Callable[..., object]) -> Callable[..., Awaitable[object]]:
    @wraps(function)
    async def answering(*args: object, **options: object) -> object:
        try:
            result = function(*args, **options)
            return await result if inspect.isawaitable(result) else result
        except Exception as exc:  # noqa: BLE001 - failures of any kind are answered
            first = unwrap(exc)
            if isinstance(first, MCPError) and not raised_by_client(first):
                # The author chose this answer.
                raise first from None
            failure = guard.wrappers.told(
                guard.classify(exc), tool.name, read_only=is_read_only(tool), repeatable=is_repeatable(tool)
            )
            # A task exists only in protocol versions whose clients accept an error beside an output schema.
            fault = report(failure, "background tool", tool, None)
            result = tool_result(fault, ERRORS_BESIDE_SCHEMA)
            return ToolResult.from_mcp_result(CallToolResult.model_validate(result))

    return answering


def without_exception_text(guard: Guard, result: Any) -> Any:
    """
    Return the result of `tasks/get` without the text of an exception.

    A task fails if something around its tool raises: a dependency, the worker, the store. The extension sends the text of
    that exception as the message of a -32603.
    """
    error = getattr(result, "error", None)
    if getattr(result, "status", None) != "failed" or not isinstance(error, dict):
        return result
    data = error.get("data")
    if error.get("code") != INTERNAL_ERROR or (isinstance(data, dict) and KEY in data):
        return result
    # The worker has logged the exception.
    failure = with_executed(guard.classify(RuntimeError()), read_only=False)
    number, message, data = rpc_error(failure.fault)
    return result.model_copy(
        update={
            "error": {"code": number, "message": message, "data": data},
            "status_message": message,
        }
    )
