"""
Stand-ins for exceptions of libraries that are not installed: with the same module, name and bases.

They show what our tables do with such classes, not that the libraries raise them.
"""

from typing import Any


def standin(name: str, *bases: type, **members: Any) -> Any:
    """Return a class with the module and name `name`."""
    module, _, short = name.rpartition(".")
    return type(short, bases or (Exception,), {**members, "__module__": module, "__qualname__": short})
