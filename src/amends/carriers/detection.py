"""
AdCP's detection order over a whole document (A6), which may have several of its places at once.

1. `structuredContent.adcp_error` of a tool result with `isError: true`
2. `adcp_error` in a data part of an A2A artifact
3. `adcp_error` in a data part of an A2A status message
4. `error.data.adcp_error` of a JSON-RPC response
5. `adcp_error` in a text item that is JSON, of a tool result with `isError: true`; after the text items, in embedded resources
   that are JSON
6. `payload.errors[0]` or `errors[0]`: of `structuredContent`, of a data part, of the JSON text of a failed tool result, or of
   the document itself; before them, the `result` of a webhook that reports a failed task

The document is a tool result, a task, an event of a stream, or the JSON-RPC response that contains one.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from typing import Any

from amends.carriers import jsonrpc
from amends.carriers.mcp_task import outcome_of
from amends.core.fault import Origin
from amends.core.reading import FAILED, NOT_FAILED, Reading
from amends.core.wire import Unreadable, as_dict, plain, read_strict
from amends.dialects.adcp import KEY
from amends.dialects.adcp_document import (
    FAILED_STATES,
    FINISHED_STATES,
    envelope_error,
    payload_error,
    webhook_error,
)
from amends.dialects.members import mapping, text, truthy

__all__ = ["WRAPPERS", "read", "state_of", "task_in", "text_items"]

_STRUCTURED = Origin("adcp", "structuredContent")
_ARTIFACT = Origin("adcp", "artifact")
_STATUS = Origin("adcp", "status_message")
_TEXT = Origin("adcp", "text_fallback")

WRAPPERS = ("task", "statusUpdate", "status_update", "artifactUpdate", "artifact_update")
"""The members in which a response or stream event of A2A 1.0 wraps its content."""


def read(document: Any, *, tools: bool = True, tasks: bool = True, within: int | None = None) -> Reading:
    """
    Read a document in the order of this module.

    A tool result need not be plain: it may be large, so only what is looked at is converted. With `tasks`, the document
    has to be plain.

    Args:
        document: the document.
        tools: whether to look for tool results.
        tasks: whether to look for tasks.
        within: size in bytes of the document that it was parsed from, if it was.

    """
    found = document if type(document) is dict else as_dict(document)
    if found is None:
        return NOT_FAILED
    if tools and found.get("isError") is True:
        # The most common place, before anything else is looked at. Without this, extraction takes 0.8 of adcp's time
        # instead of 0.3 (bench/extraction.py; the target is 0.35).
        structured = found.get("structuredContent")
        if type(structured) is not dict:
            structured = as_dict(structured)
        if structured is not None:
            error = structured.get(KEY)
            if isinstance(error, dict) or truthy(error):
                beside = (structured, found)
                return envelope_error(error, _STRUCTURED, None, beside, within, found.get("_meta"))
    if tools:
        found = outcome_of(found)
    results = list(_results(found, tasks=tasks))
    failing = [each for each in results if each.get("isError") is True] if tools else []
    for result in failing:
        structured = as_dict(result.get("structuredContent"))
        if structured is not None and truthy(structured.get(KEY)):
            beside = (structured, result)
            return envelope_error(structured[KEY], _STRUCTURED, None, beside, within, result.get("_meta"))
    artifacts = [data for each in results for data in _artifact_data(each)] if tasks else []
    messages = [data for each in results for data in _message_data(each)] if tasks else []
    holders = [data for data, _ in (*artifacts, *messages)]
    for origin, parts in ((_ARTIFACT, artifacts), (_STATUS, messages)):
        for data, metadata in parts:
            if truthy(data.get(KEY)):
                return envelope_error(data[KEY], origin, beside=(data, *holders), meta=metadata)
    error = plain(found.get("error")) if jsonrpc.is_response(found) else None
    in_error = jsonrpc.error_in(error)
    if in_error is not None:
        return in_error
    texts: list[dict[str, Any]] = []
    for result in failing:
        for content in _text_documents(result):
            if truthy(content.get(KEY)):
                return envelope_error(content[KEY], _TEXT, beside=(content,), meta=result.get("_meta"))
            texts.append(content)
    for reported in map(webhook_error, results):
        if reported is not None:
            return reported
    states = [state_of(each) for each in results] if tasks else []
    failed = bool(failing) or truthy(error) or not FAILED_STATES.isdisjoint(states)
    finished = (
        not tasks or not FINISHED_STATES.isdisjoint(states) or (tools and any(map(_is_result, results)))
    )
    structures = (plain(each.get("structuredContent")) for each in results if tools)
    for payload in (*structures, *holders, *texts, *map(_own_payload, results)):
        in_payload = payload_error(payload, failed=failed, finished=finished)
        if in_payload is not None:
            return in_payload
    return FAILED if failed else NOT_FAILED


def task_in(value: Any) -> Any:
    """Return the task or event inside a result of either version of A2A."""
    if isinstance(value, dict):
        for name in WRAPPERS:
            inner = value.get(name)
            if isinstance(inner, dict):
                return inner
    return value


def state_of(task: dict[str, Any]) -> str | None:
    """Return the state of a task or status event."""
    return text((mapping(task.get("status")) or {}).get("state"))


def text_items(content: Any) -> Iterator[str]:
    """Yield the texts of a tool result's plain `content`."""
    for item in content if isinstance(content, list) else ():
        if isinstance(item, dict) and text(item.get("type")) == "text":
            found = text(item.get("text"))
            if found is not None:
                yield found


def _results(document: dict[str, Any], *, tasks: bool) -> Iterator[dict[str, Any]]:
    """Yield the document, the result of a JSON-RPC response, and the tasks that they wrap."""
    inner = as_dict(document.get("result")) if jsonrpc.is_response(document) else None
    for each in (document, inner):
        if each is not None:
            yield each
            wrapped = task_in(each) if tasks else each
            if wrapped is not each:
                yield wrapped


def _is_result(value: dict[str, Any]) -> bool:
    return "isError" in value or "structuredContent" in value or "content" in value


def _own_payload(document: dict[str, Any]) -> dict[str, Any] | None:
    """Return the members of a document that may hold a payload's errors."""
    members: dict[str, Any] = {
        name: plain(document[name]) for name in ("payload", "errors") if name in document
    }
    return members or None


def _text_documents(result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the text items and the embedded resources that are JSON objects."""
    items = plain(result.get("content"))
    for content in (*text_items(items), *_resources(items)):
        # A text without a brace is prose and need not be parsed.
        if "{" not in content:
            continue
        try:
            parsed = read_strict(content)
        except Unreadable:
            continue
        if isinstance(parsed, dict):
            yield parsed


def _resources(items: Any) -> Iterator[str]:
    """Yield the texts of embedded resources, also of those that are sent as base64."""
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and text(item.get("type")) == "resource":
            resource = mapping(item.get("resource")) or {}
            content = text(resource.get("text"))
            if content is None:
                content = _decoded(text(resource.get("blob")))
            if content is not None:
                yield content


_LONGEST_BLOB = 65_536
"""Characters: a document with an error has at most 4,096 bytes for each of its two layers; a longer blob is a file."""


def _decoded(blob: str | None) -> str | None:
    """Return the text of a blob; None if it is too long, or no base64 of UTF-8."""
    if blob is None or len(blob) > _LONGEST_BLOB:
        return None
    try:
        return b64decode(blob, validate=True).decode()
    except ValueError:
        return None


def _artifact_data(task: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    artifacts = task.get("artifacts")
    if not isinstance(artifacts, list):
        # An artifact event carries one.
        artifacts = [task.get("artifact")]
    for artifact in artifacts:
        if isinstance(artifact, dict):
            yield from _data(artifact.get("parts"))


def _message_data(task: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    message = (mapping(task.get("status")) or {}).get("message")
    return _data((mapping(message) or {}).get("parts"))


def _data(parts: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield object and metadata of data parts: `kind` data in 0.3, a `data` member without a kind in 1.0."""
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict):
            data = part.get("data")
            if isinstance(data, dict) and text(part.get("kind", part.get("type", "data"))) == "data":
                # A Struct inside an Any, or inside the message of an older version.
                inner = data.get("value") if "@type" in data else data.get("data") if len(data) == 1 else None
                yield (inner if isinstance(inner, dict) else data), part.get("metadata")
