"""Runtimes and clients on stdin and stdout."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from amends.arcp.transports import ConnectionLost, stdio
from tests.arcp.test_connection import Echo


async def test_a_child_that_does_not_exit(monkeypatch):
    """It gets SIGTERM, then SIGKILL."""
    monkeypatch.setattr(stdio, "_EXIT_TIMEOUT", 0.2)
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('x', flush=True); time.sleep(60)"
    connection = await stdio.command(sys.executable, "-c", stubborn)()
    assert await connection.receive() == b"x"
    await connection.close()


async def test_lines_with_and_without_an_end():
    """Empty lines are ignored; the last line may lack its line feed."""
    script = "import sys; sys.stdout.write('\\n\\n a \\n\\nb')"
    connection = await stdio.command(sys.executable, "-c", script)()
    assert [await connection.receive() for _ in range(3)] == [b"a", b"b", None]
    await connection.close()


async def test_stdio_in_this_process(monkeypatch):
    """stdout is reserved for the protocol while serving, and restored afterwards."""
    loop = asyncio.get_running_loop()
    (their_in, our_out), (our_in, their_out), (errors_in, errors_out) = os.pipe(), os.pipe(), os.pipe()
    with (
        os.fdopen(their_in) as stdin,
        os.fdopen(their_out, "w") as stdout,
        os.fdopen(errors_out, "w") as stderr,
        os.fdopen(errors_in, "rb", 0) as errors,
    ):
        monkeypatch.setattr("sys.stdin", stdin)
        monkeypatch.setattr("sys.stdout", stdout)
        monkeypatch.setattr("sys.stderr", stderr)

        class Chatty(Echo):
            async def serve(self, connection):
                print("stray output", flush=True)
                await super().serve(connection)

        serving = asyncio.create_task(stdio.serve(Chatty()))
        reader = asyncio.StreamReader()
        incoming, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(our_in, "rb", 0)
        )
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(our_out, "wb", 0)
        )
        connection = stdio.LineConnection(reader, asyncio.StreamWriter(transport, protocol, None, loop))
        await connection.send(b"a")
        assert [await connection.receive() for _ in range(2)] == [b"a", b"a"]
        assert errors.read(100) == b"stray output\n"
        await connection.close()
        incoming.close()
        await asyncio.wait_for(serving, 100)
        assert sys.stdout is stdout


async def test_a_child_that_does_not_read(monkeypatch):
    """When the pipe is full, posting fails and sending waits."""
    monkeypatch.setattr(stdio, "_EXIT_TIMEOUT", 0.2)
    connection = await stdio.command(sys.executable, "-c", "import time; time.sleep(60)")()
    frame = b"x" * 100_000
    while connection.post([frame]):
        pass
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(connection.send(b"more"), 0.05)
    await connection.close()


async def test_a_child_that_has_exited():
    """The end of the child ends the connection."""
    connection = await stdio.command(sys.executable, "-c", "pass")()
    assert await connection.receive() is None
    with pytest.raises(ConnectionLost):
        while True:
            await connection.send(b"x" * 100_000)
            await asyncio.sleep(0)
    await connection.close()


async def test_a_child_that_writes_while_it_is_closed(caplog):
    """What it still writes is discarded, so that it can exit; a task that waits for a line is woken."""
    script = "import sys; print('x', flush=True); sys.stdin.read(); sys.stdout.write('late\\n' * 200_000)"
    connection = await stdio.command(sys.executable, "-c", script)()
    assert await connection.receive() == b"x"
    waiting = asyncio.create_task(connection.receive())
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await connection.close()
        assert await waiting is None
    assert not caplog.records


async def test_a_cancelled_receive():
    """The task that waits for a line can be cancelled."""
    connection = await stdio.command("cat")()
    waiting = asyncio.create_task(connection.receive())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await connection.send(b"next")
    assert await connection.receive() == b"next"
    await connection.close()
