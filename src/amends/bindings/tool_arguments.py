"""
The arguments that a tool receives, of those that a model wrote.

A model that plans a call again writes a default out, adds an argument that the tool does not have, or writes "17" for 17. The
tool receives the same values each time, so its key in the ledger is made from what it receives: unknown arguments are left
out, defaults filled in, values converted as the schema says. Arguments that do not fit are returned as they are: the framework
refuses them.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from pathlib import PurePath
from typing import Any, get_type_hints
from uuid import UUID

import msgspec

__all__ = ["accepts", "by_function", "by_model", "by_schema", "lacks_required", "only_reads", "refuses"]

_TYPES: dict[object, type] = {"integer": int, "number": float, "boolean": bool, "string": str}
_MOST = 200
"""Members of a schema that are read."""
_DEEPEST = 20
"""How deep a schema and its values are read."""


def only_reads(hints: object) -> bool:
    """
    Return whether the annotations of an MCP tool say that it only reads.

    >>> only_reads({"readOnlyHint": True}), only_reads({"readOnlyHint": "yes"}), only_reads(None)
    (True, False, False)
    """
    for name in ("readOnlyHint", "read_only_hint"):
        hint = hints.get(name) if isinstance(hints, Mapping) else getattr(hints, name, None)
        if hint is not None:
            return hint is True
    return False


def by_model(model: object, arguments: Mapping[str, object]) -> dict[str, object]:
    """
    Return the arguments as a pydantic model reads them.

    >>> by_model(None, {"order": 17})
    {'order': 17}
    """
    validate, fields = getattr(model, "model_validate", None), getattr(model, "model_fields", None)
    if not callable(validate) or not isinstance(fields, Mapping):
        return dict(arguments)
    try:
        received = validate(dict(arguments))
        extra = getattr(received, "model_extra", None) or {}
        return {**{name: getattr(received, name) for name in fields}, **extra}
    except Exception:  # noqa: BLE001 - a validator of the application may raise anything; the framework reports it
        return dict(arguments)


def by_function(function: Callable[..., object], arguments: Mapping[str, object]) -> dict[str, object]:
    """
    Return the arguments as a function receives them.

    >>> def pay(order: int, currency: str = "EUR") -> None: ...
    >>> by_function(pay, {"order": "17", "note": "the model added this"})
    {'order': 17, 'currency': 'EUR'}
    """
    try:
        parameters = inspect.signature(function).parameters.values()
        hints = _hints(function)
    except (TypeError, ValueError):
        return dict(arguments)
    received: dict[str, object] = {}
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            return {**arguments, **received}
        if parameter.name in arguments:
            hint = hints.get(parameter.name, parameter.annotation)
            received[parameter.name] = _converted(arguments[parameter.name], hint)
            continue
        default = _default(parameter.default)
        if default is not _NONE:
            received[parameter.name] = default
    return received


def by_schema(schema: object, arguments: Mapping[str, object]) -> dict[str, object]:
    """
    Return the arguments as a JSON Schema describes them. Unknown ones are left out, unless the schema allows more.

    >>> schema = {"properties": {"order": {"type": "integer"}, "currency": {"default": "EUR"}}, "additionalProperties": False}
    >>> by_schema(schema, {"order": "17", "note": "more"})
    {'order': 17, 'currency': 'EUR'}
    """
    if not isinstance(schema, Mapping):
        return dict(arguments)
    return _by_rule(schema, arguments, schema, 0)


def _by_rule(
    rule: Mapping[str, object], arguments: Mapping[str, object], schema: Mapping[str, object], depth: int
) -> dict[str, object]:
    """Return an object as a rule of the schema describes it."""
    properties = rule.get("properties")
    if not isinstance(properties, Mapping) or len(properties) > _MOST:
        return dict(arguments)
    received: dict[str, object] = {}
    for name, member in properties.items():
        inner = _resolved(member, schema)
        if name in arguments:
            received[name] = _by_member(inner, arguments[name], schema, depth + 1)
        elif isinstance(member, Mapping) and "default" in member:
            received[name] = _by_member(inner, member["default"], schema, depth + 1)
        elif "default" in inner:
            received[name] = _by_member(inner, inner["default"], schema, depth + 1)
    if rule.get("additionalProperties", False) is False:
        return received
    return {**arguments, **received}


def _by_member(rule: Mapping[str, object], value: object, schema: Mapping[str, object], depth: int) -> object:
    """Return a value as a rule describes it; the value itself if it does not fit."""
    if depth > _DEEPEST:
        return value
    if isinstance(value, Mapping):
        return _by_rule(rule, value, schema, depth)
    if isinstance(value, list) and isinstance(rule.get("items"), Mapping):
        inner = _resolved(rule["items"], schema)
        return [_by_member(inner, each, schema, depth + 1) for each in value]
    kind = rule.get("type")
    return _converted(value, _TYPES.get(kind, Any) if isinstance(kind, str) else Any)


def _resolved(rule: object, schema: Mapping[str, object]) -> Mapping[str, object]:
    """Return a rule without its reference, and the one that is left of alternatives of which the others are null."""
    for _ in range(_DEEPEST):
        if not isinstance(rule, Mapping):
            return {}
        reference = rule.get("$ref")
        if isinstance(reference, str):
            place, _, name = reference.rpartition("/")
            known = schema.get(place.removeprefix("#/"))
            rule = known.get(name) if isinstance(known, Mapping) else None
            continue
        choices = next((rule[name] for name in ("anyOf", "oneOf", "allOf") if name in rule), None)
        if not isinstance(choices, list):
            return rule
        rest = [each for each in choices if not (isinstance(each, Mapping) and each.get("type") == "null")]
        if len(rest) != 1:
            return {}
        rule = rest[0]
    return {}


def _converted(value: object, hint: object) -> object:
    """Return a value as the type `hint`, as pydantic converts it; the value itself if it does not fit."""
    if hint in (inspect.Parameter.empty, Any) or value is None:
        return value
    if hint is str:
        return str(value) if type(value) is int else value
    try:
        validate = _validator(hint)
        return msgspec.convert(value, hint, strict=False) if validate is None else validate(value)
    except Exception:  # noqa: BLE001 - any annotation and any validator; the framework reports what does not fit
        return value


def _validator(hint: object) -> Callable[[object], object] | None:
    """Return what pydantic reads a type with; None in a program without pydantic, and for types that it does not know."""
    if "pydantic" not in sys.modules:
        return None
    try:
        return _adapter(hint)
    except Exception:  # noqa: BLE001 - an annotation is any object, also one that cannot be hashed
        return None


@lru_cache(maxsize=1000)
def _adapter(hint: object) -> Callable[[object], object]:
    adapter = sys.modules["pydantic"].TypeAdapter(hint)
    validate: Callable[[object], object] = adapter.validate_python
    return validate


_NONE = object()
_PLAIN: tuple[type, ...] = (
    *(str, int, float, bool, bytes, list, tuple, dict, set, frozenset, type(None)),
    *(Enum, Decimal, date, time, timedelta, UUID, PurePath, msgspec.Struct),
)
"""Types of defaults that can be a part of a key. Others are what a framework or the application puts in."""


def _default(value: object) -> object:
    """Return the default of a parameter, or `_NONE` if it has none that can be a part of a key."""
    if value is inspect.Parameter.empty:
        return _NONE
    if type(value).__name__ == "FieldInfo":
        made = getattr(value, "get_default", None)
        required = getattr(value, "is_required", None)
        if not callable(made) or not callable(required) or required():
            return _NONE
        value = made(call_default_factory=True)
    declared = hasattr(type(value), "model_fields") or is_dataclass(value)
    return value if (isinstance(value, _PLAIN) or declared) and not callable(value) else _NONE


def _hints(function: Callable[..., object]) -> dict[str, object]:
    try:
        return get_type_hints(function)
    except Exception:  # noqa: BLE001 - an annotation is any expression
        return {}


def lacks_required(schema: object, arguments: Mapping[str, object]) -> bool:
    """
    Return whether a required argument is missing, so that the framework cannot call the function.

    >>> lacks_required({"required": ["order"]}, {"orders": 17})
    True
    """
    required = schema.get("required") if isinstance(schema, Mapping) else None
    return isinstance(required, list | tuple) and any(name not in arguments for name in required)


def accepts(function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]) -> bool:
    """
    Return whether a function can be called with the arguments. One whose signature cannot be read can.

    >>> accepts(lambda order: order, (), {"order": 17}), accepts(lambda order: order, (), {"order": 17, "note": "more"})
    (True, False)
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def refuses(model: object, arguments: Mapping[str, object]) -> bool:
    """
    Return whether a pydantic model refuses the arguments, so that the framework does not call the tool.

    >>> refuses(None, {"order": 17})
    False
    """
    validate = getattr(model, "model_validate", None)
    if not callable(validate):
        return False
    try:
        validate(dict(arguments))
    except ValueError:
        return True
    except Exception:  # noqa: BLE001 - a validator of the application may raise anything
        return False
    return False
