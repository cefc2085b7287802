"""
The arguments that a tool receives, of those that a model wrote.

A model that plans a call again writes a default out, adds an argument that the tool does not have, or writes "17" for 17. The
tool receives the same values each time, so its key in the ledger is made from what it receives: unknown arguments are left
out, defaults filled in, values converted as the schema says. Arguments that do not fit are returned as they are: the framework
refuses them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

import msgspec

__all__ = ["accepts", "by_function", "by_model", "by_schema", "lacks_required", "refuses"]

_TYPES: dict[object, type] = {"integer": int, "number": float, "boolean": bool}
_MOST = 200
"""Members of a schema that are read."""


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
        elif _is_plain(parameter.default):
            received[parameter.name] = parameter.default
    return received


def by_schema(schema: object, arguments: Mapping[str, object]) -> dict[str, object]:
    """
    Return the arguments as a JSON Schema describes them. Unknown ones are left out, unless the schema allows more.

    >>> schema = {"properties": {"order": {"type": "integer"}, "currency": {"default": "EUR"}}, "additionalProperties": False}
    >>> by_schema(schema, {"order": "17", "note": "more"})
    {'order': 17, 'currency': 'EUR'}
    """
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(schema, Mapping) or not isinstance(properties, Mapping) or len(properties) > _MOST:
        return dict(arguments)
    received: dict[str, object] = {}
    for name, member in properties.items():
        rule = member if isinstance(member, Mapping) else {}
        if name in arguments:
            received[name] = _converted(arguments[name], _schema_type(rule))
        elif "default" in rule:
            received[name] = rule["default"]
    if schema.get("additionalProperties", False) is False:
        return received
    return {**arguments, **received}


def _schema_type(rule: Mapping[str, object]) -> object:
    kind = rule.get("type")
    choices = rule.get("anyOf")
    if kind is None and isinstance(choices, list):
        kinds = [each.get("type") for each in choices if isinstance(each, Mapping)]
        rest = [each for each in kinds if each != "null"]
        return _TYPES.get(rest[0], Any) if len(rest) == 1 and isinstance(rest[0], str) else Any
    return _TYPES.get(kind, Any) if isinstance(kind, str) else Any


def _converted(value: object, hint: object) -> object:
    """Return a value as the type `hint`, as pydantic converts it; the value itself if it does not fit."""
    if hint in (inspect.Parameter.empty, Any, str) or value is None:
        return value
    validate = getattr(hint, "model_validate", None)
    try:
        return validate(value) if callable(validate) else msgspec.convert(value, hint, strict=False)
    except Exception:  # noqa: BLE001 - any annotation and any validator; the framework reports what does not fit
        return value


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool | list | tuple | dict)


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
