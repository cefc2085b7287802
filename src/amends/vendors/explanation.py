"""Describe a vendor's code word from the tables: as plain values."""

from __future__ import annotations

from amends.core.meanings import Meaning
from amends.core.vocabularies.http import VOCABULARY
from amends.vendors.registry import vendor

__all__ = ["facts", "under"]


def facts(name: str, word: str) -> list[dict[str, object]]:
    """
    Return what the table of a vendor says about a code word: one entry, or one for each status that makes a difference.

    >>> [entry["means"] for entry in facts("openai", "insufficient_quota")]
    ['QUOTA_EXCEEDED']
    """
    known = vendor(name)
    found = known.words.get(word)
    if found is None:
        broad = known.broad.get(word)
        return [] if broad is None else [_entry(name, word, broad, None, broad=True)]
    if isinstance(found, Meaning):
        return [_entry(name, word, found, None)]
    return [_entry(name, word, kind, under(status)) for status, kind in found.items()]


def under(status: int) -> str | int | None:
    """
    Return the status of a table as it is printed: a negative one is for responses that name a wait.

    >>> under(429), under(-429), under(0)
    (429, '429 and a wait', None)
    """
    return f"{-status} and a wait" if status < 0 else status or None


def _entry(
    name: str, word: str, kind: Meaning, status: str | int | None, *, broad: bool = False
) -> dict[str, object]:
    known = vendor(name)
    row = VOCABULARY.row(kind.code)
    entry = {
        "vendor": name,
        "word": word,
        "status": status,
        "means": kind.code,
        "message": row.message,
        "recovery": kind.recovery.value,
        "executed": "by the status" if kind.executed is None else kind.executed.value,
        "actor": kind.actor.value,
        "wait": kind.wait,
        "suggestion": row.suggestion,
        "user_message": row.user_message,
        "only_without_status": broad or None,
        "docs": known.docs,
    }
    return {key: value for key, value in entry.items() if value is not None}
