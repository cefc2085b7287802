"""
A2A tasks with AdCP errors (S4), in an artifact's data part or in the status message; versions 0.3 and 1.0.

1.0 has no `kind`, writes states as TASK_STATE_FAILED, wraps the task in `result.task`, and sends whole numbers as
floats. Both versions can be read and written.
"""

from __future__ import annotations

from typing import Any

from amends.carriers import detection
from amends.carriers.detection import WRAPPERS, task_in
from amends.core.fault import Fault
from amends.core.reading import Reading
from amends.dialects import adcp, record
from amends.dialects.adcp import KEY, parts_beside
from amends.dialects.adcp_document import FAILED_STATES

__all__ = ["FAILED_STATES", "MIME_TYPE", "WRAPPERS", "read", "task_in", "write"]

MIME_TYPE = "application/vnd.adcp.error+json"
"""Written on request. Readers do not require it (A4)."""


def read(task: Any) -> Reading:
    """Read a task, or a status or artifact event, bare or in its JSON-RPC response."""
    return detection.read(task, tools=False)


def write(
    fault: Fault,
    *,
    id: str,
    context_id: str | None = None,
    sentence: str | None = None,
    version: str = "1.0",
    mime_type: bool = False,
) -> dict[str, Any]:
    """
    Return a failed task with `fault` (A4): one artifact with a text part, and a data part with the error alone.

    If the fault has parts, a data part with `errors` is between them.

    Args:
        fault: in the adcp vocabulary.
        id: the task's id.
        context_id: its context, if there is one.
        sentence: the text for people and models; default: the fault's message.
        version: "1.0" or "0.3".
        mime_type: whether to mark the data part with MIME_TYPE.

    Raises:
        ValueError: for another version.

    """
    if version not in {"0.3", "1.0"}:
        raise ValueError(f"A2A version is 0.3 or 1.0, not {version!r}")
    old = version == "0.3"
    contents: list[dict[str, Any]] = [{KEY: adcp.encode_alone(fault)}]
    if parts := [adcp.encode_alone(part) for part in parts_beside(fault)]:
        contents.insert(0, {"errors": parts})
    text_part: dict[str, Any] = {"text": sentence or fault.message or fault.code}
    data_parts: list[dict[str, Any]] = [{"data": content} for content in contents]
    metadata: dict[str, Any] = record.beside(fault)
    data_parts[-1]["metadata"] = metadata
    if mime_type and old:
        metadata["mimeType"] = MIME_TYPE
    elif mime_type:
        data_parts[-1]["mediaType"] = MIME_TYPE
    if old:
        text_part = {"kind": "text", **text_part}
        data_parts = [{"kind": "data", **part} for part in data_parts]
    task: dict[str, Any] = {
        "id": id,
        "status": {"state": "failed" if old else "TASK_STATE_FAILED"},
        "artifacts": [{"artifactId": "error-result", "parts": [text_part, *data_parts]}],
    }
    if context_id is not None:
        task["contextId"] = context_id
    return {"kind": "task", **task} if old else task
