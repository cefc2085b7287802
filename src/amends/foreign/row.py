"""A row of the tables of exception classes: what a class means, and what reads more from its instances."""

from __future__ import annotations

from typing import NamedTuple

from amends.foreign.outcomes import Meaning

__all__ = ["INSIDE", "Library", "Row", "Rows"]


class Row(NamedTuple):
    """The meaning of a class, and the reader of further details: a key of `readers.READERS`, or INSIDE."""

    meaning: Meaning
    reader: str | None = None


INSIDE = "inside"
"""The reader of classes that wrap another exception: its meaning is used. `executed` stays "no" if the row has that."""

Rows = tuple[tuple[str, Meaning] | tuple[str, Meaning, str], ...]
Library = tuple[tuple[str, ...], Rows]
"""(modules, rows): the same rows for every module named."""
