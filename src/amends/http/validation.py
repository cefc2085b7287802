"""
Validation errors of frameworks as one fault: each refused field with the rule that it has to follow.

The rule is made from what the framework knows about it (allowed values, bounds, lengths, pattern) or is the message of
the author's own validator. The rejected value is included if it is short and its field is not one for secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.core.vocabularies.http import VOCABULARY
from amends.foreign.validation import pointer, suggestion

__all__ = [
    "NOT_GIVEN",
    "Mistake",
    "fault_from_validation",
    "is_author_text",
    "is_secret",
    "pydantic_mistake",
    "rule_for",
]

MAX_FIELDS = 1000
"""The most fields that an answer lists."""
_MAX_RULE = 300
_MAX_VALUE = 64
NOT_GIVEN: object = object()
"""The value of a mistake whose value is not known, such as one about the whole request."""

# Rules by the kind of error: pydantic's types; Django's and REST framework's codes where they differ. The names in braces are
# those of the framework's context.
_RULES = {
    "greater_than": "Send a value greater than {gt}",
    "greater_than_equal": "Send a value of at least {ge}",
    "less_than": "Send a value less than {lt}",
    "less_than_equal": "Send a value of at most {le}",
    "multiple_of": "Send a multiple of {multiple_of}",
    "string_too_short": "Send at least {min_length} characters",
    "string_too_long": "Send at most {max_length} characters",
    "bytes_too_short": "Send at least {min_length} bytes",
    "bytes_too_long": "Send at most {max_length} bytes",
    "too_short": "Send at least {min_length} items",
    "too_long": "Send at most {max_length} items",
    "string_pattern_mismatch": "Send a string that matches {pattern}",
    "enum": "Use one of {expected}",
    "literal_error": "Use one of {expected}",
    "union_tag_invalid": "Use one of {expected_tags} as {discriminator}",
    "union_tag_not_found": "Supply {discriminator}",
    "decimal_max_digits": "Send at most {max_digits} digits",
    "decimal_max_places": "Send at most {decimal_places} decimal places",
    "decimal_whole_digits": "Send at most {whole_digits} digits before the decimal point",
    "url_scheme": "Use one of the URL schemes {expected_schemes}",
    "uuid_version": "Send a UUID of version {expected_version}",
    "min_value": "Send a value of at least {limit_value}",
    "max_value": "Send a value of at most {limit_value}",
    "min_length": "Send at least {limit_value} characters",
    "max_length": "Send at most {limit_value} characters",
    "step_size": "Send a multiple of {limit_value}",
    "max_digits": "Send at most {max} digits",
    "max_decimal_places": "Send at most {max} decimal places",
    "max_whole_digits": "Send at most {max} digits before the decimal point",
    "invalid_extension": "Use one of the file extensions {allowed_extensions}",
}
_SECRET = re.compile(
    r"pass(?:word|wd|phrase|code)?$|pwd|secret|token|api-?_?key|private-?_?key|access-?_?key|credential|authori[sz]ation"
    r"|auth$|cookie|session|card|cvc|cvv|\bpin\b|^pin$|ssn|iban|account-?_?number|signature|otp",
    re.IGNORECASE,
)


class Mistake(msgspec.Struct, frozen=True):
    """One refused value."""

    path: tuple[object, ...]
    """The place of the field in the request."""
    kind: str = ""
    """The framework's name for the kind of mistake; it decides the suggestion if there is no rule."""
    rule: str | None = None
    """What the value has to be."""
    value: object = NOT_GIVEN
    """The rejected value."""


def rule_for(kind: str, context: Mapping[str, object] | None) -> str | None:
    """
    Return the rule of a kind of mistake, filled in from the framework's context; None if something is missing.

    >>> rule_for("less_than_equal", {"le": 50})
    'Send a value of at most 50'
    """
    template = _RULES.get(kind)
    if template is None:
        return None
    try:
        return template.format_map({name: _text(value) for name, value in (context or {}).items()})
    except KeyError:
        return None


def _text(value: object) -> str:
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(map(_text, value))
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return " ".join(str(value).split())


def is_secret(path: Iterable[object]) -> bool:
    """Return whether a field, or one around it, has a name that says that it holds a secret."""
    return any(isinstance(step, str) and _SECRET.search(step) for step in path)


def is_author_text(text: str, path: Iterable[object], value: object) -> bool:
    """
    Return whether the message of a validator may be sent.

    It is short and has one line, and does not repeat a value that must not be sent.
    """
    if not 0 < len(text) <= _MAX_RULE or "\n" in text:
        return False
    if not isinstance(value, str) or len(value) <= 2 or value not in text:
        return True
    return not is_secret(path) and len(value) <= _MAX_VALUE


def pydantic_mistake(item: Mapping[str, Any]) -> Mistake:
    """Return one entry of pydantic's `errors()`, as a Python value or from FastAPI's JSON body."""
    kind = item["type"]
    # For invalid JSON pydantic adds the position, which is not part of a pointer.
    path = tuple(item["loc"][:1]) if kind == "json_invalid" else tuple(item["loc"])
    context = item.get("ctx")
    value = NOT_GIVEN if kind in {"missing", "json_invalid"} else item.get("input", NOT_GIVEN)
    rule = rule_for(kind, context if isinstance(context, Mapping) else None)
    if rule is None and suggestion(kind) == suggestion("value_error"):
        # The author's own: a ValueError of a validator, or a custom error.
        text = str(item.get("msg", "")).removeprefix("Value error, ").removeprefix("Assertion failed, ")
        rule = text if is_author_text(text, path, value) else None
    return Mistake(path, kind, rule, value)


def fault_from_validation(mistakes: Iterable[Mistake], status: int = 422) -> Fault:
    """Return one fault for all refused fields, each with a JSON Pointer, the rules, and the rejected value."""
    fields: dict[str | None, list[str]] = {}
    values: dict[str | None, object] = {}
    for mistake in mistakes:
        where = pointer(mistake.path)
        if where not in fields and len(fields) >= MAX_FIELDS:
            continue
        rule = suggestion(mistake.kind) if mistake.rule is None else mistake.rule[:_MAX_RULE]
        rules = fields.setdefault(where, [])
        if rule not in rules:
            rules.append(rule)
        if _is_short(mistake.value) and not is_secret(mistake.path):
            values[where] = mistake.value
    row = VOCABULARY.rows["VALIDATION_ERROR"]
    parts = tuple(
        Fault(
            code=row.code,
            message=f"{rules[0].removesuffix('.')} at {where}" if where else rules[0],
            vocabulary="http",
            status=status,
            field=where,
            suggestions=tuple(rules),
            details={"rejected": values[where]} if where in values else None,
        )
        for where, rules in fields.items()
    )
    first = next((part for part in parts if part.field is not None), None)
    return Fault(
        code=row.code,
        message=row.message,
        recovery=Recovery.CORRECTABLE,
        vocabulary="http",
        status=status,
        field=None if first is None else first.field,
        suggestions=tuple(part.message for part in parts),
        errors=parts,
    )


def _is_short(value: object) -> bool:
    """Return whether a rejected value may be sent back: a number, a boolean, null or a short string."""
    if isinstance(value, str):
        return len(value) <= _MAX_VALUE
    return value is None or (isinstance(value, bool | int | float) and len(str(value)) <= _MAX_VALUE)
