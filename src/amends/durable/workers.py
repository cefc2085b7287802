"""
The processes that work on one store: each has a row, which expires unless the process renews it.

A row says what its worker offers, and that the worker is alive until a deadline on the clock since boot (see `deadlines`). When
that is over or the row is gone, other workers may take over what the worker held. A worker that could not renew its row in time has to check, before it goes on, what was taken over from it: it
does so for one more expiry after the renewal, because another worker may have seen the row expire and act only then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar

import msgspec

from amends.proof import Claim, Proof, rests_on
from amends.stores.contract import Store
from amends.stores.deadlines import Deadline, Deadlines
from amends.stores.errors import StoreClosedError, StoreError

__all__ = ["Alive", "Workers"]

W = TypeVar("W")

_encode = msgspec.json.Encoder().encode
_ROW_KEPT = 30 * 86400.0
"""Seconds for which a row is kept: no change of the wall clock may remove that of a worker that is alive."""


class _Stored(msgspec.Struct, frozen=True):
    """A row as it is stored, with the time until which its worker is alive."""

    alive_until: Deadline | None = None
    row: msgspec.Raw = msgspec.Raw()


_read_stored = msgspec.json.Decoder(_Stored).decode


class Alive(NamedTuple, Generic[W]):
    """The row of a worker that is alive."""

    row: W
    expires_in: float


class Workers(Generic[W]):
    """The rows of the workers of one store."""

    def __init__(self, store: Store, table: str, kind: type[W], *, expires_in: float) -> None:
        """
        Args:
            store: where the rows are.
            table: the name of their table.
            kind: the type of the rows.
            expires_in: seconds after which a worker that does not renew its row counts as dead.
        """
        self._table = store.table(table)
        self._deadlines = Deadlines.of(store)
        self._decode = msgspec.json.Decoder(kind).decode
        self.expires_in = expires_in

    async def announce(self, name: str, row: W) -> None:
        """Write a worker's row."""
        stored = _Stored(self._deadlines.start(self.expires_in), msgspec.Raw(_encode(row)))
        await self._table.put(name, _encode(stored), expires_in=_ROW_KEPT)

    async def withdraw(self, name: str) -> None:
        """Delete the row of a worker that stops."""
        await self._table.delete(name)

    @rests_on(Claim.LEASE_ENDED, Proof.BOOT_CLOCK)
    async def alive(self) -> dict[str, Alive[W]]:
        """Return the rows of the workers that are alive. Rows that are not of this kind are skipped."""
        found = {}
        async for row in self._table.scan():
            with suppress(msgspec.MsgspecError, StoreError):
                stored = _read_stored(row.value)
                until = stored.alive_until
                left = (row.expires_in or 0.0) if until is None else self._deadlines.left(until, row.key)
                if until is None or left > 0:
                    found[row.key] = Alive(self._decode(row.value if until is None else stored.row), left)
                else:
                    await self._table.delete(row.key, revision=row.revision)
        return found

    async def keep_announcing(
        self,
        announce: Callable[[], Awaitable[None]],
        *,
        log: logging.Logger,
        after_lapse: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """
        Renew a worker's row three times per expiry, until this is cancelled or the store is closed.

        Args:
            announce: writes the row.
            log: gets a warning when the store fails.
            after_lapse: called after each renewal for as long as others may take over what this worker held, because the
                row had expired.
        """
        loop = asyncio.get_running_loop()
        renewed = check_until = loop.time()
        while True:
            begin = loop.time()
            try:
                await announce()
                if loop.time() - renewed > self.expires_in:
                    check_until = loop.time() + self.expires_in
                renewed = begin
                if after_lapse is not None and begin < check_until:
                    await after_lapse()
            except StoreClosedError:
                return
            except StoreError as error:
                log.warning("this worker could not renew its row: %s", error)
            except Exception:
                log.exception("this worker could not renew its row; trying again")
            await asyncio.sleep(max(0.0, self.expires_in / 3 - (loop.time() - begin)))
