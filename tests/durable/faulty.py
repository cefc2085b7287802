"""A store in which one operation goes wrong, for tests that try every operation."""

import asyncio
from dataclasses import replace

from amends.stores import StoreUnavailableError

HOWS = ("fails before", "fails after", "cancelled before", "cancelled after")


class Faulty:
    """
    A memory store, with transactions or without, in which one operation goes wrong.

    `point` is the number of the operation, and `how` what happens: it fails before or after its effect, or its caller is
    cancelled before or after it.
    """

    def __init__(self, store, transactions):
        self._store, self.supports_transactions = store, transactions
        self.traits = replace(store.traits, transactions=transactions)
        self.count, self.point, self.how, self.caller = 0, -1, "", None

    def log(self, name):
        return _Faulty(self, self._store.log(name))

    def table(self, name):
        return _Faulty(self, self._store.table(name))

    def queue(self, name, **options):
        return _Faulty(self, self._store.queue(name, **options))

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
        result = await function(*given, **options)
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
            return await self._faults.call(getattr(self._part, name), *given, **options)

        return call
