"""Codes that users define. A row is added when its exception class is defined (see `amends.errors`)."""

from __future__ import annotations

from amends.core.vocabularies.everyday import VOCABULARY as EVERYDAY
from amends.core.vocabulary import APP, Row, Vocabulary

__all__ = ["VOCABULARY", "add"]

_ROWS: dict[str, Row] = {}

VOCABULARY = Vocabulary(name=APP, title="This application's own codes", rows=_ROWS, unknown=EVERYDAY.unknown)


def add(row: Row) -> None:
    """Register a code. Defining the same code again replaces it, as reloading a module does."""
    _ROWS[row.code] = row
