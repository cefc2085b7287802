"""
Exceptions of libraries that are not installed here, made to measure: the same module, name and bases.

They prove what our tables do with such classes, not that the libraries raise them.
"""

from typing import Any


def standin(name: str, *bases: type, **members: Any) -> Any:
    """A class that says it is `name` (module and class)."""
    module, _, short = name.rpartition(".")
    return type(short, bases or (Exception,), {**members, "__module__": module, "__qualname__": short})
