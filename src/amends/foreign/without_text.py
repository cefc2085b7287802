"""Faults of vendors without the text that the vendor sent."""

from __future__ import annotations

from msgspec.structs import replace

from amends.core.fault import Fault
from amends.core.vocabularies.http import VOCABULARY
from amends.vendors.meaning import is_known

__all__ = ["without_text"]


def without_text(fault: Fault) -> Fault:
    """Return a vendor's fault with our own message, and without words that no table has. Faults in one of our formats stay as they are."""
    if fault.origin is None or fault.origin.dialect in _OWN:
        return fault
    errors = tuple(without_text(child) for child in fault.errors)
    # A code word is a fact only if it is in a table; any other text stays inside the process.
    word = (fault.details or {}).get("code")
    details = fault.details if isinstance(word, str) and is_known(word) else None
    message = VOCABULARY.row(fault.code, fault.status).message
    return replace(fault, message=message, details=details, errors=errors)


_OWN = frozenset({"problem", "adcp", "task", "arcp", "envelope", "cli", "mcp", "a2a", "jsonrpc"})
