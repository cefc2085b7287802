"""
Credentials provisioned for a job (section 9.8): what they are, and who mints them.

A runtime with a provider offers the feature, and sees to it that what was minted becomes worthless: see `issuing` and
`rotation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from amends.arcp.runtime.entries import JobEntry, JobSpec, encode
from amends.arcp.wire import text_of

__all__ = [
    "ROTATED",
    "Credential",
    "CredentialProvider",
    "Grant",
    "Outstanding",
    "RotatingCredentialProvider",
    "carries_secret",
    "discreet",
    "grant_of",
    "on_wire",
]

ROTATED = "credential_rotated"
"""The phase of the `status` event that tells a new value (9.8.2)."""
_ROTATED = b'"credential_rotated"'


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider needs to know about a job to bound its credentials."""

    job_id: str
    principal: str
    agent: str
    lease: dict[str, list[str]]
    expires_at: str | None = None
    parent_job_id: str | None = None


class Credential(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A credential on the wire (9.8.1). Its text form does not show its value."""

    id: str
    value: str
    endpoint: str
    scheme: str = "bearer"
    profile: str | None = None
    constraints: dict[str, Any] | None = None
    rotate_after: float | None = None
    """Seconds after which the runtime asks for another value; needs a `RotatingCredentialProvider`. Not sent."""

    def __repr__(self) -> str:
        return f"Credential(id={self.id!r}, endpoint={self.endpoint!r})"


class CredentialProvider(Protocol):
    """Whoever mints: a gateway with virtual keys, say."""

    async def issue(self, grant: Grant) -> Sequence[Credential]:
        """Mint credentials for one run of one job, bounded by its lease. Never the same value or id twice."""

    async def revoke(self, job_id: str, ids: Sequence[str]) -> None:
        """
        Make credentials of a job worthless, with every value they ever had. Repeating it is fine.

        `ids` is empty where the node died while minting: then whatever was minted for this job is meant.
        """


class RotatingCredentialProvider(CredentialProvider, Protocol):
    """One that can give a credential another value while its job runs."""

    async def rotate(self, grant: Grant, credential: Credential) -> Credential:
        """Mint another value for a credential, under its id and bounded as before. The old one works until retired."""

    async def retire(self, job_id: str, credential: Credential) -> None:
        """Make this value of a credential worthless, and no other. Repeating it is fine."""


class Outstanding(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a job has outstanding: the row that is there before anything is minted, until everything is worthless."""

    since: float
    ids: tuple[str, ...] = ()
    credentials: tuple[Credential, ...] = ()
    replaced: tuple[Credential, ...] = ()
    """Values that others have taken the place of, and that still work."""
    due: dict[str, float] = {}
    """By id: when it is to be rotated."""

    def wire(self) -> list[dict[str, Any]]:
        """As its submitter and its agent get them."""
        return [on_wire(credential) for credential in self.credentials]


def on_wire(credential: Credential) -> dict[str, Any]:
    """A credential as it is sent; its scheme is, whatever it is (9.8.1)."""
    members: dict[str, Any] = msgspec.to_builtins(credential) | {"scheme": credential.scheme}
    members.pop("rotate_after", None)
    return members


def grant_of(order: JobSpec) -> Grant:
    """What a provider is told of a job."""
    return Grant(
        job_id=order.job_id,
        principal=order.principal,
        agent=order.agent,
        lease={name: list(patterns) for name, patterns in order.grants.items()},
        expires_at=None if order.expires_at is None else text_of(order.expires_at),
        parent_job_id=order.parent,
    )


def carries_secret(mark: JobEntry) -> bool:
    """Whether an event tells a credential's new value."""
    return mark.kind == "event" and _ROTATED in bytes(mark.payload)


def discreet(mark: JobEntry) -> JobEntry:
    """An entry as others than the job's submitter are sent it (14): that a credential has a new value, not which."""
    if not carries_secret(mark):
        return mark
    event = msgspec.json.decode(mark.payload)
    body = event.get("body") or {}
    if event.get("kind") != "status" or body.get("phase") != ROTATED:
        return mark
    body.pop("value", None)
    return JobEntry(mark.kind, mark.run, mark.epoch, mark.node, mark.at, msgspec.Raw(encode(event)))
