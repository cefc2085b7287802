"""What is being called, as far as it matters for calling it again."""

from __future__ import annotations

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
    """The idempotency key that travels with every attempt, made once per operation."""

    @property
    def repeatable(self) -> bool:
        """Whether a repeat is safe even if an earlier try had its effect."""
        return self.read_only or self.idempotent or self.key is not None
