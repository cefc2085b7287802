"""
Claude Agent SDK: the failure of an in-process MCP tool becomes a text that the model can act on.

    from claude_agent_sdk import create_sdk_mcp_server, tool
    from amends.bindings.claude_agent_sdk import Failures

    failures = Failures(read_only=["search"])

    @failures.guard
    @tool("search", "Search the shop", {"query": str})
    async def search(args): ...

    server = create_sdk_mcp_server("shop", tools=[search])

Failures are counted per client (`ClaudeSDKClient`, or a `query`).
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Mapping

try:
    import anyio
    from claude_agent_sdk import SdkMcpTool
    from sniffio import AsyncLibraryNotFoundError
except ImportError as missing:
    raise ImportError(
        "amends.bindings.claude_agent_sdk needs the Claude Agent SDK: pip install claude-agent-sdk"
    ) from missing

from amends.bindings.tool_arguments import by_schema, only_reads
from amends.bindings.tool_calls import AGAIN, Caller, OneRun, ReturnedError, ToolFailure, check_description

__all__ = ["Failures"]


class Failures(OneRun):
    """Makes tools whose failures are texts for the model."""

    def running(self) -> Caller:
        """Return the session of the in-process server that this code is in; each client of the SDK has one."""
        try:
            serving = anyio.get_current_task().parent_id
            return Caller(run=next((task for task in asyncio.all_tasks() if id(task) == serving), None))
        except (AsyncLibraryNotFoundError, RuntimeError):
            return Caller()

    def guard(self, tool: SdkMcpTool[object]) -> SdkMcpTool[object]:
        """Return the tool as one that returns the text of its failures, marked as an error."""
        handler = tool.handler
        read_only = only_reads(tool.annotations)

        async def guarded(arguments: object) -> object:
            given = arguments if isinstance(arguments, Mapping) else {}
            received = by_schema(_schema(tool.input_schema), given)
            result = await self.current.acall(
                tool.name,
                received,
                lambda: handler(arguments),
                read_only=read_only,
                failure_of=_returned_error,
                restore=_restored,
                takes_again=AGAIN in received,
            )
            if not isinstance(result, ToolFailure):
                return result
            return {"content": [{"type": "text", "text": result.text}], "is_error": True}

        return dataclasses.replace(tool, handler=guarded)

    def check(self, tool: SdkMcpTool[object]) -> SdkMcpTool[object]:
        """
        Return a tool that finds out whether an earlier call of `tool` happened: `tools=[pay, failures.check(pay)]`.

        The effect of the tool is declared with a verification.
        """
        name = self.calls.offer_check(tool.name)

        async def find_out(arguments: object) -> object:
            given = arguments if isinstance(arguments, Mapping) else {}
            received = by_schema(_schema(tool.input_schema), given)
            return _restored(await self.current.acheck(tool.name, received))

        described = check_description(tool.name)
        return dataclasses.replace(tool, name=name, description=described, handler=find_out)


_NAMES = {int: "integer", float: "number", bool: "boolean", str: "string"}


def _schema(declared: object) -> object:
    """Return the JSON Schema of a tool, which its author may give as the types of the arguments."""
    types = declared if isinstance(declared, Mapping) else getattr(declared, "__annotations__", None)
    if not isinstance(types, Mapping) or "properties" in types:
        return types
    properties = {name: {"type": _NAMES.get(kind)} for name, kind in types.items()}
    return {"type": "object", "properties": properties}


def _restored(value: object) -> object:
    """Return the result of a call whose outcome the ledger has: a stored result, or a value that `verify` or a person gave."""
    if isinstance(value, Mapping) and "content" in value:
        return value
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return {"content": [{"type": "text", "text": text}]}


def _returned_error(result: object) -> Exception | None:
    """Return the failure that a result says."""
    if not isinstance(result, Mapping):
        return None
    return ReturnedError() if True in (result.get("is_error"), result.get("isError")) else None
