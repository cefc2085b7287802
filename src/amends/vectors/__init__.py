"""
Test vectors that ship with the package: responses with the expected fault and decision.

The vectors are the JSON files in this folder and do not depend on Python; this module reads them. docs/vectors.md
describes the format and how other implementations can use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

__all__ = ["GROUPS", "S4_ACTIONS", "TransportVector", "Vector", "load", "load_transport"]

GROUPS = (
    *("problem", "http", "cli", "task"),
    *("adcp", "adcp-codes", "adcp-mcp", "adcp-a2a", "adcp-jsonrpc"),
    *("arcp", "shapes"),
)
"""One file each."""

S4_ACTIONS: Mapping[str, str] = MappingProxyType(
    {
        "retry": "retry",
        "fix": "surface_to_caller",
        "escalate": "escalate_to_human",
        "generic": "generic_error",
    }
)
"""AdCP's names of our actions (A17). AdCP has no name for `verify`, `fallback` and `none`."""


class Vector(msgspec.Struct, frozen=True, kw_only=True):
    """One response and the expected result."""

    id: str
    """The group, a slash, a name; stable."""
    source: str
    """The document and section the expectation follows from."""
    requirements: tuple[str, ...]
    """Ids of the requirements ledger."""
    via: str | None
    """The carrier of the response; None: its shape decides."""
    input: Any
    """The document, or an object whose only member is `text` or `base64`: the document's text or bytes."""
    expected: dict[str, Any]
    """Only what the sources determine; other members may have any value."""

    @property
    def response(self) -> Any:
        """The value to read: the document, or its raw text or bytes."""
        if isinstance(self.input, dict) and len(self.input) == 1:
            if "text" in self.input:
                return self.input["text"]
            if "base64" in self.input:
                from base64 import b64decode

                return b64decode(self.input["base64"])
        return self.input


class TransportVector(msgspec.Struct, frozen=True, kw_only=True):
    """A vector in the format that AdCP publishes (A17)."""

    id: str
    transport: str
    """mcp or a2a."""
    path: str
    """structuredContent, jsonrpc_error, text_fallback or artifact."""
    response: Any
    expected_error: Any
    """The error as sent; None if none may be extracted."""
    expected_action: str
    """retry, surface_to_caller, escalate_to_human or generic_error."""


def load(*groups: str) -> Iterator[Vector]:
    """
    Yield the vectors of these groups, or of all of them.

    Raises:
        LookupError: if a group does not exist.

    """
    for group in groups or GROUPS:
        if group not in GROUPS:
            raise LookupError(f"no vectors {group!r}; there are {', '.join(GROUPS)}")
        yield from msgspec.json.decode(_read(group), type=list[Vector])


def load_transport() -> Iterator[TransportVector]:
    """Yield the vectors in AdCP's format."""
    yield from msgspec.json.decode(_read("transport-error-mapping"), type=list[TransportVector])


def _read(name: str) -> bytes:
    from importlib.resources import files

    return files(__name__).joinpath(f"{name}.json").read_bytes()
