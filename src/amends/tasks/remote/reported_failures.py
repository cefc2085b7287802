"""Failures that a service reports inside a successful HTTP response, so that none of them is taken for a result."""

from __future__ import annotations

from amends.carriers.extraction import examine
from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.proof import Claim, Proof, rests_on

__all__ = ["redirect_fault", "reported_failure"]


_FAILED_STATES = frozenset({"FAILED", "REJECTED", "CANCELED"})
_NOT_PROCESSED = frozenset({307, 308})
"""Redirects that ask for the same request at another address. After others, the request may have been processed."""


def reported_failure(document: object, content_type: str) -> Fault | None:
    """
    Return the failure that a document reports although its response has a success status; None if it reports none.

    Read are a failed task response, an envelope with `ok: false`, or with `success: false` and an error, a problem document, a
    failed MCP result, a failed or cancelled A2A task, and a JSON-RPC error. Other documents are results, whatever members they have.

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


def _via(document: dict[str, object], content_type: str) -> str | None:
    """How to read a document that reports a failure; None if it does not report one."""
    status = document.get("status")
    if "problem+json" in content_type or _is_problem(document, status):
        return "problem"
    if document.get("jsonrpc") == "2.0":
        return _via_of_answer(document)
    if document.get("isError") is True:
        return "mcp"
    if document.get("ok") is False or (document.get("success") is False and document.get("error")):
        return "cli"
    if _has_failed_a2a_task(document):
        return "a2a"
    if isinstance(status, str) and status.lower() == "failed":
        return "task"
    return "adcp" if isinstance(document.get("adcp_error"), dict) else None


def _via_of_answer(document: dict[str, object]) -> str | None:
    """The same for a JSON-RPC response: the error itself, or a failed result."""
    if isinstance(document.get("error"), dict):
        return "jsonrpc"
    result = document.get("result")
    if not isinstance(result, dict):
        return None
    if result.get("isError") is True:
        return "mcp"
    return "a2a" if _has_failed_a2a_task(result) else None


def _has_failed_a2a_task(document: dict[str, object]) -> bool:
    """Whether it is such a task, or the member `task` is one."""
    for task in (document, document.get("task")):
        status = task.get("status") if isinstance(task, dict) else None
        state = status.get("state") if isinstance(status, dict) else None
        if isinstance(state, str) and state.upper().removeprefix("TASK_STATE_") in _FAILED_STATES:
            return True
    return False


def _is_problem(document: dict[str, object], status: object) -> bool:
    named = isinstance(document.get("type"), str) or isinstance(document.get("detail"), str)
    return named and isinstance(document.get("title"), str) and isinstance(status, int) and status >= 400


@rests_on(Claim.NOT_HAPPENED, Proof.STATUS)
def redirect_fault(status: int) -> Fault:
    """The failure of a response that is a redirect and was not followed: the endpoint's URL has to be corrected."""
    return Fault(
        code="AGENT_UNAVAILABLE",
        vocabulary="task",
        message=f"The service answered with a redirect ({status}); give the endpoint its new URL",
        recovery=Recovery.TERMINAL,
        executed=Executed.NO if status in _NOT_PROCESSED else Executed.MAYBE,
    )
