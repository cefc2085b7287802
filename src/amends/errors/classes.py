"""Find the exception class of a (vocabulary, code): generated classes by name, users' own by registration."""

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
# HTTP uses the everyday classes.
_MODULES["http"] = _MODULES[EVERYDAY]

# S1 and S2 allow any code. An unknown code comes from an application; if this program defines a class for it, that class
# is used.
_OPEN = frozenset({"http", "cli"})

_OWN: dict[str, type[FaultError]] = {}


def class_name(code: str) -> str:
    """
    Return the class name of a code: CamelCase with one `Error` at the end.

    >>> class_name("RATE_LIMITED"), class_name("INTERNAL_ERROR")
    ('RateLimitedError', 'InternalError')
    """
    return "".join(part.capitalize() for part in code.removesuffix("_ERROR").split("_")) + "Error"


def class_for(vocabulary: str, code: str) -> type[FaultError]:
    """Return the class of a code; for a code without one, the base class of its vocabulary."""
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


def register_class(cls: type[FaultError]) -> None:
    """Register a user's own class by its code."""
    _OWN[cls.code] = cls
