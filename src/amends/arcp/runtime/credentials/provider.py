"""
Credentials provisioned for jobs (section 9.8): their types, and the protocols that a provider implements.

A runtime with a provider offers the feature and revokes what was issued: see `lifecycle` and `rotation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

from amends.arcp.runtime.entries import JobEntry, JobSpec, encode
from amends.arcp.wire import text_of
from amends.core.named_options import NamedOptions

__all__ = [
    "ROTATED",
    "Credential",
    "CredentialProvider",
    "Grant",
    "Outstanding",
    "RotatingCredentialProvider",
    "grant_of",
    "to_wire",
    "without_secret",
]

ROTATED = "credential_rotated"
"""The phase of the `status` event that carries a credential's new value (9.8.2)."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """
    The facts about a job that a provider needs to limit its credentials: the argument of `CredentialProvider.issue`.

        async def issue(self, grant: Grant) -> list[Credential]:
            key = await gateway.create_key(job=grant.job_id, models=grant.lease.get("model.use", []))
            return [Credential(id=key.id, value=key.secret, endpoint="https://gateway.example/v1")]
    """

    job_id: str
    principal: str
    agent: str
    lease: dict[str, list[str]]
    expires_at: str | None = None
    parent_job_id: str | None = None


class Credential(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, metaclass=NamedOptions):
    """
    A credential on the wire (9.8.1). Its `repr` does not show the value.

    >>> Credential(id="key-17", value="secret", endpoint="https://gateway.example/v1", rotate_after=3600)
    Credential(id='key-17', endpoint='https://gateway.example/v1')
    """

    id: str
    value: str
    endpoint: str
    scheme: str = "bearer"
    profile: str | None = None
    constraints: dict[str, object] | None = None
    rotate_after: float | None = None
    """Seconds until the runtime rotates the value; needs a `RotatingCredentialProvider`. Not sent to clients."""

    def __repr__(self) -> str:
        return f"Credential(id={self.id!r}, endpoint={self.endpoint!r})"


class CredentialProvider(Protocol):
    """
    A service that issues credentials, for example a gateway with virtual keys. Pass one to `Runtime(credentials=...)`.

        class Gateway:
            async def issue(self, grant):
                key = await gateway.create_key(job=grant.job_id, expires_at=grant.expires_at)
                return [Credential(id=key.id, value=key.secret, endpoint="https://gateway.example/v1")]

            async def revoke(self, job_id, ids):
                await gateway.delete_keys(job=job_id)

        runtime = Runtime(tokens={"secret": "alice"}, credentials=Gateway())
    """

    async def issue(self, grant: Grant) -> Sequence[Credential]:
        """Issue credentials for one run of a job, limited by its lease. Values and ids must never repeat."""

    async def revoke(self, job_id: str, ids: Sequence[str]) -> None:
        """
        Invalidate credentials of a job, with every value they ever had. It may be called more than once.

        `ids` is empty if the node died while credentials were being issued; then invalidate all of this job's.
        """


class RotatingCredentialProvider(CredentialProvider, Protocol):
    """
    A provider that can replace a credential's value while its job runs. It has two more methods:

        class RotatingGateway(Gateway):
            async def rotate(self, grant, credential):
                return msgspec.structs.replace(credential, value=await gateway.add_secret(credential.id))

            async def retire(self, job_id, credential):
                await gateway.remove_secret(credential.id, credential.value)
    """

    async def rotate(self, grant: Grant, credential: Credential) -> Credential:
        """Issue a new value for a credential, with the same id and limits. The old value works until it is retired."""

    async def retire(self, job_id: str, credential: Credential) -> None:
        """Invalidate this value of a credential and no other. It may be called more than once."""


class Outstanding(msgspec.Struct, frozen=True, omit_defaults=True):
    """The row of a job's credentials; it exists from before they are issued until all of them are revoked."""

    since: float
    ids: tuple[str, ...] = ()
    credentials: tuple[Credential, ...] = ()
    replaced: tuple[Credential, ...] = ()
    """Values that were replaced and are not retired yet."""
    due: dict[str, float] = {}
    """When to rotate each credential, by id."""

    def wire(self) -> list[dict[str, object]]:
        """Return the credentials as the submitter and the agent get them."""
        return [to_wire(credential) for credential in self.credentials]


def to_wire(credential: Credential) -> dict[str, object]:
    """Return a credential's wire form; it always has the scheme, also the default one (9.8.1)."""
    members: dict[str, object] = msgspec.to_builtins(credential) | {"scheme": credential.scheme}
    members.pop("rotate_after", None)
    return members


def grant_of(spec: JobSpec) -> Grant:
    """Return the `Grant` that describes a job to its provider."""
    return Grant(
        job_id=spec.job_id,
        principal=spec.principal,
        agent=spec.agent,
        lease={name: list(patterns) for name, patterns in spec.grants.items()},
        expires_at=None if spec.expires_at is None else text_of(spec.expires_at),
        parent_job_id=spec.parent,
    )


def without_secret(entry: JobEntry) -> JobEntry:
    """Remove a credential's new value from an event, for sessions of other principals than the job's (14)."""
    if entry.label != "status":
        return entry
    event = msgspec.json.decode(entry.payload)
    body = event.get("body") or {}
    if body.get("phase") != ROTATED:
        return entry
    body.pop("value", None)
    return replace(entry, payload=msgspec.Raw(encode(event)))
