"""
Tasks of MCP: the tasks extension of 2026-07-28 (`tasks/get` has the outcome in it), and the tasks of 2025-11-25.

| MCP | agent error contract |
|---|---|
| working | in_progress |
| input_required | input_required: answer and go on; not a failure |
| completed | completed; failed if the tool's result has `isError: true` |
| failed | failed |
| cancelled | cancelled |
"""

from __future__ import annotations

from typing import Any

from amends.core.wire import as_dict
from amends.dialects.adcp_document import webhook_error
from amends.dialects.members import mapping, text

__all__ = ["STATES", "is_task", "outcome_of"]

STATES = {
    "working": "in_progress",
    "input_required": "input_required",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}
"""The states of MCP tasks, with those of the agent error contract."""


def is_task(value: dict[str, Any]) -> bool:
    """Whether an object is a task of MCP."""
    return "taskId" in value and text(value.get("status")) in STATES


def outcome_of(document: dict[str, Any]) -> dict[str, Any]:
    """
    Return what decides about a task: the tool's result, or a JSON-RPC response with the task's error.

    A document that is no task is returned as it is.

    >>> outcome_of({"taskId": "t", "status": "failed", "error": {"code": -32603}})
    {'jsonrpc': '2.0', 'error': {'code': -32603}}
    """
    task = document
    if "taskId" not in task:
        inner = as_dict(document.get("result")) if "jsonrpc" in document else document
        if inner is None:
            return document
        # The answer to a request that made a task has it inside.
        task = inner if "taskId" in inner else as_dict(inner.get("task")) or inner
    if not is_task(task):
        return document
    status = text(task.get("status"))
    if status == "completed":
        return as_dict(task.get("result")) or {}
    if status == "failed" and "error" not in task and webhook_error(task) is not None:
        # A webhook of AdCP, which has members of the same names.
        return task
    if status == "failed":
        message = text(task.get("statusMessage")) or ""
        return {"jsonrpc": "2.0", "error": mapping(task.get("error")) or {"message": message}}
    return {}
