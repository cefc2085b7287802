"""
Test vectors that ship with the package: a response in, what it says and what to do about it out.

The JSON files beside this module are the data, free of anything Python; this is only how to read them. The format
and how another implementation uses them: docs/vectors.md.
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
"""Our actions in S4's words (A17). S4 has none for `verify`, `fallback` and `none`: it knows no effects and no remarks."""


class Vector(msgspec.Struct, frozen=True, kw_only=True):
    """One response, and what has to be made of it."""

    id: str
    """The group, a slash, a name; stable."""
    source: str
    """The document and section the expectation follows from."""
    requirements: tuple[str, ...]
    """Ids of the requirements ledger."""
    via: str | None
    """How the response came; None: its shape decides."""
    input: Any
    """The document, or an object whose only member is `text` or `base64`: a document as it stood on the wire."""
    expected: dict[str, Any]
    """Only what the sources determine; a member that is not there says nothing."""

    @property
    def response(self) -> Any:
        """What to hand to a reader: the document, or its raw text or bytes."""
        if isinstance(self.input, dict) and len(self.input) == 1:
            if "text" in self.input:
                return self.input["text"]
            if "base64" in self.input:
                from base64 import b64decode

                return b64decode(self.input["base64"])
        return self.input


class TransportVector(msgspec.Struct, frozen=True, kw_only=True):
    """A vector in the form S4 publishes (A17)."""

    id: str
    transport: str
    """mcp or a2a."""
    path: str
    """structuredContent, jsonrpc_error, text_fallback or artifact."""
    response: Any
    expected_error: Any
    """The error as sent; None where none may be extracted."""
    expected_action: str
    """retry, surface_to_caller, escalate_to_human or generic_error."""


def load(*groups: str) -> Iterator[Vector]:
    """
    The vectors of these groups, or of all of them.

    Raises:
        LookupError: for a group there is none of.

    """
    for group in groups or GROUPS:
        if group not in GROUPS:
            raise LookupError(f"no vectors {group!r}; there are {', '.join(GROUPS)}")
        yield from msgspec.json.decode(_read(group), type=list[Vector])


def load_transport() -> Iterator[TransportVector]:
    """The vectors in S4's own form."""
    yield from msgspec.json.decode(_read("transport-error-mapping"), type=list[TransportVector])


def _read(name: str) -> bytes:
    from importlib.resources import files

    return files(__name__).joinpath(f"{name}.json").read_bytes()
