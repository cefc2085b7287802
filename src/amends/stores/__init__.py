"""
Durable, shared storage: a log, a table with compare-and-set, and a queue with leases.

    from amends import stores

    async with await stores.open("sqlite:///work.db") as store:
        await store.log("jobs").append(b"started")
        revision = await store.table("keys").create("order-17", b"...")
        await store.queue("mail").put(b"...", delay=3600)

Use `memory:` in tests, `sqlite:///file` on one machine, and `postgres://host/database` or `nats://host:port/name` across
machines; the code is the same for all of them. docs/stores.md lists what each backend guarantees.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from amends.stores.address import Address, parse
from amends.stores.clock import Clock, SystemClock
from amends.stores.contract import (
    Bounds,
    DeadMessage,
    Entry,
    Lease,
    Log,
    LogWriter,
    Message,
    Queue,
    QueueSize,
    QueueWriter,
    Row,
    Store,
    Table,
    TableWriter,
    Traits,
    Transaction,
)
from amends.stores.errors import (
    ConflictError,
    DamagedStoreError,
    LeaseLostError,
    StoreClosedError,
    StoreError,
    StoreFullError,
    StoreMismatchError,
    StoreUnavailableError,
    TrimmedError,
    UnsupportedError,
    ValueTooLargeError,
)

if TYPE_CHECKING:
    from amends.stores.coded import Codec

__all__ = [
    "Bounds",
    "Clock",
    "ConflictError",
    "DamagedStoreError",
    "DeadMessage",
    "Entry",
    "Lease",
    "LeaseLostError",
    "Log",
    "LogWriter",
    "Message",
    "Queue",
    "QueueSize",
    "QueueWriter",
    "Row",
    "Store",
    "StoreClosedError",
    "StoreError",
    "StoreFullError",
    "StoreMismatchError",
    "StoreUnavailableError",
    "Table",
    "TableWriter",
    "Traits",
    "Transaction",
    "TrimmedError",
    "UnsupportedError",
    "ValueTooLargeError",
    "open",
]


async def open(
    url: str,
    *,
    clock: Clock | None = None,
    nats_options: Mapping[str, Any] | None = None,
    codec: Codec | None = None,
) -> Store:
    """
    Open the store at `url`, and create it if it does not exist yet.

        async with await open("sqlite:///work.db") as store:
            await store.log("jobs").append(b"started")

    Args:
        url: `memory:` (a new store) or `memory:name` (shared within the process); `sqlite:///relative.db` or
            `sqlite:////absolute.db` with `?synchronous=full|normal|extra` and `busy_timeout=seconds`;
            `nats://host:port,host:port/name` with `?replicas=3`, `timeout=seconds`, `dedupe_window=seconds`,
            `storage=file|memory`; `postgres://user@host:port/database` with `?pooled=yes` behind a pooler in transaction
            mode, `lock_timeout=seconds`, and the options of Postgres's own library.
        clock: replaces the machine's clock in tests (memory and SQLite; queues on NATS and Postgres use the server's clock).
        nats_options: passed to `nats.connect` as they are: credentials, TLS, names.
        codec: encodes all values before they are written, and decodes what is read: encryption. All processes that use the store
            need the same one. Names, keys and reasons of dead letters are not encoded.

    Raises:
        ValueError: `url` is not a store URL.
        ImportError: `nats-py` or `psycopg` is missing; the message names the line that installs it.
        StoreUnavailableError: the server does not answer, or the file cannot be opened.
        DamagedStoreError: the file is not a store, is damaged, or was written by another version.
        StoreMismatchError: the store has other settings than the URL asks for.

    """
    store = await _open(parse(url), clock, nats_options)
    if codec is None:
        return store
    from amends.stores.coded import CodedStore

    return CodedStore(store, codec)


async def _open(address: Address, clock: Clock | None, nats_options: Mapping[str, Any] | None) -> Store:
    if address.scheme == "memory":
        from amends.stores.memory import open_memory

        return open_memory(address, clock or SystemClock())
    if address.scheme == "sqlite":
        from amends.stores.sqlite import open_sqlite

        return await open_sqlite(address, clock or SystemClock())
    if address.scheme == "postgres":
        from amends.stores.postgres import open_postgres

        return await open_postgres(address, clock or SystemClock())
    from amends.stores.nats import open_nats

    return await open_nats(address, nats_options or {})
