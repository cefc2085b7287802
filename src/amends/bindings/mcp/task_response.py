"""A task of MCP as a task response of the agent error contract."""

from __future__ import annotations

from collections.abc import Mapping

from amends.carriers import task as task_carrier
from amends.carriers.extraction import examine
from amends.carriers.mcp_task import STATES, is_task
from amends.core.fault import Fault
from amends.core.vocabulary import row_for
from amends.core.wire import as_dict
from amends.core.wrong_calls import explains_wrong_calls

__all__ = ["task_response"]


@explains_wrong_calls
def task_response(task: object) -> dict[str, object]:
    """
    Return a task of MCP as a task response of the agent error contract: `id`, `status`, and `error` if it failed.

    Use it to report the tool calls that a server runs in the background in the states of an orchestrator. A completed task
    whose result has `isError: true` has failed.

    Args:
        task: the result of `tasks/get`, as an object of the SDK or as a mapping.

    Raises:
        TypeError: it is no task of MCP.

    >>> task_response({"taskId": "7", "status": "working"})
    {'id': '7', 'status': 'in_progress'}

    """
    document = as_dict(task.model_dump(by_alias=True, mode="json") if hasattr(task, "model_dump") else task)
    if document is None or not is_task(document):
        given = "an object" if isinstance(task, Mapping) else type(task).__name__
        raise TypeError(f"task_response takes the result of tasks/get, with taskId and status, not {given}")
    id = str(document["taskId"])
    _, reading = examine(document, "mcp", native=True)
    if reading.failed and reading.fatal is not False:
        fault = reading.fault or Fault(
            code="INTERNAL_ERROR", message=row_for("everyday", "INTERNAL_ERROR").message
        )
        return task_carrier.write(fault, id=id)
    return {"id": id, "status": STATES[document["status"]]}
