"""Describe problem details in an OpenAPI document: the schema once, and the error responses of each operation."""

from __future__ import annotations

from typing import Any

from amends.core.fault import Fault
from amends.core.vocabulary import row_for, vocabulary
from amends.core.wrong_calls import explains_wrong_calls
from amends.dialects.problem import MEDIA_TYPE, encode
from amends.errors.base import FaultError
from amends.schemas import schema

__all__ = ["NAME", "add_problems", "problems"]

NAME = "Problem"
_REF = {"$ref": f"#/components/schemas/{NAME}"}
_METHODS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})


@explains_wrong_calls
def problems(*errors: type[FaultError] | int) -> dict[int | str, dict[str, Any]]:
    """
    Return the `responses` of a route that may fail with these error classes or bare statuses.

    >>> from amends.errors import NotFoundError, RateLimitedError
    >>> sorted(problems(NotFoundError, RateLimitedError, 503))
    [404, 429, 503]
    """
    found: dict[int | str, dict[str, Any]] = {}
    for error in errors:
        if isinstance(error, int):
            name, row = "http", vocabulary("http").status_row(error)
            status = int(error)
        else:
            name, row = error.vocabulary, row_for(error.vocabulary, error.code)
            status = row.status or row_for("everyday", row.everyday).status or 500
        response = found.setdefault(status, _response(row.message))
        if row.message not in response["description"]:
            response["description"] += f"; {row.message}"
        content = response["content"][MEDIA_TYPE]
        example = encode(
            Fault(code=row.code, vocabulary=name, message=row.message, recovery=row.recovery, status=status)
        )
        content.setdefault("examples", {})[row.code] = {"summary": row.suggestion, "value": example}
    return found


def _response(description: str) -> dict[str, object]:
    return {"description": description, "content": {MEDIA_TYPE: {"schema": dict(_REF)}}}


def add_problems(document: dict[str, Any]) -> dict[str, Any]:
    """Add the problem schema, and a `default` response for every operation, to an OpenAPI document in place."""
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    if NAME not in schemas:
        schemas[NAME] = _with_references(
            {key: value for key, value in schema("problem").items() if key[0] != "$"}
        )
        for path in document.get("paths", {}).values():
            for method, operation in path.items():
                if method in _METHODS:
                    _add_responses(operation)
        if not _uses_validation_error(document):
            schemas.pop("HTTPValidationError", None)
            schemas.pop("ValidationError", None)
    return document


def _add_responses(operation: dict[str, Any]) -> None:
    responses = operation.setdefault("responses", {})
    invalid = responses.get("422", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if str(invalid.get("$ref", "")).endswith("/HTTPValidationError"):
        responses["422"] = _response(row_for("http", "VALIDATION_ERROR").message)
    responses.setdefault("default", _response("Any other error"))


def _uses_validation_error(document: dict[str, object]) -> bool:
    """Return whether any operation still refers to FastAPI's own schema of a validation error."""
    return "/HTTPValidationError" in str(document.get("paths"))


def _with_references(value: object) -> object:
    """Return the schema with its references to itself pointing to its place in the document."""
    if isinstance(value, dict):
        return {
            key: _REF["$ref"] if key == "$ref" and each == "#" else _with_references(each)
            for key, each in value.items()
        }
    return [_with_references(each) for each in value] if isinstance(value, list) else value
