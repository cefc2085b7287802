"""Failures that a service reports inside a successful HTTP response, so that none of them is taken for a result."""

from __future__ import annotations

from typing import Any

from amends.carriers.extraction import examine
from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault

__all__ = ["redirect_fault", "reported_failure"]


def reported_failure(document: Any, content_type: str) -> Fault | None:
    """
    Return the failure that a document reports although its response has a success status; None if it reports none.

    Read are a failed task response, an envelope with `ok: false`, a problem document, a failed MCP result or A2A task, and a
    JSON-RPC error. Other documents are results, whatever members they have.

    >>> reported_failure({"id": "t-1", "status": "failed", "error": {"code": "AGENT_BUSY"}}, "application/json").code
    'AGENT_BUSY'
    >>> reported_failure({"status": "failed", "reason": "?"}, "application/json").code
    'INTERNAL_ERROR'
    >>> reported_failure({"code": "DE", "message": "Germany"}, "application/json") is None
    True
    """
    if not isinstance(document, dict):
        return None
    via = _via(document, content_type)
    if via is None:
        return None
    reading = examine(document, via, native=True)[1]
    if reading.fault is not None:
        return reading.fault
    # It reports a failure and says nothing about it.
    return Fault(code="INTERNAL_ERROR", vocabulary="task") if via != "jsonrpc" or reading.failed else None


def _via(document: dict[str, Any], content_type: str) -> str | None:
    """How to read a document that reports a failure; None if it does not report one."""
    status = document.get("status")
    if "problem+json" in content_type or _is_problem(document, status):
        return "problem"
    if document.get("jsonrpc") == "2.0":
        return _via_of_answer(document)
    if document.get("isError") is True:
        return "mcp"
    if document.get("ok") is False:
        return "cli"
    if isinstance(status, dict):
        return "a2a" if _failed_state(status.get("state")) else None
    if status == "failed":
        return "task"
    return "adcp" if isinstance(document.get("adcp_error"), dict) else None


def _via_of_answer(document: dict[str, Any]) -> str | None:
    """The same for a JSON-RPC response: the error itself, or a failed result."""
    if isinstance(document.get("error"), dict):
        return "jsonrpc"
    result = document.get("result")
    if not isinstance(result, dict):
        return None
    if result.get("isError") is True:
        return "mcp"
    task = result.get("task", result)
    status = task.get("status") if isinstance(task, dict) else None
    return "a2a" if isinstance(status, dict) and _failed_state(status.get("state")) else None


def _failed_state(state: Any) -> bool:
    return isinstance(state, str) and state.upper().removeprefix("TASK_STATE_") in {"FAILED", "REJECTED"}


def _is_problem(document: dict[str, Any], status: Any) -> bool:
    named = isinstance(document.get("type"), str) and isinstance(document.get("title"), str)
    return named and isinstance(status, int) and status >= 400


def redirect_fault(status: int) -> Fault:
    """The failure of a response that is a redirect and was not followed: the endpoint's URL has to be corrected."""
    return Fault(
        code="AGENT_UNAVAILABLE",
        vocabulary="task",
        message=f"The service answered with a redirect ({status}); give the endpoint its new URL",
        recovery=Recovery.TERMINAL,
        executed=Executed.NO,
    )
