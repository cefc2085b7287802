"""
The challenge of a 401 or 403: what `WWW-Authenticate` asks for (RFC 6750, RFC 9728).

`scope`, `resource_metadata`, `error` and `error_description` become members of the fault's details, and are written into the
header again.
"""

from __future__ import annotations

from typing import Any

__all__ = ["MEMBERS", "read", "write"]

MEMBERS = ("scope", "resource_metadata", "error", "error_description")
_LONGEST = 2048
_LONGEST_HEADER = 8192


def read(header: Any) -> dict[str, str]:
    """
    Return the known parameters of a `WWW-Authenticate` header; an empty dict if it has none.

    >>> read('Bearer error="insufficient_scope", scope="orders:read orders:write"')
    {'error': 'insufficient_scope', 'scope': 'orders:read orders:write'}
    """
    import re  # needed by responses with a challenge only

    if not isinstance(header, str):
        return {}
    found: dict[str, str] = {}
    for given, quoted, token in re.findall(
        r'([A-Za-z_]{1,32})\s?=\s?(?:"((?:[^"\\]|\\.){0,2048})"|([^\s",]{1,2048}))', header[:_LONGEST_HEADER]
    ):
        name = given.lower()
        value = re.sub(r"\\(.)", r"\1", quoted) or token
        if name in MEMBERS and name not in found and value and value.isprintable():
            found[name] = value
    return found


def write(details: Any) -> str | None:
    """
    Return the `WWW-Authenticate` header for a fault's details; None if they have none of the members.

    >>> write({"scope": "orders:read", "order": 7})
    'Bearer scope="orders:read"'
    """
    if not isinstance(details, dict):
        return None
    parts = []
    for name in MEMBERS:
        value = details.get(name)
        if (
            isinstance(value, str)
            and value
            and len(value) <= _LONGEST
            and value.isprintable()
            and value.isascii()
        ):
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            parts.append(f'{name}="{escaped}"')
    return f"Bearer {', '.join(parts)}" if parts else None
