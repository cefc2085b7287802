"""
The meanings of the exceptions of common libraries, by class name.

A row is (name, meaning) or (name, meaning, reader), where the reader finds more exact details in an instance. The
nearest class along the MRO that has a row decides, so the row of a library's base class covers all classes that are
not listed. A class without any row (ValueError, KeyError, an application's own exception) counts as BROKEN.
"""

from __future__ import annotations

from amends.foreign import classes_data, classes_models, classes_network, classes_protocols, classes_services
from amends.foreign.row import INSIDE, Library, Row

__all__ = ["INSIDE", "LIBRARIES", "ROWS", "Row", "names", "row_for_class"]

LIBRARIES: tuple[Library, ...] = (
    *classes_network.LIBRARIES,
    *classes_models.LIBRARIES,
    *classes_services.LIBRARIES,
    *classes_data.LIBRARIES,
    *classes_protocols.LIBRARIES,
)

ROWS: dict[str, Row] = {
    f"{module}.{name}": Row(meaning, *reader)
    for modules, rows in LIBRARIES
    for module in modules
    for name, meaning, *reader in rows
}


def names(cls: type) -> list[str]:
    """Return the dotted names of a class and its bases, nearest first."""
    return [f"{base.__module__}.{base.__qualname__}" for base in cls.__mro__]


def row_for_class(cls: type) -> Row | None:
    """Return the row of the nearest class along the MRO that has one, or None."""
    for name in names(cls):
        row = ROWS.get(name)
        if row is not None:
            return row
    return None
