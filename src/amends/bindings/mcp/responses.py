"""Failures as MCP responses: an isError result for tools, a JSON-RPC error for everything else (A1)."""

from __future__ import annotations

from amends.carriers.mcp import result
from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.core.vocabularies.adcp import VOCABULARY
from amends.dialects.adcp import KEY, parts_beside
from amends.logs import logger
from amends.serving import reporting
from amends.serving.adcp_error import error_object, sentence
from amends.serving.reporting import record_beside
from amends.serving.server_errors import Failure

__all__ = [
    "ERRORS_BESIDE_SCHEMA",
    "INTERNAL",
    "INVALID",
    "LOG",
    "client_of",
    "may_be_structured",
    "report",
    "rpc_error",
    "tool_result",
]

LOG = logger("amends.mcp")

INTERNAL, INVALID = -32603, -32602
ERRORS_BESIDE_SCHEMA = "2026-07-28"
"""
The first protocol version whose clients do not validate the `structuredContent` of an error against the tool's output
schema. In earlier versions the error of a tool with an output schema is text alone (design section 8).
"""
_READ_ERRORS_BESIDE_SCHEMA = frozenset({("mcp", "0.1.0")})
"""
Clients of earlier versions that do not validate it either, by the name and version that they send: the Python SDK's default
(1.10 to 2.3 were tried). A program that names itself may use any SDK, so it is not known.
"""
_LONGEST_NAME = 64
_LONGEST_URI = 2048


def report(failure: Failure, method: str, params: object, meta: object) -> Fault:
    """
    Log a failure of a request, set the attributes of the current span, and return the fault to send.

    Args:
        failure: the failure to answer.
        method: the request's method.
        params: the request's parameters; only the `name` or `uri` in them is logged.
        meta: the request's `_meta`, which may hold a `traceparent`.

    """
    traceparent = meta.get("traceparent") if isinstance(meta, dict) else None
    return reporting.report(
        failure,
        log=LOG,
        what=f"{method} {_name_in(params)}",
        traceparent=traceparent if isinstance(traceparent, str) else None,
    )


def _name_in(params: object) -> str:
    """Return the name of the tool or prompt, or the URI of the resource: quoted and cut, because the caller wrote it."""
    for attribute in ("name", "uri"):
        value = getattr(params, attribute, None)
        if value is not None:
            return repr(str(value)[:_LONGEST_NAME])
    return ""


def client_of(ctx: object) -> object:
    """
    Return the `Implementation` that the client of a request sent, or None.

    >>> client_of(None) is None
    True
    """
    params = getattr(getattr(ctx, "session", None), "client_params", None)
    return getattr(params, "client_info", None)


def may_be_structured(protocol: str, client: object) -> bool:
    """
    Return whether the error of a tool with an output schema may have `structuredContent`.

    >>> from mcp_types import Implementation
    >>> may_be_structured("2025-11-25", Implementation(name="mcp", version="0.1.0"))
    True
    >>> may_be_structured("2025-11-25", Implementation(name="editor", version="1.0"))
    False

    Args:
        protocol: the negotiated protocol version.
        client: the client's `Implementation`, or None if it sent none.

    """
    if protocol >= ERRORS_BESIDE_SCHEMA:
        return True
    return (getattr(client, "name", None), getattr(client, "version", None)) in _READ_ERRORS_BESIDE_SCHEMA


def tool_result(fault: Fault, protocol: str, *, structured: bool = True) -> dict[str, object]:
    """
    Return the isError result of a fault in the adcp vocabulary, in both layers (A2, A5).

    Args:
        fault: the fault.
        protocol: the negotiated protocol version.
        structured: False for text alone.

    """
    error = error_object(fault)
    parts = [error_object(part) for part in fault.errors if part.vocabulary == VOCABULARY.name]
    return result(
        error,
        parts=parts or None,
        protocol=protocol,
        sentence=sentence(error),
        structured=structured,
        meta=record_beside(fault),
    )


def rpc_error(fault: Fault, params: object = None) -> tuple[int, str, dict[str, object]]:
    """
    Return number, message and data of the JSON-RPC error for a failed resource, prompt or listing.

    AdCP's three reserved numbers mean that nothing ran, so a handler's failure does not use them. The message is the one
    of the error; `data` has the URI of the resource, as the SDKs send it.
    """
    error = error_object(fault)
    data: dict[str, object] = {KEY: error, **record_beside(fault)}
    if parts := [error_object(part) for part in parts_beside(fault)]:
        data["errors"] = parts
    uri = getattr(params, "uri", None)
    if uri is not None:
        data["uri"] = str(uri)[:_LONGEST_URI]
    number = INVALID if fault.recovery is Recovery.CORRECTABLE else INTERNAL
    return number, error.get("message") or VOCABULARY.row(fault.code).message, data
