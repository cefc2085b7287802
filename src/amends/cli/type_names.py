"""
What is wanted where a value does not fit, in words: "a whole number from 1 to 10".

Read from what the parser knows of the argument - its type and its bounds - and never from what a failure says. A type
that says nothing about itself, like a function of the application's own, has no words.
"""

from __future__ import annotations

from typing import Any

__all__ = ["bounded", "kind_name", "words"]

# Click's names of its types, which serve for all: what stands here is what a user would call such a value.
_WORDS = {
    "integer": "a whole number",
    "float": "a number",
    "boolean": "true or false",
    "uuid": "a UUID",
    "date": "a date such as 2026-12-31",
    "datetime": "a date and time such as 2026-12-31T18:00:00",
    "address": "an IP address",
    "json": "a JSON value",
    "filename": "a file that can be opened",
    "file": "a file that can be used",
    "directory": "a directory that can be used",
    "path": "a path that can be used",
}

# Callables that are used as types, by where they are from.
_CALLABLES = {
    ("builtins", "int"): "integer",
    ("builtins", "float"): "float",
    ("builtins", "bool"): "boolean",
    ("uuid", "UUID"): "uuid",
    ("datetime", "datetime"): "datetime",
    ("datetime", "date.fromisoformat"): "date",
    ("datetime", "datetime.fromisoformat"): "datetime",
    ("ipaddress", "ip_address"): "address",
    ("json", "loads"): "json",
    ("argparse", "FileType"): "filename",
    ("pathlib", "Path"): "path",
}


def kind_name(kind: Any) -> str | None:
    """The name of a type, or of a function or object that is used as one; None where it has none here."""
    for each in (kind, type(kind)):
        # A method of a built-in class has no module but its class's.
        home = getattr(each, "__module__", None) or getattr(
            getattr(each, "__self__", None), "__module__", None
        )
        name = getattr(each, "__qualname__", None)
        if isinstance(home, str) and isinstance(name, str):
            # Python 3.13 keeps its paths one package further down.
            found = _CALLABLES.get((home.removesuffix("._local"), name))
            if found is not None:
                return found
    return None


def words(name: str | None) -> str | None:
    """What is wanted, by the name of its kind."""
    return _WORDS.get(name) if name is not None else None


def bounded(name: str | None, low: Any, high: Any, *, over: bool = False, under: bool = False) -> str | None:
    """Same as `words`, with the bounds a number has to keep; `over` and `under` where the bound itself is excluded."""
    wanted = words(name)
    if wanted is None or (low is None and high is None):
        return wanted
    above = f"over {low}" if over else f"of at least {low}"
    below = f"under {high}" if under else f"of at most {high}"
    if low is None:
        return f"{wanted} {below}"
    if high is None:
        return f"{wanted} {above}"
    return f"{wanted} {above} and {below}" if over or under else f"{wanted} from {low} to {high}"
