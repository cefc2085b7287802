"""The exception class of each vocabulary and code: generated classes by name, users' classes by registration."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from amends.core.vocabulary import APP, EVERYDAY
from amends.core.vocabulary import vocabulary as vocabulary_of

if TYPE_CHECKING:
    from amends.errors.base import FaultError

__all__ = ["class_for", "class_name", "register_class"]

_MODULES = {
    EVERYDAY: "amends.errors",
    **{name: f"amends.errors.{name}" for name in ("adcp", "task", "cli", "arcp")},
}
# The http vocabulary has the everyday codes.
_MODULES["http"] = _MODULES[EVERYDAY]

# Vocabularies that allow application codes (S1, S2). A code outside their tables gets the class that this program
# registered for it.
_ALLOW_APP_CODES = frozenset({"http", "cli"})

_USER_CLASSES: dict[str, type[FaultError]] = {}


def class_name(code: str) -> str:
    """
    Return the class name of a code: CamelCase with the suffix Error, which is not doubled.

    >>> class_name("RATE_LIMITED"), class_name("INTERNAL_ERROR")
    ('RateLimitedError', 'InternalError')
    """
    return "".join(part.capitalize() for part in code.removesuffix("_ERROR").split("_")) + "Error"


def class_for(vocabulary: str, code: str) -> type[FaultError]:
    """Return the class of a code; if it has none, the base class of its vocabulary."""
    from amends.errors.base import FaultError

    if vocabulary == APP:
        return _USER_CLASSES.get(code, FaultError)
    if (
        vocabulary in _ALLOW_APP_CODES
        and code in _USER_CLASSES
        and code not in vocabulary_of(vocabulary).rows
    ):
        return _USER_CLASSES[code]
    module = _MODULES.get(vocabulary)
    if module is None:
        return FaultError
    classes = import_module(module)
    found = getattr(classes, class_name(code), None) if code.isascii() else None
    if isinstance(found, type) and issubclass(found, FaultError) and found.code == code:
        return found
    return getattr(classes, "ARCPError", FaultError)


def register_class(cls: type[FaultError]) -> None:
    """Register a user's class under its code."""
    _USER_CLASSES[cls.code] = cls
