"""Derived rows: a newer row is never replaced by an older one."""

import msgspec
import pytest

from amends.durable.index import IndexRow, scan_rows, write_row


class Row(msgspec.Struct):
    seq: int
    text: str = ""


def made(seq, revision=0):
    return IndexRow("rows", "k", msgspec.json.encode(Row(seq, f"row {seq}")), seq, revision)


async def rows(store):
    return [(row.seq, row.text) async for row in scan_rows(store, "rows", Row)]


@pytest.mark.parametrize("revision", [0, 7])
async def test_an_older_row_is_not_written(store, revision):
    """Whatever revision was expected; the row's own revision is the table's afterwards."""
    for seq, kept in ((2, 2), (1, 2), (2, 2), (3, 3)):
        row = made(seq, revision)
        await write_row(store, row)
        assert await rows(store) == [(kept, f"row {kept}")]
        assert row.revision == (await store.table("rows").get("k")).revision


async def test_a_value_that_is_no_row(store):
    """It is skipped by a scan, and replaced."""
    for value in (b"\xff", b"[1]", b'{"seq": "x"}', b"{}"):
        await store.table("rows").put("k", value)
        assert await rows(store) == []
        await write_row(store, made(1))
        assert await rows(store) == [(1, "row 1")]


async def test_the_first_row_of_a_log(store):
    """A row derived from no entry is written, and a value that is no row counts as such a one."""
    row = made(0)
    await write_row(store, row)
    assert await rows(store) == [(0, "row 0")]
    assert row.revision > 0
    await store.table("rows").put("k", b"[]")
    await write_row(store, made(0))
    assert await rows(store) == []
    await write_row(store, made(1))
    assert await rows(store) == [(1, "row 1")]
