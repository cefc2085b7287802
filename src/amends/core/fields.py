"""
The path of a wrong field, in its two notations.

| notation | used by | example |
|---|---|---|
| JSON Pointer (RFC 6901) | problem details, command lines, tasks, ARCP | `/packages/0/budget` |
| property path | AdCP | `packages[0].budget` |

A key that a property path cannot name is written as a string in brackets: `/a.b/0` is `["a.b"][0]`. A text that is in neither
notation names a key as a whole.
"""

from __future__ import annotations

import re
from functools import cache

import msgspec

__all__ = ["last_step", "property_path", "to_pointer"]

_LONGEST = 4096
"""Longer texts are no paths, and stay as they are."""


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    # The keys of a path that need no brackets, and one step of a path.
    key = r"[A-Za-z_$][\w$-]*+"
    return (
        re.compile(key, re.ASCII),
        re.compile(
            rf'(?P<dot>\.)?(?P<key>{key}|\d++)|\[(?P<index>\d++|\*)\]|\[(?P<text>"(?:[^"\\]|\\.)*+")\]',
            re.ASCII,
        ),
    )


def _steps_of_pointer(pointer: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _steps_of_path(path: str) -> list[str] | None:
    """Return the steps of a property path; None for another text."""
    steps: list[str] = []
    position = 0
    pattern = _patterns()[1]
    while position < len(path):
        match = pattern.match(path, position)
        # A key follows a dot, except at the beginning.
        if match is None or (match["key"] is not None and (match["dot"] is None) != (position == 0)):
            return None
        if match["text"] is not None:
            try:
                steps.append(msgspec.json.decode(match["text"], type=str))
            except (msgspec.DecodeError, UnicodeError):
                return None
        else:
            steps.append(match["key"] or match["index"])
        position = match.end()
    return steps


def to_pointer(field: str) -> str:
    """
    Return the path of a field as a JSON Pointer. A pointer is returned unchanged.

    >>> to_pointer("packages[0].budget"), to_pointer("/packages/0"), to_pointer("due date")
    ('/packages/0/budget', '/packages/0', '/due date')
    """
    if not field or field.startswith("/") or len(field) > _LONGEST:
        return field
    steps = _steps_of_path(field) or [field]
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


def property_path(field: str) -> str:
    """
    Return the path of a field as AdCP writes it. A text that is no JSON Pointer is returned unchanged.

    >>> property_path("/packages/0/budget"), property_path("budget"), property_path("/a.b/0")
    ('packages[0].budget', 'budget', '["a.b"][0]')
    """
    if not field.startswith("/") or len(field) > _LONGEST:
        return field
    path = ""
    for step in _steps_of_pointer(field):
        if step == "*" or (step.isascii() and step.isdecimal()):
            path += f"[{step}]"
        elif _patterns()[0].fullmatch(step):
            path += f".{step}" if path else step
        else:
            path += f"[{msgspec.json.encode(step.encode('utf-8', 'replace').decode()).decode()}]"
    return path


def last_step(field: str) -> str:
    """
    Return the name of a field, without the path to it.

    >>> last_step("/packages/0/budget"), last_step("packages[0].budget"), last_step("budget")
    ('budget', 'budget', 'budget')
    """
    pointer = to_pointer(field)
    return _steps_of_pointer(pointer)[-1] if pointer.startswith("/") else pointer
