"""The idempotency keys of an HTTP application: the stored response, and the errors that a repeated key is answered with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from math import ceil
from typing import Any, TypeAlias

from msgspec.structs import replace

from amends.core.enums import Executed, Recovery
from amends.durable import keys
from amends.durable.keys import KeyInDoubt, KeyRecord, KeyReused, KeyRunning
from amends.errors.base import FaultError
from amends.http.responses import RawResponse
from amends.serving.effect_unknown import EffectUnknownError
from amends.stores.contract import Store, Transaction
from amends.stores.deadlines import LeaseOwner

__all__ = ["Claim", "Keys", "Record", "Verify"]

RECORDS = "amends.http.keys"


class Record(KeyRecord, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a request with a key, and its response."""

    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    """None if the body was too large to be stored, or is not known."""


Claim: TypeAlias = keys.Claim[Record]
Verify = Callable[[Record], Awaitable[RawResponse | bool | None]]
"""Finds out whether the request of a record in doubt had its effect; see `verified_response`."""


class Keys(keys.Keys[Record]):
    """The idempotency keys of one application in one store. `claim` and `write` raise FaultErrors."""

    def __init__(
        self, store: Store, *, expires_in: float, lease: float, owner: LeaseOwner | None = None
    ) -> None:
        super().__init__(store, RECORDS, Record, expires_in=expires_in, lease=lease, owner=owner)

    async def claim(
        self, name: str, fingerprint: str, *, transactional: bool = False, verify: Any = None
    ) -> Claim | Record:
        """See `durable.keys.Keys.claim`; `verify` is a `Verify`."""
        with _fault_errors():
            return await super().claim(
                name,
                fingerprint,
                transactional=transactional,
                verify=None if verify is None else _verify_record(verify),
            )

    def write(self, tx: Transaction, claim: Claim, **outcome: object) -> None:
        """See `durable.keys.Keys.write`."""
        with _fault_errors():
            super().write(tx, claim, **outcome)


def _verify_record(verify: Verify) -> Callable[[Record], Awaitable[Record | bool | None]]:
    """Return the hook with the response that it returned as a record."""

    async def verify_record(record: Record) -> Record | bool | None:
        found = await verify(record)
        if isinstance(found, RawResponse):
            return replace(record, status=found.status, headers=tuple(found.headers), body=found.body)
        return replace(record, status=0, body=None) if found else found

    return verify_record


@contextmanager
def _fault_errors() -> Generator[None]:
    try:
        yield
    except KeyInDoubt:
        raise EffectUnknownError from None
    except KeyRunning as error:
        raise FaultError(
            "A request with this key is being worked on",
            code="CONFLICT",
            vocabulary="http",
            recovery=Recovery.TRANSIENT,
            status=409,
            # It ends at the latest then, unless the process lives and renews its lease.
            retry_after=max(1.0, ceil(error.left * 10) / 10),
            executed=Executed.MAYBE,
        ) from error
    except KeyReused:
        raise FaultError(
            "This key was used for another request",
            code="VALIDATION_ERROR",
            vocabulary="http",
            status=422,
            field="Idempotency-Key",
            suggestions=("Send this request with a new key", "Or send the first request again, unchanged"),
        ) from None
