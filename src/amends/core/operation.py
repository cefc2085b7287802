"""Describe an operation, so that recovery knows whether it may be repeated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import msgspec

from amends.core.named_options import NamedOptions
from amends.core.validate import check_flag, check_kind, shown
from amends.proof import Claim, Proof, rests_on

__all__ = ["Operation"]


class Operation(msgspec.Struct, metaclass=NamedOptions, frozen=True, kw_only=True, repr_omit_defaults=True):
    """
    One logical operation, which may take several calls.

    Nothing is assumed: by default an operation is repeated only if the failed call certainly had no effect. Declare what makes
    a repeat safe.

    >>> Operation(name="search", read_only=True)
    Operation(name='search', read_only=True)
    >>> Operation(name="pay", keyed=True)
    Operation(name='pay', keyed=True)
    """

    name: str = ""
    """For people and telemetry. Does not contain arguments."""
    read_only: bool = False
    """It changes nothing, so a repeat is safe."""
    idempotent: bool = False
    """Doing it twice has the effect of doing it once."""
    destructive: bool = False
    """It may destroy something. Information for people; does not affect whether a repeat is safe."""
    key: str | None = None
    """The idempotency key that every attempt carries. Set it only for a service that honours keys."""
    keyed: bool = False
    """The service honours idempotency keys: recovery makes a new key for each operation that has none."""
    computes: bool = False
    """It only computes an answer, such as a call of a model: a repeat, also by another service, costs time or money only."""
    priority: int = 0
    """Operations with a higher number are sent first when an Upstream has to hold some back."""
    method: str = ""
    """The HTTP method, for logs."""
    url: str = ""
    """The address, for logs. They show it without its query."""
    size: int = 0
    """The size of the request in bytes, for limits per token. 0: unknown."""
    trace_id: str = ""
    """The trace that the calls belong to, for logs, if the failure names none."""
    binding: str = ""
    """The kind of client that makes the calls, for the recorder: a key of `amends.recorder.WHERE`."""

    def __post_init__(self) -> None:
        # A key makes a repeat safe. Servers ignore an empty key, so it must not count as one.
        key: object = self.key
        if key is not None and (not isinstance(key, str) or not key):
            raise ValueError(f"key is a non-empty string, not {shown(key)}")
        # The text "no" would count as true, and the call would be repeated.
        # One condition first: clients make an operation for every call.
        flags: tuple[object, ...] = (
            self.read_only,
            self.idempotent,
            self.destructive,
            self.keyed,
            self.computes,
        )
        if not all(map(isinstance, flags, _BOOLS)):
            for flag, value in zip(_FLAGS, flags, strict=True):
                check_flag(flag, value)
        priority: object = self.priority
        if type(priority) is not int or not -_MOST_PRIORITY <= priority <= _MOST_PRIORITY:
            raise ValueError(f"priority is a whole number from -100 to 100, not {shown(priority)}")
        name: object = self.name
        if not isinstance(name, str):
            raise TypeError(f"name is str, not {type(name).__name__}")

    @property
    @rests_on(Claim.MAY_REPEAT, Proof.METHOD, Proof.USER)
    def repeatable(self) -> bool:
        """Whether a repeat is safe even if an earlier try had its effect."""
        return self.read_only or self.idempotent or self.computes or self.key is not None

    @classmethod
    def of_http(
        cls, method: str, *, name: str = "", key: str | None = None, url: str = "", trace_id: str = ""
    ) -> Self:
        """
        Return the operation of an HTTP method (RFC 9110, 9.2).

        >>> Operation.of_http("PUT").repeatable, Operation.of_http("POST").repeatable
        (True, False)
        """
        given: object = method
        if not isinstance(given, str):
            check_kind("method", given, str, 'Operation.of_http("GET")')
        method = method.upper()
        return cls(
            name=name or method,
            read_only=method in _SAFE,
            idempotent=method in _IDEMPOTENT,
            destructive=method == "DELETE",
            key=key,
            method=method,
            url=url,
            trace_id=trace_id,
            binding="http client",
        )

    @classmethod
    @rests_on(Claim.MAY_REPEAT, Proof.DECLARED)
    def of_tool(cls, annotations: object, *, name: str = "", key: str | None = None) -> Self:
        """
        Return the operation of an MCP tool from its annotations: a mapping, an object with such attributes, or None.

        A hint counts only if it is exactly true. `destructiveHint` is true unless the server says otherwise or the
        tool is read-only.
        """
        read_only = _hint(annotations, "readOnlyHint", "read_only_hint") is True
        return cls(
            name=name,
            read_only=read_only,
            idempotent=_hint(annotations, "idempotentHint", "idempotent_hint") is True,
            destructive=not read_only
            and _hint(annotations, "destructiveHint", "destructive_hint") is not False,
            key=key,
            binding="mcp client",
        )


_FLAGS = ("read_only", "idempotent", "destructive", "keyed", "computes")
_BOOLS = (bool,) * len(_FLAGS)
_MOST_PRIORITY = 100
_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_IDEMPOTENT = _SAFE | {"PUT", "DELETE"}


def _hint(annotations: object, wire: str, attribute: str) -> object:
    """Return one hint by its wire name or its attribute in the SDK. If the attribute exists, only that is read."""
    if isinstance(annotations, Mapping):
        found = annotations.get(wire)
        return annotations.get(attribute) if found is None else found
    if hasattr(annotations, attribute):
        return getattr(annotations, attribute)
    return getattr(annotations, wire, None)
