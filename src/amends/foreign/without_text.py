"""Faults of vendors without the text that the vendor sent."""

from __future__ import annotations

import re

from msgspec.structs import replace

from amends.core.fault import Fault
from amends.core.vocabularies.http import VOCABULARY
from amends.vendors.meaning import is_known

__all__ = ["without_text"]

_CODE = re.compile(
    r"[a-z]{2,24}(?:_[a-z]{1,24}){1,7}|[A-Z]{2,24}(?:_[A-Z]{1,24}){1,7}|(?:[A-Z][a-z]{1,20}){2,8}|\d{3,6}"
)
"""snake_case, SNAKE_CASE, CamelCase, or a short number."""


def without_text(fault: Fault) -> Fault:
    """Return a vendor's fault with our own message, and without words that are no code words. Faults in one of our formats stay as they are."""
    if fault.origin is None or fault.origin.dialect in _OWN:
        return fault
    errors = tuple(without_text(child) for child in fault.errors)
    # A code word is a fact: it is in a table, or has a form that neither prose, names nor keys have. Any other text stays
    # inside the process.
    word = (fault.details or {}).get("code")
    kept = isinstance(word, str) and (_CODE.fullmatch(word) is not None or is_known(word))
    details = fault.details if kept else None
    message = VOCABULARY.row(fault.code, fault.status).message
    return replace(fault, message=message, details=details, errors=errors)


_OWN = frozenset({"problem", "adcp", "task", "arcp", "envelope", "cli", "mcp", "a2a", "jsonrpc"})
