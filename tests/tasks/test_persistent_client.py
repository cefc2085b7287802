"""Clients that are kept open between calls: opened once, let go of for good, whoever gives up meanwhile."""

import asyncio

import pytest

from amends.tasks import persistent_client
from amends.tasks.persistent_client import Kept


class Clients:
    """Makes clients that open when they are let, and remembers which are open."""

    def __init__(self):
        self.made, self.open = [], []
        self.let = asyncio.Event()
        self.let.set()

    def __call__(self):
        return Client(self)


class Client:
    def __init__(self, clients):
        self.clients = clients

    async def __aenter__(self):
        self.clients.made.append(self)
        await self.clients.let.wait()
        self.clients.open.append(self)
        return self

    async def __aexit__(self, *exc):
        self.clients.open.remove(self)


async def test_one_client_for_all_callers():
    """Whoever asks while it is being opened waits for the same one; it is closed when it is let go of."""
    clients = Clients()
    kept = Kept(clients)
    one, two = await asyncio.gather(kept.client(), kept.client())
    assert one is two is await kept.client()
    assert clients.open == [one]
    await kept.close()
    assert clients.open == []
    assert await kept.client() is not one
    await kept.close()


async def test_a_caller_that_gives_up_takes_nobody_along():
    """Being cancelled is one caller's own business: the others get the client, and it is closed in the end."""
    clients = Clients()
    kept = Kept(clients)
    clients.let.clear()
    impatient, patient = asyncio.ensure_future(kept.client()), asyncio.ensure_future(kept.client())
    await asyncio.sleep(0)
    impatient.cancel()
    await asyncio.wait([impatient])
    clients.let.set()
    assert await patient in clients.open
    await kept.close()
    assert (len(clients.made), clients.open) == (1, [])


async def test_one_that_does_not_open(monkeypatch):
    """Bounded: the opening is given up rather than left behind, and the next caller begins a new one."""
    monkeypatch.setattr(persistent_client, "_CONNECT_SECONDS", 0.01)
    clients = Clients()
    kept = Kept(clients)
    clients.let.clear()
    with pytest.raises(TimeoutError):
        await kept.client()
    monkeypatch.undo()
    clients.let.set()
    assert await kept.client() is clients.made[1]
    await kept.close()
    assert (len(clients.made), clients.open) == (2, [])


async def test_closing_while_it_opens():
    """Whoever waits for it hears that there is none."""
    clients = Clients()
    kept = Kept(clients)
    clients.let.clear()
    waiting = asyncio.ensure_future(kept.client())
    await asyncio.sleep(0)
    await kept.close()
    with pytest.raises(ConnectionError):
        await waiting
    assert clients.open == []


async def test_letting_go_of_one_that_is_replaced_already():
    """Two calls fail on the same broken client; the second one's word does not close the client opened since."""
    clients = Clients()
    kept = Kept(clients)
    broken = await kept.client()
    kept.drop(broken)
    fresh = await kept.client()
    kept.drop(broken)
    assert await kept.client() is fresh
    assert fresh in clients.open
    await kept.close()


def test_one_of_a_loop_that_is_gone():
    """An agent may outlive a loop: what was open there is gone with it, and nobody trips over it."""
    clients = []

    async def use():
        made = Clients()
        clients.append(made)
        kept._make = made
        return await kept.client()

    kept = Kept(None)
    first = asyncio.run(use())
    assert asyncio.run(use()) is not first
    asyncio.run(kept.close())
    assert all(made.open == [] for made in clients)
