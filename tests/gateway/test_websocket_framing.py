"""WebSockets through the gateway, byte by byte: wrong frames, lost connections, limits, and how each side learns of the end."""

import asyncio
import base64
import os
import struct

import pytest
from websockets.asyncio.server import serve

from amends.gateway.config import UpstreamConfig
from tests.gateway.peers import serving

TEXT, BINARY, CONTINUED, CLOSE, PING = 1, 2, 0, 8, 9


def frame(kind, data=b"", *, final=True, masked=True, reserved=0):
    """Return the bytes of a frame of a client; its mask is zero."""
    first, mask = (0x80 if final else 0) | reserved << 4 | kind, 0x80 if masked else 0
    size = len(data)
    length = bytes([mask | size]) if size < 126 else bytes([mask | 127]) + struct.pack(">Q", size)
    head = bytes([first]) + length
    return head + (b"\0\0\0\0" if masked else b"") + data


def close(code, reason=b""):
    """Return the bytes of a close frame."""
    return frame(CLOSE, struct.pack(">H", code) + reason)


class Talk:
    """An upstream that sends back what it gets, and keeps how its connections ended."""

    def __init__(self):
        self.got = []
        self.ends = asyncio.Queue()

    async def __call__(self, connection):
        try:
            async for message in connection:
                self.got.append(message)
                if message == "close":
                    await connection.close(4002, "all said")
                elif message == "drop":
                    connection.transport.abort()
                else:
                    await connection.send(message)
        except Exception:
            pass
        finally:
            await connection.wait_closed()
            self.ends.put_nowait((connection.close_code, connection.close_reason))


@pytest.fixture
async def talk():
    """A gateway before such an upstream; yields the upstream, the gateway and a function that connects."""
    upstream = Talk()
    async with serve(upstream, "127.0.0.1", 0, max_size=None) as server:
        port = server.sockets[0].getsockname()[1]
        config = UpstreamConfig(name="talk", url=f"http://127.0.0.1:{port}", prefix="/talk")
        async with serving(config) as gateway:

            async def opened():
                reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
                key = base64.b64encode(os.urandom(16)).decode()
                writer.write(
                    "GET /talk HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
                    f"sec-websocket-version: 13\r\nsec-websocket-key: {key}\r\n\r\n".encode()
                )
                assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
                return reader, writer

            async with asyncio.timeout(60):
                yield upstream, gateway, opened


WRONG = {
    "unmasked": (frame(TEXT, b"x", masked=False), 1002),
    "reserved bits": (frame(TEXT, b"x", reserved=4), 1002),
    "unknown kind": (frame(3, b"x"), 1002),
    "no text": (frame(TEXT, b"\xff\xfe"), 1007),
    "nothing to continue": (frame(CONTINUED, b"x"), 1002),
    "long ping": (frame(PING, b"x" * 126), 1002),
    "ping in parts": (frame(PING, b"x", final=False), 1002),
    "short close": (frame(CLOSE, b"\x03"), 1002),
    "close 999": (close(999), 1002),
    "close 1006": (close(1006), 1002),
    "close 5000": (close(5000), 1002),
    "four exabytes": (bytes([0x82, 0xFF]) + struct.pack(">Q", 1 << 62) + b"\0\0\0\0", 1009),
    "17 MB in parts": (
        frame(BINARY, b"x" * (1 << 20), final=False) + 17 * frame(CONTINUED, b"x" * (1 << 20), final=False),
        1009,
    ),
}


@pytest.mark.parametrize("name", WRONG)
async def test_wrong_frames_end_the_connection(talk, name):
    """Nothing of them reaches the upstream, which learns the code, and nothing stays in flight."""
    upstream, gateway, opened = talk
    sent, code = WRONG[name]
    _, writer = await opened()
    writer.write(sent)
    found, _ = await upstream.ends.get()
    assert found == code
    assert upstream.got == []
    writer.close()
    while gateway.in_flight:
        await asyncio.sleep(0.01)


async def test_parts_of_a_message_arrive_as_one(talk):
    """With a ping between them, which the gateway answers."""
    upstream, _, opened = talk
    reader, writer = await opened()
    writer.write(frame(TEXT, b"ab", final=False) + frame(PING, b"here") + frame(CONTINUED, b"cd"))
    assert await reader.readexactly(12) == b"\x8a\x04here\x81\x04abcd"
    assert upstream.got == ["abcd"]
    writer.close()


async def test_both_sides_learn_code_and_reason(talk):
    """Of a close by the caller, and of one by the upstream."""
    upstream, _, opened = talk
    _, writer = await opened()
    writer.write(close(4001, b"bye"))
    assert await upstream.ends.get() == (4001, "bye")
    writer.close()
    _, writer = await opened()
    writer.write(frame(CLOSE))
    assert (await upstream.ends.get())[0] == 1000
    writer.close()
    reader, writer = await opened()
    writer.write(frame(TEXT, b"close"))
    assert await reader.readexactly(12) == b"\x88\x0a" + struct.pack(">H", 4002) + b"all said"
    writer.close()


async def test_a_lost_connection_is_no_normal_end(talk):
    """The upstream gets 1001 for a caller that is gone, the caller 1011 for an upstream that is gone; never 1000."""
    upstream, gateway, opened = talk
    _, writer = await opened()
    writer.transport.abort()
    assert (await upstream.ends.get())[0] == 1001
    reader, writer = await opened()
    writer.write(frame(TEXT, b"drop"))
    assert (await reader.readexactly(4))[2:] == struct.pack(">H", 1011)
    writer.close()
    while gateway.in_flight:
        await asyncio.sleep(0.01)
