"""What is being called, as far as it matters for calling it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import msgspec

__all__ = ["Operation"]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """
    One logical operation, however many calls it takes.

    Nothing is assumed: an operation that says nothing is repeated only when it surely did not happen.
    """

    name: str = ""
    """For people and telemetry; never arguments."""
    read_only: bool = False
    """It changes nothing, so a repeat cannot harm."""
    idempotent: bool = False
    """Doing it twice has the effect of doing it once."""
    destructive: bool = False
    """It may destroy something; said for people, and never makes a repeat safe."""
    key: str | None = None
    """The idempotency key that every attempt carries. Set it only for a service that honours keys."""
    keyed: bool = False
    """The service honours idempotency keys: recovery makes a new key for each operation that has none."""

    def __post_init__(self) -> None:
        # A key makes a repeat safe, so an empty one, which no server looks at, must not pass for one.
        if self.key is not None and (self.key.__class__ is not str or not self.key):
            raise ValueError(f"key is a non-empty string, not {self.key!r}")

    @property
    def repeatable(self) -> bool:
        """Whether a repeat is safe even if an earlier try had its effect."""
        return self.read_only or self.idempotent or self.key is not None

    @classmethod
    def of_http(cls, method: str, *, name: str = "", key: str | None = None) -> Self:
        """
        What an HTTP method promises (RFC 9110, 9.2).

        >>> Operation.of_http("PUT").repeatable, Operation.of_http("POST").repeatable
        (True, False)
        """
        method = method.upper()
        return cls(
            name=name or method,
            read_only=method in _SAFE,
            idempotent=method in _IDEMPOTENT,
            destructive=method == "DELETE",
            key=key,
        )

    @classmethod
    def of_tool(cls, annotations: Any, *, name: str = "", key: str | None = None) -> Self:
        """
        What an MCP tool's annotations promise: a mapping, an object with such attributes, or None.

        A hint counts only when it is exactly true: annotations come from the server, and anything else promises
        nothing. `destructiveHint` is true unless the server says otherwise or the tool is read-only.
        """
        read_only = _said(annotations, "readOnlyHint", "read_only_hint") is True
        return cls(
            name=name,
            read_only=read_only,
            idempotent=_said(annotations, "idempotentHint", "idempotent_hint") is True,
            destructive=not read_only
            and _said(annotations, "destructiveHint", "destructive_hint") is not False,
            key=key,
        )


_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_IDEMPOTENT = _SAFE | {"PUT", "DELETE"}


def _said(annotations: Any, wire: str, attribute: str) -> Any:
    """One hint, under its wire name or the SDK's; an object that has the SDK's is not asked for the other."""
    if isinstance(annotations, Mapping):
        found = annotations.get(wire)
        return annotations.get(attribute) if found is None else found
    if hasattr(annotations, attribute):
        return getattr(annotations, attribute)
    return getattr(annotations, wire, None)
