"""What to tell the person at the end of the chain (T6): plain words, the missing thing named, nothing internal."""

from __future__ import annotations

from collections.abc import Mapping

from amends.core.crosswalk import source_row
from amends.core.fault import Fault
from amends.core.text import strip, truncate

__all__ = ["NAMED_BY", "user_message"]

NAMED_BY = ("mcp", "agent", "capability", "name", "field", "resource", "resource_id")
"""The members of `details` that can name the thing in question, the first one there wins."""

_NAME_BYTES = 64
_UNNAMED = "that"


def user_message(fault: Fault, catalogue: Mapping[str, str] | None = None) -> str:
    """
    One or two sentences for a person.

    The fault's own `user_message` comes first, then the text a catalogue has for its code, then the table's. `{name}`
    becomes the thing in question where the details or the field name it.

    Args:
        fault: the failure.
        catalogue: own texts by code, for another tone or language.

    >>> user_message(Fault(code="MCP_NOT_CONNECTED", vocabulary="task", details={"mcp": "Notion"}))
    "I can't access Notion right now. Check the connection setup."

    """
    if fault.user_message is not None:
        return fault.user_message
    row = source_row(fault)
    text = (catalogue or {}).get(row.code, row.user_message)
    return text.replace("{name}", _name(fault))


def _name(fault: Fault) -> str:
    """What the details call the thing. It may come from outside: one short line of printable text, or nothing."""
    details = fault.details or {}
    for value in (*(details.get(key) for key in NAMED_BY), fault.field):
        if isinstance(value, str) and (name := truncate(strip(value), _NAME_BYTES).strip()):
            return name
    return _UNNAMED
