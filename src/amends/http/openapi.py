"""Problem details in an OpenAPI document: the schema once, and for each operation what it may answer with."""

from __future__ import annotations

from typing import Any

from amends.core.fault import Fault
from amends.core.vocabulary import row_for, vocabulary
from amends.dialects.problem import MEDIA_TYPE, encode
from amends.errors.base import FaultError
from amends.schemas import schema

__all__ = ["NAME", "described", "problems"]

NAME = "Problem"
_REF = {"$ref": f"#/components/schemas/{NAME}"}
_METHODS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})


def problems(*errors: type[FaultError] | int) -> dict[int | str, dict[str, Any]]:
    """
    The `responses` of a route that may fail in these ways: classes of errors, or bare statuses.

    >>> from amends.errors import NotFoundError, RateLimitedError
    >>> sorted(problems(NotFoundError, RateLimitedError, 503))
    [404, 429, 503]
    """
    found: dict[int | str, dict[str, Any]] = {}
    for error in errors:
        if isinstance(error, int):
            name, row = "http", vocabulary("http").status_row(error)
            status = error
        else:
            name, row = error.vocabulary, row_for(error.vocabulary, error.code)
            status = row.status or row_for("everyday", row.everyday).status or 500
        response = found.setdefault(status, _response(row.message))
        if row.message not in response["description"]:
            response["description"] += f"; {row.message}"
        content = response["content"][MEDIA_TYPE]
        example = encode(Fault(code=row.code, vocabulary=name, message=row.message, status=status))
        content.setdefault("examples", {})[row.code] = {"summary": row.suggestion, "value": example}
    return found


def _response(description: str) -> dict[str, Any]:
    return {"description": description, "content": {MEDIA_TYPE: {"schema": dict(_REF)}}}


def described(document: dict[str, Any]) -> dict[str, Any]:
    """An OpenAPI document with the schema of a problem, and a `default` response for every operation. Changes it."""
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    if NAME not in schemas:
        schemas[NAME] = _here({key: value for key, value in schema("problem").items() if key[0] != "$"})
        for path in document.get("paths", {}).values():
            for method, operation in path.items():
                if method in _METHODS:
                    _operation(operation)
        if not _mentioned(document):
            schemas.pop("HTTPValidationError", None)
            schemas.pop("ValidationError", None)
    return document


def _operation(operation: dict[str, Any]) -> None:
    responses = operation.setdefault("responses", {})
    invalid = responses.get("422", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if str(invalid.get("$ref", "")).endswith("/HTTPValidationError"):
        responses["422"] = _response(row_for("http", "VALIDATION_ERROR").message)
    responses.setdefault("default", _response("Anything else that went wrong"))


def _mentioned(document: dict[str, Any]) -> bool:
    """Whether somebody still refers to FastAPI's own schema of a validation error."""
    return "/HTTPValidationError" in str(document.get("paths"))


def _here(value: Any) -> Any:
    """A schema that refers to itself, at its new place."""
    if isinstance(value, dict):
        return {
            key: _REF["$ref"] if key == "$ref" and each == "#" else _here(each) for key, each in value.items()
        }
    return [_here(each) for each in value] if isinstance(value, list) else value
