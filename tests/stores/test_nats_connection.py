"""One connection to NATS: cancelled callers, and closing."""

from __future__ import annotations

import asyncio

import pytest
from nats.aio.client import Client

from amends import stores


async def test_a_cancellation_while_a_full_buffer_is_sent_is_kept(nats_server, monkeypatch):
    """nats-py catches it there; the caller must end nevertheless."""
    async with await stores.open(f"{nats_server.url}/connection") as store:
        sending = asyncio.Event()

        async def publish(self, *given, **more):
            sending.set()
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                pass

        monkeypatch.setattr(Client, "publish", publish)
        task = asyncio.ensure_future(store.table("t").put("k", b"v"))
        async with asyncio.timeout(60):
            await sending.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert not store._streams.connection.pending
