"""
Servers that misbehave, on a loopback port or on standard streams.

`async with faulty(behaviour) as server`: `server.url` is the address, `server.open` the number of open connections.
As a program it misbehaves on its standard streams: `python mcp_faulty.py BEHAVIOUR`.
"""

import asyncio
import json
import sys
import time
from contextlib import asynccontextmanager

HTML = b"<html>not what you asked for</html>"


def response(body, kind=b"application/json", status=b"200 OK", length=None, more=b""):
    size = str(len(body) if length is None else length).encode()
    head = b"HTTP/1.1 " + status + b"\r\nContent-Type: " + kind + b"\r\nContent-Length: " + size
    return head + b"\r\n" + more + b"\r\n" + body


async def hang(reader, writer):
    await asyncio.sleep(600)


async def drip(reader, writer):
    """An event stream with comments only."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    while True:
        writer.write(b": ping\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.02)


async def half(reader, writer):
    """Send the beginning of a response, then close the connection."""
    writer.write(response(b'{"jsonrpc": "2.0", "id"', length=4000))


async def half_stream(reader, writer):
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: message\r\ndata: {"js')


async def no_more(reader, writer):
    """Read the request and close the connection."""


async def reset(reader, writer):
    writer.transport.abort()


async def noise(reader, writer):
    writer.write(b"\x00\xff\xfe garbage that is no HTTP\r\n\r\n")


async def html(reader, writer):
    writer.write(response(HTML, b"text/html"))


async def no_json(reader, writer):
    writer.write(response(b'{"jsonrpc": '))


async def no_rpc(reader, writer):
    writer.write(response(b'{"hello": "world"}'))


async def no_rpc_stream(reader, writer):
    writer.write(
        b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: message\r\ndata: {"hello": 1}\r\n\r\n'
    )


async def packed_wrong(reader, writer):
    writer.write(response(b"not gzip", more=b"Content-Encoding: gzip\r\n"))


async def accepted(reader, writer):
    """202 instead of a response."""
    writer.write(response(b"", status=b"202 Accepted"))


async def elsewhere(reader, writer):
    writer.write(response(b"", status=b"302 Found", more=b"Location: http://127.0.0.1:1/\r\n"))


BEHAVIOURS = {
    each.__name__: each
    for each in (
        *(hang, drip, half, half_stream, no_more, reset, noise, html, no_json, no_rpc, no_rpc_stream),
        *(packed_wrong, accepted, elsewhere),
    )
}


def answering(status, headers=b"", body=b"", kind=b"text/plain"):
    """A behaviour that sends this response to every request."""

    async def behave(reader, writer):
        writer.write(response(body, kind, status, more=headers))

    return behave


class Faulty:
    """A server that misbehaves, with the number of its open connections."""

    def __init__(self, behave):
        self.behave = behave
        self.open = 0
        self.requests = []

    async def serve(self, reader, writer):
        self.open += 1
        try:
            while head := await self._request(reader):
                self.requests.append(head)
                behave = asyncio.ensure_future(self.behave(reader, writer))
                # A client that disconnects ends a behaviour that hangs.
                gone = asyncio.ensure_future(self._gone(reader))
                await asyncio.wait({behave, gone}, return_when=asyncio.FIRST_COMPLETED)
                for each in (behave, gone):
                    each.cancel()
                break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            writer.close()

    @staticmethod
    async def _request(reader):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            (
                int(line.split(b":")[1])
                for line in head.lower().splitlines()
                if line.startswith(b"content-length")
            ),
            0,
        )
        await reader.readexactly(length)
        return head

    @staticmethod
    async def _gone(reader):
        while await reader.read(65536):
            pass


@asynccontextmanager
async def faulty(behave):
    found = Faulty(behave)
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    try:
        yield found
    finally:
        server.close()


def _line():
    return json.loads(sys.stdin.readline())


def main(behaviour):
    if behaviour == "silent":
        time.sleep(600)
    elif behaviour == "noise":
        while sys.stdin.readline():
            print("\x00 no JSON", flush=True)
    elif behaviour == "leaves":
        _line()
    elif behaviour == "closes":
        # The output is closed, but the process goes on.
        _line()
        sys.stdout.close()
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
