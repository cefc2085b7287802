"""
A store whose values are encrypted, or encoded in another way, before they leave the process.

Names of logs, tables and queues, keys, ids for deduplication and reasons of dead letters are not encoded: the store finds by them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from inspect import iscoroutinefunction
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from amends.stores.clock import Clock
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
from amends.stores.errors import DamagedStoreError
from amends.stores.local import async_work
from amends.stores.signal import Signal

__all__ = ["Codec", "CodedStore"]

T = TypeVar("T")
Value = TypeVar("Value", Entry, Row, Message, DeadMessage)


class Codec(Protocol):
    """
    Encodes the values of a store; an application gives it to `stores.open(codec=...)`.

        class Encrypted:
            def __init__(self, *keys):
                self._fernet = MultiFernet([Fernet(key) for key in keys])    # of the package cryptography

            def encode(self, value):
                return self._fernet.encrypt(value)

            def decode(self, value):
                return self._fernet.decrypt(value)
    """

    def encode(self, value: bytes, /) -> bytes:
        """Return what is stored for a value. It may differ each time."""

    def decode(self, value: bytes, /) -> bytes:
        """Return the value. Raises any exception if it is none of this codec's."""


class CodedStore:
    """
    A store that encodes its values.

    >>> import asyncio
    >>> class Reversed:
    ...     def encode(self, value):
    ...         return value[::-1]
    ...     decode = encode
    >>> from amends import stores
    >>> async def example():
    ...     async with await stores.open("memory:", codec=Reversed()) as store:
    ...         await store.log("jobs").append(b"started")
    ...         stored = await store.inner.log("jobs").tail()
    ...         return stored.value, (await store.log("jobs").tail()).value
    >>> asyncio.run(example())
    (b'detrats', b'started')
    """

    def __init__(self, inner: Store, codec: Codec) -> None:
        for method in ("encode", "decode"):
            if not callable(getattr(codec, method, None)):
                raise TypeError(
                    f"codec= needs the methods encode and decode; {type(codec).__name__} has no {method}"
                )
        self.inner, self.codec = inner, codec

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def url(self) -> str:
        """The store's URL, without passwords."""
        return self.inner.url

    @property
    def traits(self) -> Traits:
        """What this store can do."""
        return self.inner.traits

    @property
    def clock(self) -> Clock:
        """The clocks of this process."""
        return self.inner.clock

    def log(self, name: str) -> Log:
        """The log with that name."""
        return _Log(self.inner.log(name), self)

    def table(self, name: str) -> Table:
        """The table with that name."""
        return _Table(self.inner.table(name), self)

    def queue(self, name: str, *, lease: float = 30.0, max_attempts: int | None = None) -> Queue:
        """The queue with that name."""
        return _Queue(self.inner.queue(name, lease=lease, max_attempts=max_attempts), self)

    async def transaction(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction."""
        if iscoroutinefunction(work):
            raise async_work()
        return await self.inner.transaction(lambda tx: work(_Transaction(tx, self)))

    async def names(self) -> dict[str, list[str]]:
        """The names of what is stored."""
        return await self.inner.names()

    async def check(self) -> list[str]:
        """Read everything stored, as it is stored, and return the problems found."""
        return await self.inner.check()

    async def close(self) -> None:
        """Close the store."""
        await self.inner.close()

    async def __aenter__(self) -> Self:
        """Return the store."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the store."""
        await self.close()

    def encode(self, value: bytes) -> bytes:
        """Return what is stored for a value."""
        return bytes(self.codec.encode(value))

    def decode(self, value: bytes) -> bytes:
        """
        Return a stored value.

        Raises:
            DamagedStoreError: the codec cannot decode it.

        """
        try:
            return bytes(self.codec.decode(value))
        except Exception as error:
            raise DamagedStoreError(
                "a value of the store cannot be decoded: open it with the codec, and the key, with which it was written"
            ) from error

    def read(self, found: Value) -> Value:
        """Return an entry, a row or a message with its value decoded."""
        return replace(found, value=self.decode(found.value))


class _Log:
    def __init__(self, inner: Log, store: CodedStore) -> None:
        self._inner, self._store = inner, store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def name(self) -> str:
        return self._inner.name

    async def append(self, value: bytes, *, dedupe: str | None = None, last: int | None = None) -> int:
        return await self._inner.append(self._store.encode(value), dedupe=dedupe, last=last)

    async def read(self, start: int | None = None, *, limit: int = 100) -> list[Entry]:
        return [self._store.read(entry) for entry in await self._inner.read(start, limit=limit)]

    async def follow(self, start: int | None = None) -> AsyncGenerator[Entry, None]:
        followed = self._inner.follow(start)
        try:
            async for entry in followed:
                yield self._store.read(entry)
        finally:
            await followed.aclose()

    @asynccontextmanager
    async def watch(self) -> AsyncGenerator[Signal, None]:
        async with self._inner.watch() as signal:
            yield _CodedSignal(signal, self._store)

    async def tail(self) -> Entry | None:
        entry = await self._inner.tail()
        return None if entry is None else self._store.read(entry)

    async def bounds(self) -> Bounds:
        return await self._inner.bounds()

    async def trim(self, before: int) -> int:
        return await self._inner.trim(before)

    async def drop(self) -> None:
        await self._inner.drop()


class _CodedSignal(Signal):
    """The signal of a log, whose entries are decoded."""

    def __init__(self, inner: Signal, store: CodedStore) -> None:
        self._inner, self._store = inner, store

    @property
    def count(self) -> int:  # type: ignore[override]
        return self._inner.count

    @property
    def has_waiters(self) -> bool:
        return self._inner.has_waiters

    def entries(self, start: int) -> list[Entry]:
        return [self._store.read(entry) for entry in self._inner.entries(start)]

    async def wait(self, seen: int, timeout: float | None = None, *, queue: str | None = None) -> None:  # noqa: ASYNC109
        await self._inner.wait(seen, timeout, queue=queue)


class _Table:
    def __init__(self, inner: Table, store: CodedStore) -> None:
        self._inner, self._store = inner, store

    @property
    def name(self) -> str:
        return self._inner.name

    async def get(self, key: str) -> Row | None:
        row = await self._inner.get(key)
        return None if row is None else self._store.read(row)

    async def put(
        self, key: str, value: bytes, *, revision: int | None = None, expires_in: float | None = None
    ) -> int:
        return await self._inner.put(key, self._store.encode(value), revision=revision, expires_in=expires_in)

    async def create(self, key: str, value: bytes, *, expires_in: float | None = None) -> int:
        return await self._inner.create(key, self._store.encode(value), expires_in=expires_in)

    async def delete(self, key: str, *, revision: int | None = None) -> bool:
        return await self._inner.delete(key, revision=revision)

    async def discard(self, key: str) -> None:
        await self._inner.discard(key)

    async def scan(self, prefix: str = "", *, after: str | None = None) -> AsyncIterator[Row]:
        async for row in self._inner.scan(prefix, after=after):
            yield self._store.read(row)

    async def drop(self) -> None:
        await self._inner.drop()


class _Lease:
    def __init__(self, inner: Lease, store: CodedStore) -> None:
        self.inner = inner
        self._value = store.decode(inner.value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def value(self) -> bytes:
        return self._value


class _Queue:
    def __init__(self, inner: Queue, store: CodedStore) -> None:
        self._inner, self._store = inner, store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def name(self) -> str:
        return self._inner.name

    async def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        return await self._inner.put(self._store.encode(value), key=key, delay=delay)

    async def take(self, *, wait: float | None = 0.0) -> Lease | None:
        lease = await self._inner.take(wait=wait)
        found: Any = None if lease is None else _Lease(lease, self._store)
        return found  # type: ignore[no-any-return]

    async def size(self) -> QueueSize:
        return await self._inner.size()

    async def now(self) -> float:
        return await self._inner.now()

    async def messages(self) -> AsyncIterator[Message]:
        async for message in self._inner.messages():
            yield self._store.read(message)

    async def dead(self, *, limit: int = 100) -> list[DeadMessage]:
        return [self._store.read(letter) for letter in await self._inner.dead(limit=limit)]

    async def revive(self, id: str) -> bool:
        return await self._inner.revive(id)

    async def discard(self, id: str) -> bool:
        return await self._inner.discard(id)

    async def drop(self) -> None:
        await self._inner.drop()


class _LogWriter:
    def __init__(self, inner: LogWriter, store: CodedStore) -> None:
        self._inner, self._store = inner, store

    def append(self, value: bytes, *, dedupe: str | None = None, last: int | None = None) -> int:
        return self._inner.append(self._store.encode(value), dedupe=dedupe, last=last)

    def bounds(self) -> Bounds:
        return self._inner.bounds()


class _TableWriter:
    def __init__(self, inner: TableWriter, store: CodedStore) -> None:
        self._inner, self._store = inner, store

    def get(self, key: str) -> Row | None:
        row = self._inner.get(key)
        return None if row is None else self._store.read(row)

    def put(
        self, key: str, value: bytes, *, revision: int | None = None, expires_in: float | None = None
    ) -> int:
        return self._inner.put(key, self._store.encode(value), revision=revision, expires_in=expires_in)

    def create(self, key: str, value: bytes, *, expires_in: float | None = None) -> int:
        return self._inner.create(key, self._store.encode(value), expires_in=expires_in)

    def delete(self, key: str, *, revision: int | None = None) -> bool:
        return self._inner.delete(key, revision=revision)


class _QueueWriter:
    def __init__(self, inner: QueueWriter, store: CodedStore) -> None:
        self._inner, self._store = inner, store

    def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        return self._inner.put(self._store.encode(value), key=key, delay=delay)


class _Transaction:
    def __init__(self, inner: Transaction, store: CodedStore) -> None:
        self._inner, self._store = inner, store

    def log(self, name: str) -> LogWriter:
        return _LogWriter(self._inner.log(name), self._store)

    def table(self, name: str) -> TableWriter:
        return _TableWriter(self._inner.table(name), self._store)

    def queue(self, name: str) -> QueueWriter:
        return _QueueWriter(self._inner.queue(name), self._store)

    def check_lease(self, lease: Lease) -> None:
        self._inner.check_lease(_inner(lease))

    def done(self, lease: Lease) -> None:
        self._inner.done(_inner(lease))

    def give_back(self, lease: Lease, *, delay: float = 0.0) -> None:
        self._inner.give_back(_inner(lease), delay=delay)

    def dead_letter(self, lease: Lease, reason: str) -> None:
        self._inner.dead_letter(_inner(lease), reason)

    def sql(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._inner.sql(statement, parameters)


def _inner(lease: Lease) -> Lease:
    return lease.inner if isinstance(lease, _Lease) else lease
