"""
Check a payload against the declared input type.

msgspec reports what is wrong only as text, which starts with one of a few fixed sentences and ends with the path. Those two parts
are parsed; the part in between may contain values of the sender and is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from amends.core.fault import Fault
from amends.core.vocabulary import row_for
from amends.errors.base import FaultError
from amends.foreign.validation import pointer

__all__ = ["checker", "to_fault"]

Check = Callable[[object], object]

# The first match decides.
_SENTENCES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"Object missing required field `(?P<name>[^`]{1,256})`"), "MISSING_REQUIRED_FIELD"),
    (re.compile(r"Object contains unknown field `(?P<name>[^`]{1,256})`"), "INVALID_FIELD_VALUE"),
    (re.compile(r"Expected `[^`]*`, got `"), "INVALID_FIELD_TYPE"),
    (re.compile(r"Expected `|Invalid |Integer value |Timestamp |Timezone|Duration"), "INVALID_FIELD_VALUE"),
)
_PATH = re.compile(
    r" - at (?:`key` in )?`\$((?:\.[^`.\[\]]{1,128}|\[(?:\d{1,9}|\.\.\.)\]){0,64})`\Z", re.DOTALL
)
_STEP = re.compile(r"\.([^`.\[\]]+)|\[(\d+|\.\.\.)\]")


def checker(kind: object) -> Check | None:
    """Return a function that converts a payload into `kind` or raises the input fault; None if any payload is allowed."""
    if kind is Any or kind is None or kind is object:
        return None

    def check(payload: object) -> object:
        try:
            return msgspec.convert(payload, kind, dec_hook=_decode)
        except msgspec.ValidationError as exc:
            raise FaultError.from_fault(to_fault(exc)) from None

    return check


def _decode(kind: type, value: object) -> object:
    """Convert a value into a type that msgspec does not know: a pydantic model."""
    validate = getattr(kind, "model_validate", None)
    if validate is None:
        raise NotImplementedError(
            f"the type {kind!r} cannot be checked: use a Struct, a dataclass or a pydantic model"
        )
    validated: object = validate(value)
    return validated


def _first_model_error(exc: BaseException) -> tuple[str, list[str]] | None:
    """The code and the path of the first error of a pydantic model. Its texts and values are not read."""
    cause = exc.__cause__
    errors = getattr(cause, "errors", None)
    if not callable(errors):
        return None
    first = errors(include_url=False, include_context=False, include_input=False)[0]
    kind = str(first["type"])
    if kind == "missing":
        code = "MISSING_REQUIRED_FIELD"
    elif kind.endswith(("_type", "_parsing", "_from_float")):
        code = "INVALID_FIELD_TYPE"
    else:
        code = "INVALID_FIELD_VALUE"
    return code, [str(part) for part in first["loc"]]


def to_fault(exc: msgspec.ValidationError) -> Fault:
    """Convert a validation error into a fault of the input category, with the JSON Pointer of the wrong field."""
    text = str(exc)[:8192]
    found = _PATH.search(text[-4096:])
    steps = (
        [name or ("*" if index == "..." else index) for name, index in _STEP.findall(found[1])]
        if found
        else []
    )
    code = "INVALID_INPUT"
    for sentence, meaning in _SENTENCES:
        match = sentence.match(text)
        if match is not None:
            code = meaning
            name = match.groupdict().get("name")
            if name is not None:
                steps.append(name)
            break
    model = _first_model_error(exc)
    if model is not None:
        code, steps = model[0], [*steps, *model[1]]
    where = pointer(steps)
    if where is None:
        # The payload as a whole is wrong, not one of its fields.
        return Fault(
            code="INVALID_INPUT", vocabulary="task", message=row_for("task", "INVALID_INPUT").message
        )
    last = where.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
    return Fault(
        code=code,
        vocabulary="task",
        message=row_for("task", code).message,
        field=where,
        details={"name": last, "pointer": where},
    )
