"""A store in which one operation goes wrong, for tests that try every operation."""

import asyncio
import json
from dataclasses import replace

from amends.stores import StoreUnavailableError

HOWS = ("fails before", "fails after", "cancelled before", "cancelled after")


async def end_lease(table, name):
    """Let the lease of a key end, and the time limit of its call, as they do some time after its process died."""
    row = await table.get(name)
    record = {} if row is None else json.loads(row.value)
    if record.get("holder"):
        for deadline in (record["lease"], record["call"]):
            if deadline is not None:
                deadline[1] = 0.0
        await table.put(name, json.dumps(record).encode(), expires_in=row.expires_in)


class Faulty:
    """
    A memory store, with transactions or without, in which one operation goes wrong.

    `point` is the number of the operation, and `how` what happens: it fails before or after its effect, its caller is
    cancelled before or after it, or `pause` is called before or after it. Without transactions, operations on leases count.
    """

    def __init__(self, store, transactions):
        self._store = store
        self.traits = replace(store.traits, transactions=transactions)
        self.count, self.point, self.how, self.caller, self.pause = 0, -1, "", None, None

    def log(self, name):
        return _Faulty(self, self._store.log(name))

    def table(self, name):
        return _Faulty(self, self._store.table(name))

    def queue(self, name, **options):
        return _Faulty(self, self._store.queue(name, **options))

    @property
    def clock(self):
        return self._store.clock

    @property
    def url(self):
        return self._store.url

    async def transaction(self, work):
        return await self.call(self._store.transaction, work)

    async def call(self, function, *given, **options):
        number, self.count = self.count, self.count + 1
        hit = number == self.point
        await asyncio.sleep(0)
        if hit and self.how == "fails before":
            raise StoreUnavailableError("no", "no")
        if hit and self.how == "cancelled before":
            self.caller.cancel()
            await asyncio.sleep(0)
        if hit and self.how == "paused before":
            await self.pause()
        result = await function(*given, **options)
        if hit and self.how == "paused after":
            await self.pause()
        if hit and self.how == "fails after":
            raise StoreUnavailableError("maybe", "maybe")
        if hit and self.how == "cancelled after":
            self.caller.cancel()
            await asyncio.sleep(0)
        return result


class _Faulty:
    def __init__(self, faults, part):
        self._faults, self._part = faults, part

    def __getattr__(self, name):
        if name in {"scan", "follow", "watch", "messages"}:
            return getattr(self._part, name)

        async def call(*given, **options):
            found = await self._faults.call(getattr(self._part, name), *given, **options)
            if name == "take" and found is not None and not self._faults.traits.transactions:
                return _FaultyLease(self._faults, found)
            return found

        return call


class _FaultyLease(_Faulty):
    @property
    def expires_in(self):
        return self._part.expires_in

    def __getattr__(self, name):
        if name in {"id", "key", "value", "attempt", "epoch"}:
            return getattr(self._part, name)
        return super().__getattr__(name)
