"""Messages for end users (T6): plain language, the missing thing named, no internals."""

from __future__ import annotations

from collections.abc import Mapping

from amends.core.crosswalk import source_row
from amends.core.fault import Fault
from amends.core.text import strip, truncate

__all__ = ["NAMED_BY", "user_message"]

NAMED_BY = ("mcp", "agent", "capability", "name", "field", "resource", "resource_id")
"""The members of `details` that can name the missing or failing thing, in order of precedence."""

_NAME_BYTES = 64
_UNNAMED = "that"


def user_message(fault: Fault, catalogue: Mapping[str, str] | None = None) -> str:
    """
    Return one or two sentences for an end user.

    Uses the fault's own `user_message`, else the catalogue's text for its code, else the table's. `{name}` in the text
    is replaced by the name in `details` or `field`, if there is one.

    Args:
        fault: the failure.
        catalogue: your own texts by code, for another tone or language.

    >>> user_message(Fault(code="MCP_NOT_CONNECTED", vocabulary="task", details={"mcp": "Notion"}))
    "I can't access Notion right now. Check the connection setup."

    """
    if fault.user_message is not None:
        return fault.user_message
    row = source_row(fault)
    text = (catalogue or {}).get(row.code, row.user_message_under(fault.recovery))
    name = _name(fault)
    if text.startswith("{name}"):
        name = name[:1].upper() + name[1:]
    return text.replace("{name}", name)


def _name(fault: Fault) -> str:
    """Return the name in the details or the field, as one short line of printable text: it may come from outside."""
    details = fault.details or {}
    for value in (*(details.get(key) for key in NAMED_BY), fault.field):
        if isinstance(value, str) and (name := truncate(strip(value), _NAME_BYTES).strip()):
            return name
    return _UNNAMED
