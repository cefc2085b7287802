"""Clients that stay open between calls: opened once, and closed also when a caller gives up."""

import asyncio

import pytest

from amends.tasks import persistent_client
from amends.tasks.persistent_client import PersistentClient


class Clients:
    """Makes clients that open while `may_open` is set, and records which are open."""

    def __init__(self):
        self.made, self.open = [], []
        self.may_open = asyncio.Event()
        self.may_open.set()

    def __call__(self):
        return Client(self)


class Client:
    def __init__(self, clients):
        self.clients = clients

    async def __aenter__(self):
        self.clients.made.append(self)
        await self.clients.may_open.wait()
        self.clients.open.append(self)
        return self

    async def __aexit__(self, *exc):
        self.clients.open.remove(self)


async def test_one_client_for_all_callers():
    """Callers that come while the client is being opened wait for the same one. `close` closes it."""
    clients = Clients()
    persistent = PersistentClient(clients)
    one, two = await asyncio.gather(persistent.get(), persistent.get())
    assert one is two is await persistent.get()
    assert clients.open == [one]
    await persistent.close()
    assert clients.open == []
    assert await persistent.get() is not one
    await persistent.close()


async def test_a_cancelled_caller_does_not_affect_others():
    """The other caller gets the client, and it is closed at the end."""
    clients = Clients()
    persistent = PersistentClient(clients)
    clients.may_open.clear()
    cancelled, other = asyncio.ensure_future(persistent.get()), asyncio.ensure_future(persistent.get())
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.wait([cancelled])
    clients.may_open.set()
    assert await other in clients.open
    await persistent.close()
    assert (len(clients.made), clients.open) == (1, [])


async def test_opening_has_a_time_limit(monkeypatch):
    """Opening is cancelled after the limit, and the next caller opens a new client."""
    monkeypatch.setattr(persistent_client, "_CONNECT_SECONDS", 0.01)
    clients = Clients()
    persistent = PersistentClient(clients)
    clients.may_open.clear()
    with pytest.raises(TimeoutError):
        await persistent.get()
    monkeypatch.undo()
    clients.may_open.set()
    assert await persistent.get() is clients.made[1]
    await persistent.close()
    assert (len(clients.made), clients.open) == (2, [])


async def test_closing_while_it_opens():
    """The waiting caller gets a ConnectionError."""
    clients = Clients()
    persistent = PersistentClient(clients)
    clients.may_open.clear()
    waiting = asyncio.ensure_future(persistent.get())
    await asyncio.sleep(0)
    await persistent.close()
    with pytest.raises(ConnectionError):
        await waiting
    assert clients.open == []


async def test_dropping_a_client_that_was_replaced():
    """If two calls fail with the same client, the second drop does not close the client that replaced it."""
    clients = Clients()
    persistent = PersistentClient(clients)
    broken = await persistent.get()
    persistent.drop(broken)
    fresh = await persistent.get()
    persistent.drop(broken)
    assert await persistent.get() is fresh
    assert fresh in clients.open
    await persistent.close()


def test_a_client_of_a_closed_event_loop():
    """An agent may be used on several event loops. A client of a closed loop is replaced."""
    clients = []

    async def use():
        made = Clients()
        clients.append(made)
        persistent._make = made
        return await persistent.get()

    persistent = PersistentClient(None)
    first = asyncio.run(use())
    assert asyncio.run(use()) is not first
    asyncio.run(persistent.close())
    assert all(made.open == [] for made in clients)
