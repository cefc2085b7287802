"""
Whether a request to a route that computes does nothing else.

A call of a model may be sent again, because it only costs its price. That is so while the request names nothing that acts or stays
at the service: a tool that the service runs, a remote MCP server, a run in the background, a stored conversation, a file. The
service file says by what a request names them (`[acts]`, beside `computes`). What cannot be read counts as naming one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from amends.proof import Claim, Proof, rests_on
from amends.vendors.conditions import condition
from amends.vendors.model import Acts, Vendor

__all__ = ["only_computes", "route_computes"]

_MOST_VALUES = 20_000
"""Values of a body that are looked at. More: longer waits after a failure; fewer: long conversations are not repeated."""
_DEPTH = 40
_MEDIA = ("audio/", "video/", "image/", "application/octet-stream")
"""Bodies without members: what is sent is what is computed on."""
_SCHEMAS = frozenset(
    {
        "parameters",
        "input_schema",
        "inputSchema",
        "schema",
        "json_schema",
        "response_schema",
        "responseSchema",
    }
    | {"parametersJsonSchema", "responseJsonSchema", "parameter_definitions"}
)
"""Members that describe values: a name in them names nothing."""
_CALLED = {"tool_use": "input", "function_call": "arguments"}
"""Type of a call of the caller's own tool → the member with its arguments."""


def route_computes(known: Vendor, method: str, path: str) -> bool:
    """
    Return whether the route of a request is one that computes.

    >>> from amends.vendors.registry import vendor
    >>> route_computes(vendor("openai"), "POST", "/v1/chat/completions")
    True
    """
    return method == "POST" and any(
        route in path if route.endswith("/") else path.endswith(route) for route in known.computes
    )


@rests_on(Claim.MAY_REPEAT, Proof.HOST, Proof.USER)
def only_computes(
    known: Vendor, body: bytes | bytearray | None, headers: Mapping[str, str], query: str = ""
) -> bool:
    """
    Return whether a request to such a route names nothing that acts or stays at the service.

    >>> from amends.vendors.registry import vendor
    >>> only_computes(vendor("openai"), b'{"model": "m", "input": "hi"}', {})
    True
    >>> only_computes(vendor("openai"), b'{"model": "m", "input": "hi", "tools": [{"type": "web_search"}]}', {})
    False

    Args:
        known: the service, which has to be known by its host or by the user's word.
        body: the body; None if it cannot be read.
        headers: the headers of the request, with names in lower case.
        query: the query of its address.

    """
    acts = known.acts
    if acts is None:
        return True
    if body is None or headers.get("content-encoding", "identity") != "identity":
        return False
    kind = headers.get("content-type", "").lower()
    document: Any = {}
    if body and not kind.startswith(_MEDIA):
        try:
            document = msgspec.json.decode(body)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return False
        if not isinstance(document, dict):
            return False
    asked = {**document, "headers": dict(headers), "query": dict(parse_qsl(query, max_num_fields=None))}
    if any(condition(each)(asked) for each in acts.when):
        return False
    return _own_tools(document, acts) and not _names(document, frozenset(acts.members))


def _own_tools(document: dict[str, Any], acts: Acts) -> bool:
    """Return whether the caller runs all tools itself."""
    tools = document.get("tools")
    if tools is None:
        return True
    if not isinstance(tools, list):
        return False
    if acts.tool_members:
        return all(isinstance(tool, dict) and set(acts.tool_members).issuperset(tool) for tool in tools)
    return all(isinstance(tool, dict) and _type_of(tool) in acts.tools for tool in tools)


def _type_of(tool: dict[str, Any]) -> str:
    """Return the type of a tool without the date of its version; empty if it has none."""
    kind = tool.get("type", "")
    if not isinstance(kind, str):
        return "?"
    name, _, version = kind.rpartition("_")
    return name if name and version.isdecimal() and len(version) == 8 else kind


def _names(document: dict[str, Any], members: frozenset[str]) -> bool:
    """Return whether a member with one of these names is in the document, or may be: it is too large or too deep."""
    level: list[Any] = [document]
    looked = 0
    for _ in range(_DEPTH):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                if not members.isdisjoint(value):
                    return True
                skipped = _CALLED.get(value["type"]) if isinstance(value.get("type"), str) else None
                below += [
                    each
                    for name, each in value.items()
                    if isinstance(each, dict | list) and name not in _SCHEMAS and name != skipped
                ]
            else:
                below += [each for each in value if isinstance(each, dict | list)]
            looked += len(value)
            if looked > _MOST_VALUES:
                return True
        if not below:
            return False
        level = below
    return True
