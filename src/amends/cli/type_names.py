"""
Descriptions of argument types for suggestions, such as "a whole number from 1 to 10".

They are derived from the parser's type and bounds, never from the text of an exception. A type without a known name,
such as a function of the application, has no description.
"""

from __future__ import annotations

__all__ = ["describe_range", "describe_type", "type_name"]

# Click's type names, used for all frameworks.
_DESCRIPTIONS = {
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

# Callables used as types, by module and qualified name.
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


def type_name(kind: object) -> str | None:
    """Return the name of a type, or of a callable or object used as one; None if it is not known."""
    for each in (kind, type(kind)):
        # A method of a built-in class has no module; its class has.
        module = getattr(each, "__module__", None) or getattr(
            getattr(each, "__self__", None), "__module__", None
        )
        name = getattr(each, "__qualname__", None)
        if isinstance(module, str) and isinstance(name, str):
            # In Python 3.13 pathlib.Path.__module__ is "pathlib._local".
            found = _CALLABLES.get((module.removesuffix("._local"), name))
            if found is not None:
                return found
    return None


def describe_type(name: str | None) -> str | None:
    """Return the description of a type name, or None if there is none."""
    return _DESCRIPTIONS.get(name) if name is not None else None


def describe_range(
    name: str | None, low: object, high: object, *, low_open: bool = False, high_open: bool = False
) -> str | None:
    """Return the description of a type with its bounds; `low_open` and `high_open` exclude the bound itself."""
    wanted = describe_type(name)
    if wanted is None or (low is None and high is None):
        return wanted
    above = f"over {low}" if low_open else f"of at least {low}"
    below = f"under {high}" if high_open else f"of at most {high}"
    if low is None:
        return f"{wanted} {below}"
    if high is None:
        return f"{wanted} {above}"
    return f"{wanted} {above} and {below}" if low_open or high_open else f"{wanted} from {low} to {high}"
