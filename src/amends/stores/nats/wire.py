# ruff: noqa: SLF001  (the library's own parts are what this file is about)
"""
nats-py's connection, with a shorter way in and out.

The library finds servers, logs in, notices what is lost, connects anew and subscribes again; that stays its own. For every
message that comes it also has a queue, wake-ups of two tasks and a dictionary of headers, and for every one that goes a check
of names that are ours already. Here a message is handed to whoever waits for it as it arrives, headers are read when
somebody asks for them, and what is said in one turn of the event loop leaves in one system call.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sized
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nats.aio.client import Client

__all__ = ["RawMessage", "Wire"]

_log = logging.getLogger("amends.stores")
_END = b"\r\n"
_VERSION = "NATS/1.0"
_NONSENSE = b"?\r\n"
"""What the library takes for no NATS: it says so, and connects anew."""
_PUT_OFF = 3


class RawMessage:
    """What was heard."""

    __slots__ = ("_head", "_headers", "data", "reply", "subject")

    def __init__(self, subject: str, reply: str, data: bytes, head: bytes = b"") -> None:
        self.subject = subject
        self.reply = reply
        self.data = data
        self._head = head
        self._headers: dict[str, str] | None = None

    @property
    def headers(self) -> dict[str, str]:
        """Its headers; a status the server has put in front of them is the header `Status`."""
        if self._headers is None:
            self._headers = _headers(self._head) if self._head else {}
        return self._headers


Hearing = Callable[[RawMessage], None]


class Wire:
    """One client of the library, which must not have connected yet."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._loop = asyncio.get_running_loop()
        self._hearing: dict[int, Hearing] = {}
        self._soon = False
        self._put_off = 0
        self._ready: Sized = getattr(self._loop, "_ready", ())
        """What the loop has still to do in this turn, where it can be seen."""
        self._read_others = client._read_loop
        client._read_loop = self._read  # type: ignore[method-assign]
        self._greet = client._process_connect_init
        client._process_connect_init = self._greeted  # type: ignore[method-assign]

    async def _greeted(self) -> None:
        """The first words with a server. A connection that does not get through them is closed; the library forgets it."""
        try:
            await self._greet()
        except BaseException:
            if self.client._transport is not None:
                self.client._transport.close()  # type: ignore[no-untyped-call]
            raise

    # -- in

    async def _read(self) -> None:
        """The library's task that reads, begun by it for every connection: before anything was subscribed to there."""
        reader = self.client._transport._io_reader  # type: ignore[union-attr]
        sieve = _Sieve(self._hearing, reader.feed_data)

        def feed(data: bytes) -> None:
            sieve.feed(data)
            # Behind those who were just woken: what they say next leaves in the turn in which they say it.
            self._flush_soon()

        reader.feed_data = feed
        await self._read_others()

    def hear(self, subject: str, hearing: Hearing) -> int:
        """Have something called for every message of a subject; the number ends it. What is called must not wait."""
        from nats.aio.subscription import Subscription

        client = self.client
        client._sid += 1
        number = client._sid
        self._hearing[number] = hearing
        # Never started: it is there to be subscribed again when the connection is made anew.
        client._subs[number] = Subscription(client, number, subject)
        self._put(f"SUB {subject}  {number}\r\n".encode())
        return number

    def unhear(self, number: int) -> None:
        """No more of it."""
        self._hearing.pop(number, None)
        self.client._subs.pop(number, None)
        if self.client.is_connected:
            self._put(f"UNSUB {number}\r\n".encode())

    # -- out

    def post(self, subject: str, payload: bytes, reply: str, headers: Mapping[str, str] | None) -> None:
        """
        Send a message with this turn of the event loop; names and values of headers are printable.

        Raises:
            nats.errors.Error: there is no connection, and what waits for the next one is enough.
        """
        client = self.client
        if not client.is_connected:
            self._check(len(payload))
        if headers is None:
            self._put(f"PUB {subject} {reply} {len(payload)}\r\n".encode() + payload + _END)
            return
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        head = f"{_VERSION}\r\n{lines}\r\n".encode()
        size = len(head)
        control = f"HPUB {subject} {reply} {size} {size + len(payload)}\r\n"
        self._put(b"".join((control.encode(), head, payload, _END)))

    def _check(self, size: int) -> None:
        from nats import errors

        client = self.client
        if client.is_closed:
            raise errors.ConnectionClosedError
        if client.is_draining_pubs:
            raise errors.ConnectionDrainingError
        if size + client._pending_data_size > client._max_pending_size:
            raise errors.OutboundBufferLimitError

    def _put(self, command: bytes) -> None:
        client = self.client
        client._pending.append(command)
        client._pending_data_size += len(command)
        self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._soon:
            self._soon = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """
        Send what waits; where the server does not take it at once, the library's task waits for that.

        While others have their turn first it waits for what they will say, a few times: one system call costs as much as
        making a dozen messages.
        """
        client = self.client
        if self._ready and client._pending and self._put_off < _PUT_OFF:
            self._put_off += 1
            self._loop.call_soon(self._flush)
            return
        self._soon = False
        self._put_off = 0
        if not client.is_connected or not client._pending:
            return  # what waits is sent by the library when it has connected anew
        writer = getattr(client._transport, "_io_writer", None)
        if writer is None or writer.transport.get_write_buffer_size():
            if client._flush_queue is not None and client._flush_queue.empty():
                client._flush_queue.put_nowait(self._loop.create_future())
            return
        pending, client._pending = client._pending, []
        client._pending_data_size = 0
        writer.write(pending[0] if len(pending) == 1 else b"".join(pending))


class _Sieve:
    """Takes messages out of what arrives at one connection; any other line is passed on to the library's reader."""

    def __init__(self, hearing: Mapping[int, Hearing], others: Callable[[bytes], None]) -> None:
        self._hearing = hearing
        self._others = others
        self._rest = bytearray()

    def feed(self, data: bytes) -> None:
        """Have everybody called whose message is there."""
        rest = self._rest
        found: bytes | bytearray = data
        if rest:
            rest += data
            found = rest
        place = 0
        while (end := found.find(_END, place)) >= 0:
            line = bytes(found[place:end])
            if not line.startswith((b"MSG ", b"HMSG ")):
                place = end + 2
                self._others(line + _END)
                continue
            try:
                number, subject, reply, head, size = _control(line)
            except ValueError:
                place = end + 2
                self._others(_NONSENSE)
                continue
            begin, stop = end + 2, end + 2 + size
            if len(found) < stop + 2:
                break
            place = stop + 2
            hearing = self._hearing.get(number)
            if hearing is not None:
                message = RawMessage(
                    subject, reply, bytes(found[begin + head : stop]), bytes(found[begin : begin + head])
                )
                try:
                    hearing(message)
                except Exception:  # noqa: BLE001 - the connection outlives it
                    _log.exception("a message could not be handed over")
        if found is rest:
            del rest[:place]
        else:
            rest += data[place:]


def _control(line: bytes) -> tuple[int, str, str, int, int]:
    """Number, subject, reply, size of the headers, and of everything, from `[H]MSG subject number [reply] [size] size`."""
    words = line.decode().split()
    headed = line.startswith(b"H")
    if len(words) not in ({5, 6} if headed else {4, 5}):
        raise ValueError
    size = int(words[-1])
    head = int(words[-2]) if headed else 0
    if not 0 <= head <= size:
        raise ValueError
    return int(words[2]), words[1], words[3] if len(words) == 5 + headed else "", head, size


def _headers(head: bytes) -> dict[str, str]:
    first, *lines = head.decode("utf-8", "replace").split("\r\n")
    found: dict[str, str] = {}
    status = first.removeprefix(_VERSION).split(maxsplit=1)
    if status:
        found["Status"] = status[0]
        found["Description"] = " ".join(status[1:])
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            found[name] = value.strip()
    return found
