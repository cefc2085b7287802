"""
Check an answer against the JSON Schema that `ctx.ask(schema=…)` gave.

The keywords type, enum, const, required, properties, additionalProperties: false, items, minimum, maximum, minLength, maxLength,
minItems and maxItems are checked. Others are for the program that answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from amends.errors.base import FaultError
from amends.errors.task import InvalidFieldTypeError, InvalidFieldValueError, MissingRequiredFieldError

__all__ = ["check_answer"]

_DEPTH = 32
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
# keyword → (the types it applies to, whether a larger value or length is wrong)
_BOUNDS: dict[str, tuple[tuple[type, ...], bool]] = {
    "minimum": ((int, float), False),
    "maximum": ((int, float), True),
    "minLength": ((str,), False),
    "maxLength": ((str,), True),
    "minItems": ((list,), False),
    "maxItems": ((list,), True),
}


def check_answer(answer: object, schema: object) -> None:
    """
    Check an answer, which is JSON.

    Raises:
        FaultError: INVALID_FIELD_TYPE, INVALID_FIELD_VALUE or MISSING_REQUIRED_FIELD, with the pointer into the answer.
    """
    for error in _errors(answer, schema, "/answer", _DEPTH):
        raise error


def _errors(value: object, schema: object, at: str, depth: int) -> Iterator[FaultError]:
    if not isinstance(schema, Mapping) or depth == 0:
        return
    kinds = schema.get("type")
    names = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    if names and not any(_is(value, name) for name in names):
        yield _error(InvalidFieldTypeError, at)
    allowed = schema.get("enum")
    if (isinstance(allowed, list) and value not in allowed) or (
        "const" in schema and value != schema["const"]
    ):
        yield _error(InvalidFieldValueError, at)
    for name, (types, most) in _BOUNDS.items():
        bound = schema.get(name)
        if isinstance(bound, int | float) and isinstance(value, types) and not isinstance(value, bool):
            size = len(value) if isinstance(value, str | list) else value
            if isinstance(size, int | float) and (size > bound if most else size < bound):
                yield _error(InvalidFieldValueError, at)
    if isinstance(value, dict):
        yield from _member_errors(value, schema, at, depth)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _errors(item, schema.get("items"), f"{at}/{number}", depth - 1)


def _member_errors(
    value: dict[str, object], schema: Mapping[str, object], at: str, depth: int
) -> Iterator[FaultError]:
    required, properties = schema.get("required"), schema.get("properties")
    for name in required if isinstance(required, list) else []:
        if isinstance(name, str) and name not in value:
            yield _error(MissingRequiredFieldError, f"{at}/{name}")
    known = properties if isinstance(properties, Mapping) else {}
    for name, item in value.items():
        if name in known:
            yield from _errors(item, known[name], f"{at}/{name}", depth - 1)
        elif schema.get("additionalProperties") is False:
            yield _error(InvalidFieldValueError, f"{at}/{name}")


def _is(value: object, name: object) -> bool:
    types = _TYPES.get(name) if isinstance(name, str) else None
    if types is None:
        return True  # a type that this version does not know
    if isinstance(value, bool):
        return bool in types
    return isinstance(value, types) or (name == "integer" and isinstance(value, float) and value.is_integer())


def _error(kind: type[FaultError], at: str) -> FaultError:
    name = at.rpartition("/")[2]
    return kind(field=at, details={"name": name, "pointer": at})
