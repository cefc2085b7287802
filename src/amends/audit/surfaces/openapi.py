"""Reads from an OpenAPI document which invalid requests can be sent without changing anything."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

__all__ = ["Operation", "operations"]

_METHODS = ("get", "post", "put", "patch", "delete")
_TYPED = frozenset({"integer", "number", "boolean", "object", "array"})
MAX_OPERATIONS = 200


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One operation, as far as probes need it."""

    method: str
    path: str
    """With every parameter filled in."""
    typed_query: str | None = None
    """A query parameter that a text cannot be the value of."""
    typed_path: str | None = None
    """The path with a text for a parameter that must be a number."""
    required_query: tuple[str, ...] = ()
    wrong_body: dict[str, Any] | None = None
    """A body in which a member has a wrong type; None if the schema has no typed member."""
    requires_members: bool = False
    json_body: bool = False
    secured: bool = False


def operations(document: Any) -> list[Operation]:
    """
    Return the operations of an OpenAPI 3 document, those that only read first. Anything else gives an empty list.

    >>> paths = {"/items/{id}": {"get": {"parameters": [{"name": "id", "in": "path", "schema": {"type": "integer"}}]}}}
    >>> operations({"paths": paths})[0].typed_path
    '/items/amends-audit'
    """
    paths = document.get("paths") if isinstance(document, Mapping) else None
    if not isinstance(paths, Mapping):
        return []
    found = [
        operation
        for path, item in list(paths.items())[:MAX_OPERATIONS]
        if isinstance(item, Mapping)
        for operation in _of_path(document, str(path), item)
    ]
    return sorted(found, key=lambda one: (one.method != "GET", one.path, one.method))


def _of_path(document: Mapping[str, Any], path: str, item: Mapping[str, Any]) -> Iterator[Operation]:
    for method in _METHODS:
        operation = item.get(method)
        if not isinstance(operation, Mapping):
            continue
        parameters = [
            _resolved(document, each)
            for each in [*_list(item.get("parameters")), *_list(operation.get("parameters"))]
        ]
        schemas = {
            (str(each.get("in")), str(each.get("name"))): _resolved(document, each.get("schema"))
            for each in parameters
        }
        queries = [name for place, name in schemas if place == "query"]
        numbers = [name for (place, name), each in schemas.items() if place == "path" and _typed(each)]
        content = _resolved(document, operation.get("requestBody")).get("content")
        body = content.get("application/json") if isinstance(content, Mapping) else None
        schema = _resolved(document, body.get("schema")) if isinstance(body, Mapping) else {}
        yield Operation(
            method=method.upper(),
            path=_filled(path, schemas, None),
            typed_query=next((name for name in queries if _typed(schemas["query", name])), None),
            typed_path=_filled(path, schemas, numbers[0]) if numbers else None,
            required_query=tuple(
                str(each.get("name"))
                for each in parameters
                if each.get("in") == "query" and each.get("required") is True
            ),
            wrong_body=_wrong_body(document, schema),
            requires_members=bool(_list(schema.get("required"))),
            json_body=isinstance(body, Mapping),
            secured=bool(_list(operation.get("security", document.get("security")))),
        )


def _filled(path: str, schemas: Mapping[tuple[str, str], Mapping[str, Any]], wrong: str | None) -> str:
    """Return the path with values that fit their types; `wrong` names the parameter that gets a text."""

    def value(match: re.Match[str]) -> str:
        name = match.group(1).partition(":")[0]
        return "0" if _typed(schemas.get(("path", name), {})) and name != wrong else "amends-audit"

    return re.sub(r"\{([^}]*)\}", value, path)


def _wrong_body(document: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a body with a text for every member that cannot be one."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return None
    wrong = {
        str(name): "amends-audit"
        for name, each in properties.items()
        if _typed(_resolved(document, each)) and _resolved(document, each).get("type") != "array"
    }
    return wrong or None


def _typed(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return isinstance(kind, str) and kind in _TYPED


def _resolved(document: Mapping[str, Any], value: Any, depth: int = 0) -> Mapping[str, Any]:
    """Return a value with its local reference followed; anything that is no object gives an empty one."""
    if not isinstance(value, Mapping) or depth > 8:
        return {}
    reference = value.get("$ref")
    if not isinstance(reference, str):
        return value
    place: Any = document
    for part in reference.removeprefix("#/").split("/"):
        place = place.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(place, Mapping) else None
    return _resolved(document, place, depth + 1)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
