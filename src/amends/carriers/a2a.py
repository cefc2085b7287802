"""
A2A tasks with AdCP errors (S4), in an artifact's data part or in the status message; versions 0.3 and 1.0.

1.0 has no `kind`, writes states as TASK_STATE_FAILED, wraps the task in `result.task`, and sends whole numbers as
floats. Both versions can be read and written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amends.carriers import jsonrpc
from amends.carriers.layers import KEY, beside, envelope_error, payload_error
from amends.carriers.reading import FAILED, NOT_FAILED, Reading
from amends.core import travel
from amends.core.fault import Fault, Origin
from amends.dialects import adcp
from amends.dialects.members import mapping, text, truthy

__all__ = ["FAILED_STATES", "MIME_TYPE", "WRAPPERS", "read", "task_in", "write"]

FAILED_STATES = frozenset({"failed", "rejected", "TASK_STATE_FAILED", "TASK_STATE_REJECTED"})
_FINISHED = ("completed", "TASK_STATE_COMPLETED")
MIME_TYPE = "application/vnd.adcp.error+json"
"""Written on request. Readers do not require it (A4)."""

_ARTIFACT = Origin("adcp", "artifact")
_STATUS = Origin("adcp", "status_message")

# The members in which a 1.0 response or stream event wraps its content.
WRAPPERS = ("task", "statusUpdate", "status_update", "artifactUpdate", "artifact_update")


def task_in(value: Any) -> Any:
    """Return the task or event inside a result of either version."""
    if isinstance(value, dict):
        for name in WRAPPERS:
            inner = value.get(name)
            if isinstance(inner, dict):
                return inner
    return value


def read(task: Any) -> Reading:
    """Read a task, or a status or artifact event, bare or in its JSON-RPC response."""
    if isinstance(task, dict) and jsonrpc.is_response(task):
        if task.get("error") is not None:
            return jsonrpc.read(task)
        task = task.get("result")
    task = task_in(task)
    if not isinstance(task, dict):
        return NOT_FAILED
    status = mapping(task.get("status")) or {}
    state = text(status.get("state"))
    failed = state in FAILED_STATES
    in_artifacts = list(_artifact_data(task))
    for data, metadata in in_artifacts:
        if truthy(data.get(KEY)):
            return beside(envelope_error(data[KEY], _ARTIFACT), metadata)
    message = mapping(status.get("message")) or {}
    in_message = list(_data(message.get("parts")))
    for data, metadata in in_message:
        if truthy(data.get(KEY)):
            return beside(envelope_error(data[KEY], _STATUS), metadata)
    for data, _ in (*in_artifacts, *in_message):
        reading = payload_error(data, failed=failed, finished=state in _FINISHED)
        if reading is not None:
            return reading
    return FAILED if failed else NOT_FAILED


def _artifact_data(task: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    artifacts = task.get("artifacts")
    if not isinstance(artifacts, list):
        # An artifact event carries one.
        artifacts = [task.get("artifact")]
    for artifact in artifacts:
        if isinstance(artifact, dict):
            yield from _data(artifact.get("parts"))


def _data(parts: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield object and metadata of data parts: `kind` data in 0.3, a `data` member without a kind in 1.0."""
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict):
            data = part.get("data")
            if isinstance(data, dict) and text(part.get("kind", part.get("type", "data"))) == "data":
                yield data, part.get("metadata")


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
    error = {KEY: adcp.encode(fault)}
    text_part: dict[str, Any] = {"text": sentence or fault.message or fault.code}
    metadata: dict[str, Any] = travel.write(fault)
    data_part: dict[str, Any] = {"data": error, "metadata": metadata}
    if mime_type and old:
        metadata["mimeType"] = MIME_TYPE
    elif mime_type:
        data_part["mediaType"] = MIME_TYPE
    if old:
        text_part, data_part = {"kind": "text", **text_part}, {"kind": "data", **data_part}
    task: dict[str, Any] = {
        "id": id,
        "status": {"state": "failed" if old else "TASK_STATE_FAILED"},
        "artifacts": [{"artifactId": "error-result", "parts": [text_part, data_part]}],
    }
    if context_id is not None:
        task["contextId"] = context_id
    return {"kind": "task", **task} if old else task
