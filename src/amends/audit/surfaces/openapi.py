"""Reads from an OpenAPI document which invalid requests can be sent without changing anything."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

__all__ = ["Operation", "operations"]

_METHODS = ("get", "post", "put", "patch", "delete")
_TYPED = frozenset({"integer", "number", "boolean", "object", "array"})
MAX_OPERATIONS = 200
MAX_VALUES = 1000
"""Values of an example."""


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One operation, as far as probes need it."""

    method: str
    path: str
    """With every parameter filled in."""
    typed_query: str | None = None
    """A query parameter that a text cannot be the value of."""
    typed_path: str | None = None
    """The path with a text for a parameter that must be a number."""
    typed_parameter: str = ""
    """The name of that parameter."""
    required_query: tuple[str, ...] = ()
    wrong_body: dict[str, object] | None = None
    """A body in which a member has a wrong type; None if the schema has no typed member."""
    required_members: tuple[str, ...] = ()
    json_body: bool = False
    valid_body: object = None
    """A body that fits the schema; None if there is none."""
    takes_key: bool = False
    """Whether it declares the header Idempotency-Key."""
    secured: bool = False
    credentials: str = "Authorization"
    """The header that its credentials are sent in."""


def operations(document: object) -> list[Operation]:
    """
    Return the operations of an OpenAPI 3 document, those that only read first. Anything else gives an empty list.

    >>> paths = {"/items/{id}": {"get": {"parameters": [{"name": "id", "in": "path", "schema": {"type": "integer"}}]}}}
    >>> operations({"paths": paths})[0].typed_path
    '/items/amends-audit'
    """
    if not isinstance(document, Mapping):
        return []
    paths = document.get("paths")
    if not isinstance(paths, Mapping):
        return []
    found = [
        operation
        for path, item in list(paths.items())[:MAX_OPERATIONS]
        if isinstance(item, Mapping)
        for operation in _of_path(document, str(path), item)
    ]
    return sorted(found, key=lambda one: (one.method != "GET", one.path, one.method))


def _of_path(document: Mapping[str, object], path: str, item: Mapping[str, object]) -> Iterator[Operation]:
    for method in _METHODS:
        operation = item.get(method)
        if not isinstance(operation, Mapping):
            continue
        parameters = [
            _resolved(document, each)
            for each in [*_list(item.get("parameters")), *_list(operation.get("parameters"))]
        ]
        schemas = {
            (str(each.get("in")), str(each.get("name"))): _resolved(document, each.get("schema")) or each
            for each in parameters  # OpenAPI 2 has the type beside the name
        }
        queries = [name for place, name in schemas if place == "query"]
        numbers = [name for (place, name), each in schemas.items() if place == "path" and _typed(each)]
        content = _resolved(document, operation.get("requestBody")).get("content")
        body = content.get("application/json") if isinstance(content, Mapping) else None
        schema = _resolved(document, body.get("schema")) if isinstance(body, Mapping) else {}
        security = _list(operation.get("security", document.get("security")))
        yield Operation(
            method=method.upper(),
            path=_filled(path, schemas, None),
            typed_query=next((name for name in queries if _typed(schemas["query", name])), None),
            typed_path=_filled(path, schemas, numbers[0]) if numbers else None,
            typed_parameter=numbers[0] if numbers else "",
            required_query=tuple(
                str(each.get("name"))
                for each in parameters
                if each.get("in") == "query" and each.get("required") is True
            ),
            wrong_body=_wrong_body(document, schema),
            required_members=tuple(map(str, _list(schema.get("required")))),
            json_body=isinstance(body, Mapping),
            valid_body=_valid_body(document, schema) if schema else None,
            takes_key=any(place == "header" and name.lower() == "idempotency-key" for place, name in schemas),
            secured=bool(security) and {} not in security,
            credentials=_credential_header(document, security),
        )


def _filled(path: str, schemas: Mapping[tuple[str, str], Mapping[str, object]], wrong: str | None) -> str:
    """Return the path with values that fit their types; `wrong` names the parameter that gets a text."""

    def value(match: re.Match[str]) -> str:
        name = match.group(1).partition(":")[0]
        return "0" if _typed(schemas.get(("path", name), {})) and name != wrong else "amends-audit"

    return re.sub(r"\{([^}]*)\}", value, path)


def _wrong_body(document: Mapping[str, object], schema: Mapping[str, object]) -> dict[str, object] | None:
    """Return a body with a text for every member that cannot be one."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return None
    wrong: dict[str, object] = {
        str(name): "amends-audit"
        for name, each in properties.items()
        if _typed(_resolved(document, each)) and _resolved(document, each).get("type") != "array"
    }
    return wrong or None


def _valid_body(document: Mapping[str, object], schema: Mapping[str, object]) -> object:
    """Return a body that fits the schema; None if it needs too many values, as one that contains itself does."""
    left = iter(range(MAX_VALUES))
    body = _example(document, schema, left)
    return None if next(left, None) is None else body


def _example(
    document: Mapping[str, object], schema: Mapping[str, object], left: Iterator[int], depth: int = 0
) -> object:
    """Return a value that fits a schema, as far as its types, examples and required members say."""
    if next(left, None) is None:
        return None
    for name in ("example", "default", "const"):
        if name in schema:
            return schema[name]
    for name in ("examples", "enum"):
        choices = _list(schema.get(name))
        if choices:
            return choices[0]
    kind = schema.get("type")
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and depth < 8:
        required = set(map(str, _list(schema.get("required"))))
        return {
            str(name): _example(document, _resolved(document, each), left, depth + 1)
            for name, each in properties.items()
            if str(name) in required
        }
    simple = {
        "integer": 1,
        "number": 1,
        "boolean": False,
        "array": [],
        "object": {},
        "string": "amends-audit",
    }
    return simple.get(kind, "amends-audit") if isinstance(kind, str) else "amends-audit"


def _credential_header(document: Mapping[str, object], security: list[object]) -> str:
    """Return the header of an operation's first security scheme."""
    schemes = _resolved(document, document.get("components")).get("securitySchemes")
    names = [str(name) for each in security if isinstance(each, Mapping) for name in each]
    for name in names:
        scheme = _resolved(document, schemes.get(name)) if isinstance(schemes, Mapping) else {}
        if scheme.get("type") == "apiKey" and scheme.get("in") == "header":
            return str(scheme.get("name"))
    return "Authorization"


def _typed(schema: Mapping[str, object]) -> bool:
    kind = schema.get("type")
    return isinstance(kind, str) and kind in _TYPED


def _resolved(document: Mapping[str, object], value: object, depth: int = 0) -> Mapping[str, object]:
    """Return a value with its local reference followed; anything that is no object gives an empty one."""
    if not isinstance(value, Mapping) or depth > 8:
        return {}
    reference = value.get("$ref")
    if not isinstance(reference, str):
        return value
    place: object = document
    for part in reference.removeprefix("#/").split("/"):
        place = place.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(place, Mapping) else None
    return _resolved(document, place, depth + 1)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
