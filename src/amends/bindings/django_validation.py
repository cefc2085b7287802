"""Refused fields of Django forms and REST framework's serializers, each with the rule that the field declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from amends.http.validation import NOT_GIVEN, Mistake, is_author_text, rule_for

__all__ = ["form_mistakes", "serializer_mistakes"]

# Codes of Django and REST framework, and the kinds of mistakes that `amends.foreign.validation` has suggestions for. Their
# own texts repeat the value, or say less.
_KINDS = {
    "required": "missing",
    "null": "missing",
    "blank": "string_too_short",
    "empty": "too_short",
    "invalid_choice": "enum",
    "invalid_list": "list",
    "not_a_list": "list",
    "not_a_dict": "dict",
    "does_not_exist": "enum",
    "incorrect_type": "type",
    "max_string_length": "too_long",
}
_LENGTHS = {"min_length": "too_short", "max_length": "too_long"}
"""The kinds of mistakes in the length of a list."""
_LIMITS = frozenset({"min_value", "max_value", "min_length", "max_length"})


def form_mistakes(form: Any) -> Iterator[Mistake]:
    """Yield the mistakes of a bound Django form, or of all forms of a formset; fields are named as they were sent."""
    if hasattr(form, "non_form_errors"):
        yield from _form_mistakes(form.non_form_errors().as_data(), (), None, NOT_GIVEN)
        for each in form.forms:
            yield from form_mistakes(each)
        return
    for name, errors in form.errors.as_data().items():
        field = form.fields.get(name)
        path = () if name == "__all__" else (form.add_prefix(name),)
        value = NOT_GIVEN if field is None else form.data.get(form.add_prefix(name), NOT_GIVEN)
        yield from _form_mistakes(errors, path, field, value)


def _form_mistakes(errors: Any, path: tuple[Any, ...], field: object, value: object) -> Iterator[Mistake]:
    for error in errors:
        params = error.params if isinstance(error.params, Mapping) else {}
        text = " ".join(error.messages)
        yield _mistake(path, error.code or "invalid", text, field, params, value)


def serializer_mistakes(exc: Any) -> Iterator[Mistake]:
    """Yield the mistakes in a ValidationError of REST framework."""
    serializer = getattr(exc.detail, "serializer", None)
    yield from _walk(exc.detail, (), serializer, getattr(serializer, "initial_data", NOT_GIVEN))


def _walk(detail: object, path: tuple[object, ...], field: object, data: object) -> Iterator[Mistake]:
    if isinstance(detail, Mapping):
        for name, below in detail.items():
            if name == "non_field_errors":
                yield from _walk(below, path, None, NOT_GIVEN)
            else:
                yield from _walk(below, (*path, name), _below(field, name), _value(data, name))
    elif isinstance(detail, list):
        for position, below in enumerate(detail):
            if isinstance(below, Mapping | list):
                # The items of a list; those without mistakes are empty.
                yield from _walk(below, (*path, position), _below(field, position), _value(data, position))
            else:
                yield from _walk(below, path, field, data)
    else:
        yield _mistake(path, str(getattr(detail, "code", "invalid")), str(detail), field, {}, data)


def _below(field: object, name: object) -> object:
    """Return the field of a serializer, or the child of a list or dictionary field."""
    fields = getattr(field, "fields", None)
    if isinstance(fields, Mapping) and name in fields:
        return fields[name]
    return getattr(field, "child", None)


def _value(data: object, name: object) -> object:
    if isinstance(data, Mapping):
        return data.get(name, NOT_GIVEN)
    return data[name] if isinstance(data, list) and isinstance(name, int) and name < len(data) else NOT_GIVEN


def _mistake(
    path: tuple[object, ...], code: str, text: str, field: object, params: Mapping[str, object], value: object
) -> Mistake:
    kind = _KINDS.get(code, code)
    rule: str | None = None
    if code == "invalid_choice":
        choices = _choices(field)
        rule = rule_for("enum", {"expected": choices}) if choices else None
    elif code in _LIMITS:
        limit = params.get("limit_value", getattr(field, code, None))
        if code in _LENGTHS and isinstance(value, list):
            kind = _LENGTHS[code]
            rule = None if limit is None else rule_for(kind, {code: limit})
        else:
            rule = None if limit is None else rule_for(code, {"limit_value": limit})
    elif code == "invalid":
        pattern = _pattern(field, text)
        rule = rule_for("string_pattern_mismatch", {"pattern": pattern}) if pattern else None
    else:
        rule = rule_for(code, params)
    own = code not in _KINDS or _is_own_text(field, code, text)
    if rule is None and own and is_author_text(text, path, value):
        rule = text
    return Mistake(path, kind, rule, NOT_GIVEN if code in {"required", "null", "empty"} else value)


def _choices(field: object) -> list[object]:
    """Return the allowed values of a field: Django's pairs, REST framework's mapping, both with groups."""
    found = []
    choices = getattr(field, "choices", None) or ()
    for choice in choices:
        value, label = choice if isinstance(choice, tuple | list) and len(choice) == 2 else (choice, None)
        if isinstance(label, tuple | list):
            found += [each[0] for each in label]
        elif value not in {"", None}:
            found.append(value)
    return found


def _is_own_text(field: object, code: str, text: str) -> bool:
    """Return whether a text for one of the frameworks' codes is the author's. A text of theirs may repeat the value."""
    default = _default_message(field, code)
    return default is None or ("{" not in default and "%(" not in default and text != default)


def _default_message(field: object, code: str) -> str | None:
    """Return the text that the class of a field has for a code."""
    for cls in type(field).__mro__:
        messages = vars(cls).get("default_error_messages", {})
        if code in messages:
            return str(messages[code])
    return None


def _pattern(field: object, text: str) -> str | None:
    """Return the pattern that was not matched; None if the text is not a framework's own for that."""
    for validator in getattr(field, "validators", ()):
        pattern = getattr(getattr(validator, "regex", None), "pattern", None)
        defaults = (str(getattr(type(validator), "message", "")), _default_message(field, "invalid"))
        if isinstance(pattern, str) and text in defaults:
            return pattern
    return None
