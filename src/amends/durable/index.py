"""
Rows derived from logs, so that a list does not have to read all logs.

A row's value is a JSON object with the member `seq`, the number of the log's last entry that the row is derived from. With
transactions a row is written together with that entry. Without them it is written afterwards, and a row that is found to be
behind its log is written again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeVar

import msgspec

from amends.stores.contract import Store
from amends.stores.errors import ConflictError

__all__ = ["IndexRow", "scan_rows", "write_row"]

R = TypeVar("R", bound=msgspec.Struct)


class IndexRow(msgspec.Struct):
    """A row to write."""

    table: str
    key: str
    value: bytes
    seq: int
    """The number of the last entry that the row is derived from; also a member of the value."""
    revision: int = 0
    """The expected revision of the row in the table, 0 if there is none; `write_row` sets it to the one that it has then."""


class _Position(msgspec.Struct):
    seq: int


_read_position = msgspec.json.Decoder(_Position).decode


async def scan_rows(store: Store, table: str, kind: type[R], prefix: str = "") -> AsyncIterator[R]:
    """Iterate over the rows of a table, in no particular order. Rows that are not of this kind are skipped."""
    decode = msgspec.json.Decoder(kind).decode
    async for row in store.table(table).scan(prefix):
        try:
            found = decode(row.value)
        except msgspec.MsgspecError:
            continue
        yield found


async def write_row(store: Store, row: IndexRow) -> None:
    """Write a row, unless the table has one that is derived from the same entry or a later one."""
    table = store.table(row.table)
    while True:
        try:
            row.revision = await table.put(row.key, row.value, revision=row.revision)
        except ConflictError:
            found = await table.get(row.key)
            row.revision = 0 if found is None else found.revision
            if found is not None and _seq_of(found.value) >= row.seq:
                return
        else:
            return


def _seq_of(value: bytes) -> int:
    """The entry that a stored row is derived from; 0 if the value is not such a row."""
    try:
        return _read_position(value).seq
    except msgspec.MsgspecError:
        return 0
