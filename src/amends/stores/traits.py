"""What a store can do, as a value: callers choose by it instead of looking at the store's URL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Scope", "Traits"]

Scope = Literal["object", "process", "machine", "network"]


@dataclass(frozen=True, slots=True)
class Traits:
    """
    The abilities of an open store.

    >>> import asyncio
    >>> from amends import stores
    >>> async def show():
    ...     async with await stores.open("memory:") as store:
    ...         return store.traits
    >>> traits = asyncio.run(show())
    >>> (traits.scope, traits.transactions, traits.sql, traits.durable)
    ('object', True, False, False)
    """

    scope: Scope
    """
    Who can have the same store open: only this object (`memory:`), this process (`memory:name`), the processes of this
    machine (SQLite), or the machines of a network (NATS).
    """
    durable: bool
    """Whether the data outlives the process."""
    transactions: bool
    """Whether `Store.transaction` works."""
    sql: bool
    """Whether `Transaction.sql` works."""
    immediate: bool
    """Whether every call except a wait completes without suspending its caller."""
    notifies: bool
    """Whether the backend itself sends notifications of changes by others; if not, the store polls for them."""
    ordered: bool = False
    """Whether `Table.scan` yields rows in the order of their keys, and reads only as many as its caller takes."""

    @property
    def exclusive(self) -> bool:
        """Whether nothing but this object can change the store."""
        return self.scope == "object"
