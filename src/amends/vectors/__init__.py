"""
Test vectors that ship with the package: each has a response, the expected Fault and the expected decision.

The vectors are the JSON files in this folder and do not depend on Python; this module loads them. docs/vectors.md
describes the format and how another implementation uses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

__all__ = [
    "ADCP_ACTIONS",
    "GROUPS",
    "TransportVector",
    "Vector",
    "VendorVector",
    "load",
    "load_transport",
    "load_vendors",
]

GROUPS = (
    *("problem", "http", "cli", "task"),
    *("adcp", "adcp-codes", "adcp-mcp", "adcp-a2a", "adcp-jsonrpc"),
    *("arcp", "shapes"),
)
"""The groups of vectors; each is one file."""

ADCP_ACTIONS: Mapping[str, str] = MappingProxyType(
    {
        "retry": "retry",
        "fix": "surface_to_caller",
        "escalate": "escalate_to_human",
        "generic": "generic_error",
    }
)
"""
AdCP's names for our actions (A17).

AdCP has no name for `verify`, `fallback` and `none`, because it defines neither side effects nor non-fatal errors.
"""


class Vector(msgspec.Struct, frozen=True, kw_only=True):
    """
    One response and the expected result.

    >>> vector = next(load("problem"))
    >>> vector.id, vector.expected["fault"]["code"]
    ('problem/s1-rate-limit', 'RATE_LIMITED')
    """

    id: str
    """`group/name`; it does not change."""
    source: str
    """The document and section the expectation follows from."""
    requirements: tuple[str, ...]
    """Ids of the requirements it covers."""
    via: str | None
    """The carrier of the response; None if the reader has to detect it."""
    input: Any
    """The document, or an object with one member, `text` or `base64`, which holds the document as it was sent."""
    expected: dict[str, Any]
    """The members that the sources determine; a member that is absent here may have any value."""

    @property
    def response(self) -> Any:
        """The value to pass to a reader: the document, or its text or bytes."""
        if isinstance(self.input, dict) and len(self.input) == 1:
            if "text" in self.input:
                return self.input["text"]
            if "base64" in self.input:
                from base64 import b64decode

                return b64decode(self.input["base64"])
        return self.input


class TransportVector(msgspec.Struct, frozen=True, kw_only=True):
    """
    A vector in the format that AdCP publishes (A17).

    >>> vector = next(load_transport())
    >>> vector.transport, vector.expected_error["code"], vector.expected_action
    ('mcp', 'RATE_LIMITED', 'retry')
    """

    id: str
    transport: str
    """mcp or a2a."""
    path: str
    """structuredContent, jsonrpc_error, text_fallback or artifact."""
    response: Any
    expected_error: Any
    """The error as sent; None if a reader must not extract one."""
    expected_action: str
    """retry, surface_to_caller, escalate_to_human or generic_error."""


class VendorVector(msgspec.Struct, frozen=True, kw_only=True):
    """
    A failure in the format of a service, and the expected result.

    >>> vector = next(load_vendors())
    >>> vector.id, vector.expected["fault"]["recovery"]
    ('vendors/anthropic-1', 'correctable')
    """

    id: str
    """`vendors/name-number`."""
    vendor: str | None
    """
    A name of `amends.vendors.NAMES`. A reader has to give the same result with and without it, except for `executed`: without
    the name it is "no" only where the HTTP status says so. None: the service has no table, and the general rules read it.
    """
    source: str
    """Address of the published reference, SDK or issue that the shape follows."""
    checked: bool
    """Whether the shape was compared with what is at the address. If not, the address is that of the vendor's reference."""
    in_success: bool
    """Whether the response is a successful answer, in which the reader was asked to look for a failure."""
    named_only: bool = False
    """Whether the result holds only with the name: the code is a number, and nothing else in the answer shows whose it is."""
    input: Any
    """As in `Vector`."""
    expected: dict[str, Any]
    """`fault`: members of the fault; `decision`: action and delay for an operation whose repeat is safe."""

    @property
    def response(self) -> Any:
        """The value to pass to a reader."""
        if isinstance(self.input, dict) and set(self.input) == {"text"}:
            return self.input["text"]
        return self.input


def load(*groups: str) -> Iterator[Vector]:
    """
    Yield the vectors of these groups; without arguments, of all groups.

    Use it to test another reader of failures, or your own code around `extract`.

    >>> from amends import extract
    >>> [vector.id for vector in load("http") if (extract(vector.response) is None) is vector.expected["found"]]
    []

    Raises:
        LookupError: if a group does not exist; the message lists the groups.

    """
    for group in groups or GROUPS:
        if group not in GROUPS:
            raise LookupError(f"no vectors {group!r}; the groups are {', '.join(GROUPS)}")
        yield from msgspec.json.decode(_read(group), type=list[Vector])


def load_transport() -> Iterator[TransportVector]:
    """
    Yield the vectors in AdCP's format.

    >>> sorted({vector.transport for vector in load_transport()})
    ['a2a', 'mcp']
    """
    yield from msgspec.json.decode(_read("transport-error-mapping"), type=list[TransportVector])


def load_vendors() -> Iterator[VendorVector]:
    """
    Yield the vectors of failures in the formats of services.

    >>> from amends import extract
    >>> vector = next(load_vendors())
    >>> extract(vector.response).recovery.value == vector.expected["fault"]["recovery"]
    True
    """
    from importlib.resources import files

    for file in sorted(files(__name__).joinpath("vendors").iterdir(), key=lambda each: each.name):
        yield from msgspec.json.decode(file.read_bytes(), type=list[VendorVector])


def _read(name: str) -> bytes:
    from importlib.resources import files

    return files(__name__).joinpath(f"{name}.json").read_bytes()
