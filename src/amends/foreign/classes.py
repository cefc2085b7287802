"""
The meanings of the exceptions of common libraries, by class name.

The rows are data: `[[exceptions]]` in the files of services, and data/libraries.toml. A row is a class with its meaning, and perhaps a
reader that finds more exact details in an instance. The nearest class along the MRO that has a row decides, so the row of a
library's base class covers all classes that are not listed. A class without any row (ValueError, KeyError, an application's own
exception) counts as INTERNAL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from amends.core.meanings import MEANINGS, Meaning
from amends.vendors.registry import exception_rows

__all__ = ["INSIDE", "Row", "names", "row_for_class", "rows", "rows_of"]


class Row(NamedTuple):
    """The meaning of a class, and the reader of further details: a key of `readers.READERS`, or INSIDE."""

    meaning: Meaning
    reader: str | None = None


INSIDE = "inside"
"""The reader of classes that wrap another exception: its meaning is used. `executed` stays "no" if the row has that."""

_Table = tuple[Mapping[str, Any], ...]
_made: tuple[_Table, dict[str, Row]] = ((), {})


def rows() -> Mapping[str, Row]:
    """
    Return the rows by the dotted name of the class.

    >>> rows()["builtins.ConnectionRefusedError"].meaning.name
    'not_sent'
    """
    global _made  # noqa: PLW0603 - a file that is loaded later adds rows
    table = exception_rows()
    if _made[0] is not table:
        _made = (
            table,
            {
                f"{module}.{name}": row
                for library in table
                for module in library["modules"]
                for name, row in rows_of(library)
            },
        )
    return _made[1]


def rows_of(library: Mapping[str, Any]) -> Iterator[tuple[str, Row]]:
    """Yield (name of a class, row) of one table of a file."""
    for meaning, classes in library.items():
        if meaning != "modules":
            for each in classes.split() if isinstance(classes, str) else " ".join(classes).split():
                name, _, reader = each.partition("@")
                yield name, Row(MEANINGS[meaning], reader or None)


def names(cls: type) -> list[str]:
    """Return the dotted names of a class and its bases, nearest first."""
    return [f"{base.__module__}.{base.__qualname__}" for base in cls.__mro__]


def row_for_class(cls: type) -> Row | None:
    """Return the row of the nearest class along the MRO that has one, or None."""
    known = rows()
    for name in names(cls):
        row = known.get(name)
        if row is not None:
            return row
    return None
