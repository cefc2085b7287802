"""
Validation errors of other libraries: which fields are at fault, and a suggestion of our own for each.

Only the path of a field and the library's name for the kind of error are read. A fault contains neither input values
nor the limits that they exceeded (A19).
"""

from __future__ import annotations

from collections.abc import Iterable

from amends.core.fault import Fault
from amends.core.meanings import INVALID, UNREADABLE, fault_of
from amends.foreign.safe_attr import attribute

__all__ = ["SUGGESTIONS", "json_position", "jsonschema", "msgspec", "pydantic", "suggestion"]

_OTHER = "Correct this value"

# The error types of pydantic (2 and 1) and the keywords of JSON Schema. The longest listed prefix decides.
SUGGESTIONS: dict[str, str] = {
    **dict.fromkeys(("missing", "required"), "Supply this field"),
    **dict.fromkeys(
        ("extra_forbidden", "extra", "unexpected", "additionalProperties", "no_such_attribute"),
        "Leave out what is not known here",
    ),
    **dict.fromkeys(("frozen", "const"), "Leave this value as it is"),
    "multiple_argument": "Give this value once",
    **dict.fromkeys(("int", "integer"), "Send a whole number"),
    **dict.fromkeys(("float", "decimal", "number", "complex", "finite_number"), "Send a number"),
    **dict.fromkeys(
        ("greater_than", "number.not_gt", "number.not_ge", "minimum", "exclusiveMinimum"),
        "Send a larger number",
    ),
    **dict.fromkeys(
        ("less_than", "number.not_lt", "number.not_le", "maximum", "exclusiveMaximum"),
        "Send a smaller number",
    ),
    **dict.fromkeys(("multiple_of", "multipleOf"), "Send a number that fits the required step"),
    **dict.fromkeys(("decimal_max", "decimal_whole_digits"), "Send a number with fewer digits"),
    **dict.fromkeys(("bool", "boolean"), "Send true or false"),
    **dict.fromkeys(("string", "str", "bytes"), "Send a string"),
    **dict.fromkeys(
        ("too_short", "string_too_short", "bytes_too_short", "any_str.min_length", "minLength", "minItems"),
        "Send something longer",
    ),
    **dict.fromkeys(
        (
            "too_long",
            "string_too_long",
            "bytes_too_long",
            "url_too_long",
            "any_str.max_length",
            "maxLength",
            "maxItems",
        ),
        "Send something shorter",
    ),
    **dict.fromkeys(
        ("string_pattern_mismatch", "str.regex", "pattern"), "Send a string of the required form"
    ),
    **dict.fromkeys(("string_not_ascii", "string_unicode", "bytes_invalid_encoding"), "Send valid text"),
    **dict.fromkeys(("enum", "literal_error", "const", "string_sub_type"), "Use one of the allowed values"),
    **dict.fromkeys(("union_tag", "oneOf", "anyOf"), "Use one of the allowed forms"),
    **dict.fromkeys(("date_past", "datetime_past"), "Send a moment in the past"),
    **dict.fromkeys(("date_future", "datetime_future"), "Send a moment in the future"),
    **dict.fromkeys(("date", "datetime", "time"), "Send a date or time as in ISO 8601"),
    "fraction": "Send a number or a fraction",
    "ellipsis": "Leave this out, or send what is asked for",
    "time_delta": "Send a duration as in ISO 8601",
    "timezone": "Send a time with the time zone that is asked for",
    "uuid": "Send a UUID",
    "url": "Send a complete URL of an allowed kind",
    "email": "Send an e-mail address",
    **dict.fromkeys(("json", "arguments_type"), "Send valid JSON of the expected form"),
    "none": "Send null, or leave it out",
    **dict.fromkeys(
        (
            "model",
            "dict",
            "mapping",
            "dataclass",
            "counter",
            "ordered_dict",
            "invalid_key",
            "get_attribute_error",
        ),
        "Send an object",
    ),
    **dict.fromkeys(
        (
            "list",
            "tuple",
            "named_tuple",
            "set",
            "frozen_set",
            "deque",
            "iterable",
            "iteration_error",
            "uniqueItems",
        ),
        "Send a list",
    ),
    "set_item_not_hashable": "Send a list of plain values",
    "type": "Send a value of the expected type",
    "format": "Send a value of the required format",
    # Error types without a more exact suggestion.
    **dict.fromkeys(
        (
            *(
                "value_error",
                "type_error",
                "assertion_error",
                "is_instance_of",
                "is_subclass_of",
                "callable_type",
            ),
            *("needs_python_object", "recursion", "default_factory_not_called"),
        ),
        _OTHER,
    ),
}

MAX_FIELDS = 100
"""The most fields that a fault lists."""
_MAX_TOKEN = 64


def suggestion(kind: object) -> str:
    """Return the suggestion for an error type, by the longest prefix of its name that is listed."""
    if not isinstance(kind, str):
        return _OTHER
    # pydantic 1 writes value_error.missing.
    name = kind.removeprefix("value_error.").removeprefix("type_error.")
    while name:
        if name in SUGGESTIONS:
            return SUGGESTIONS[name]
        name = name[: max(name.rfind("_"), name.rfind("."), 0)]
    return _OTHER


def pointer(path: Iterable[object]) -> str | None:
    """Return a JSON Pointer (RFC 6901) to a field; None for the whole document."""
    tokens = [_token(step) for step in path]
    return "".join(f"/{token}" for token in tokens) or None


def _token(step: object) -> str:
    """
    Return one step of a pointer.

    A key may have been chosen by the sender, so it is stripped, truncated and redacted. A step that is neither a key nor
    an index becomes "*".
    """
    from amends.core.redaction import redact
    from amends.core.text import strip, truncate

    plain = isinstance(step, str | int) and not isinstance(step, bool)
    text = redact(truncate(strip(str(step)), _MAX_TOKEN)) if plain else "*"
    return text.replace("~", "~0").replace("/", "~1")


def _invalid(mistakes: Iterable[tuple[str | None, str]]) -> Fault:
    """Return one fault for all fields, with one part for each."""
    fields: dict[str | None, list[str]] = {}
    for field, step in mistakes:
        if field in fields or len(fields) < MAX_FIELDS:
            steps = fields.setdefault(field, [])
            if step not in steps:
                steps.append(step)
    steps = list(dict.fromkeys(step for field_steps in fields.values() for step in field_steps))
    return fault_of(
        INVALID,
        field=next((field for field in fields if field is not None), None),
        suggestions=tuple(steps),
        errors=tuple(
            fault_of(INVALID, field=field, suggestions=tuple(field_steps))
            for field, field_steps in fields.items()
        ),
    )


def pydantic(exc: BaseException) -> Fault | None:
    """Read a ValidationError of pydantic 2 or 1, or FastAPI's exception around it."""
    errors = attribute(exc, "errors")
    if not callable(errors):
        return None
    try:
        found = errors(include_url=False, include_context=False, include_input=False)
    except TypeError:
        found = errors()
    return _invalid((pointer(_path(item["loc"])), suggestion(item["type"])) for item in found)


def _path(loc: tuple[object, ...]) -> tuple[object, ...]:
    # If a key itself is invalid, the last two steps are that input value and "[key]".
    return loc[:-2] if loc[-1:] == ("[key]",) else loc


def msgspec(exc: BaseException) -> Fault | None:
    """
    Read a ValidationError of msgspec, which has the path of the field only in its text.

    Only that path at the end of the text is read: names from the schema and positions. The text decides nothing else.
    """
    import re

    arguments = attribute(exc, "args")
    text = arguments[0] if isinstance(arguments, tuple) and arguments else ""
    found = re.search(
        r" - at (?:`key` in )?`\$((?:\.[\w-]{1,64}|\[(?:\d{1,9}|\.\.\.)\]){0,32})`\Z", text[-2048:]
    )
    steps = re.findall(r"[\w-]+|\.\.\.", found[1]) if found else []
    # msgspec writes "..." for a key or position that it does not name.
    return _invalid([(pointer("*" if step == "..." else step for step in steps), _OTHER)])


def jsonschema(exc: BaseException) -> Fault | None:
    """Read a ValidationError of jsonschema: its path, and the keyword of the schema that was violated."""
    path = attribute(exc, "absolute_path")
    return _invalid(
        [(pointer(path if isinstance(path, Iterable) else ()), suggestion(attribute(exc, "validator")))]
    )


def json_position(exc: BaseException) -> Fault | None:
    """Read a JSONDecodeError: its line and column, without the text of the document."""
    line, column = attribute(exc, "lineno"), attribute(exc, "colno")
    if not isinstance(line, int) or not isinstance(column, int):
        return None
    return fault_of(UNREADABLE, details={"line": line, "column": column})
