"""The scripted part of a model: what it says next, and values that a JSON Schema allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

__all__ = ["Turn", "next_turn", "pieces", "sample"]

_DONE = "All done."


class Turn(msgspec.Struct, frozen=True):
    """What the model says: a text, or a call of a tool."""

    text: str = ""
    tool: str = ""
    arguments: Any = None


class Tool(msgspec.Struct, frozen=True):
    """A tool that the caller offers."""

    name: str
    schema: Any = None


def next_turn(
    script: Sequence[Any], turns: int, tools: Sequence[Tool], called: Sequence[str], schema: Any = None
) -> Turn:
    """
    Return what the model says: the next line of its script, else a call of each tool in turn, and then that it is done.

    >>> next_turn([], 0, [Tool("order", {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})], [])
    Turn(text='', tool='order', arguments={'n': 1})

    Args:
        script: the lines of the script.
        turns: how often the model has spoken.
        tools: the tools that the caller offers.
        called: the names of the tools that were called before.
        schema: the JSON Schema of the text that is asked for.

    """
    if script:
        line = script[min(turns, len(script) - 1)]
        if isinstance(line, Mapping):
            return Turn(tool=str(line["tool"]), arguments=line.get("arguments", {}))
        return Turn(text=str(line))
    for tool in tools:
        if tool.name not in called:
            return Turn(tool=tool.name, arguments=sample(tool.schema))
    if schema is not None:
        return Turn(text=msgspec.json.encode(sample(schema)).decode())
    return Turn(text=_DONE)


def sample(schema: Any, root: Any = None, depth: int = 0) -> Any:
    """
    Return a value that a JSON Schema allows.

    >>> sample({"type": "object", "properties": {"item": {"type": "string"}, "size": {"enum": ["L"]}}, "required": ["item", "size"]})
    {'item': 'example', 'size': 'L'}
    """
    if not isinstance(schema, Mapping) or depth > 12:
        return {}
    root = schema if root is None else root
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target: Any = root
        for part in reference.lstrip("#/").split("/"):
            target = target.get(part, {}) if isinstance(target, Mapping) else {}
        return sample(target, root, depth + 1)
    for name in ("const", "default"):
        if name in schema:
            return schema[name]
    for name in ("enum", "examples"):
        if schema.get(name):
            return schema[name][0]
    for name in ("anyOf", "oneOf", "allOf"):
        if schema.get(name):
            return sample(schema[name][0], root, depth + 1)
    kind = schema.get("type", "object")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        members = schema.get("properties", {})
        required = schema.get("required", ())
        return {name: sample(members[name], root, depth + 1) for name in members if name in required}
    if kind == "array":
        return [sample(schema.get("items", {}), root, depth + 1)] * int(schema.get("minItems", 0))
    if kind in {"integer", "number"}:
        return max(1, schema.get("minimum", 1))
    return {"string": "example", "boolean": True, "null": None}.get(str(kind), "example")


def pieces(text: str, size: int = 4) -> list[str]:
    """Return a text in pieces, as a stream sends it."""
    return [text[at : at + size] for at in range(0, len(text), size)] or [""]
