"""Which exception class a (vocabulary, code) has: generated ones by name, users' own as they were defined."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from amends.core.vocabulary import APP, EVERYDAY
from amends.core.vocabulary import vocabulary as vocabulary_of

if TYPE_CHECKING:
    from amends.errors.base import FaultError

__all__ = ["class_for", "class_name", "own"]

_MODULES = {
    EVERYDAY: "amends.errors",
    **{name: f"amends.errors.{name}" for name in ("adcp", "task", "cli", "arcp")},
}
# HTTP speaks the everyday words.
_MODULES["http"] = _MODULES[EVERYDAY]

# S1 and S2 leave codes open: a code that is none of theirs comes from an application, and a program that has a class
# for it means the same.
_OPEN = frozenset({"http", "cli"})

_OWN: dict[str, type[FaultError]] = {}


def class_name(code: str) -> str:
    """
    The name of a code's class: CamelCase with Error behind it, not doubled.

    >>> class_name("RATE_LIMITED"), class_name("INTERNAL_ERROR")
    ('RateLimitedError', 'InternalError')
    """
    return "".join(word.capitalize() for word in code.removesuffix("_ERROR").split("_")) + "Error"


def class_for(vocabulary: str, code: str) -> type[FaultError]:
    """The most specific class for a code; for a code without one, its vocabulary's root."""
    from amends.errors.base import FaultError

    if vocabulary == APP:
        return _OWN.get(code, FaultError)
    if vocabulary in _OPEN and code in _OWN and code not in vocabulary_of(vocabulary).rows:
        return _OWN[code]
    module = _MODULES.get(vocabulary)
    if module is None:
        return FaultError
    classes = import_module(module)
    found = getattr(classes, class_name(code), None) if code.isascii() else None
    if isinstance(found, type) and issubclass(found, FaultError) and found.code == code:
        return found
    return getattr(classes, "ARCPError", FaultError)


def own(cls: type[FaultError]) -> None:
    """Remember a user's own class by its code."""
    _OWN[cls.code] = cls
