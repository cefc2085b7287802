"""The types of the ARCP client. It is not run."""

from __future__ import annotations

from typing import Any, assert_type

from amends import arcp
from amends.arcp import Client, Event, Handle, Ticket, connect
from amends.arcp.leases import Budget, Lease, read
from amends.arcp.transports import Connection, memory, stdio
from amends.arcp.wire.messages import JobEntry
from amends.errors.arcp import ARCPError, LeaseSubsetViolationError


async def client() -> None:
    """A session and its jobs."""
    async with connect("wss://runtime.example/arcp", token="secret", request_timeout=5.0) as session:  # noqa: S106
        assert_type(session, Client)
        handle = await session.submit("agent", {"a": 1}, idempotency_key="k", lease={"fs.read": ("/a",)})
        assert_type(handle, Handle)
        assert_type(handle.job_id, str)
        assert_type(await handle.done, Any)
        async for event in handle.events():
            assert_type(event, Event)
        assert_type(await session.jobs(), list[JobEntry])
        assert_type(await session.subscribe("job"), Handle)
        assert_type(await session.detach(), Ticket | None)
    assert_type(await arcp.connect(stdio.command("agent")), Client)


def connections() -> tuple[Connection, Connection]:
    """Both ends of a pair are a Connection."""
    near, far = memory.pair()
    return near, far


def leases() -> None:
    """`check` and `narrow` return errors instead of raising them."""
    lease = read({"fs.read": ["/a"]}, now=0.0)
    assert_type(lease, Lease)
    assert_type(lease.check("fs.read", "/a", 0.0), ARCPError | None)
    assert_type(lease.narrow(lease, Budget(), 0.0), Lease | LeaseSubsetViolationError)
