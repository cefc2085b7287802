# ruff: noqa: SLF001  (this file replaces private parts of nats-py)
"""
nats-py's connection with a faster read and write path.

nats-py finds servers, logs in, detects lost connections, reconnects and renews subscriptions. For every received message it
also uses a queue, wakes two tasks and builds a dictionary of headers, and for every sent message it validates names that we
have built ourselves. This module passes a message to its handler when it arrives, parses headers on first use, and sends
all messages of one turn of the event loop with one system call.
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
_INVALID_LINE = b"?\r\n"
"""A line that nats-py does not accept as NATS: it reports an error and reconnects."""
_MAX_DEFERRALS = 3


class RawMessage:
    """A received message."""

    __slots__ = ("_head", "_headers", "data", "reply", "subject")

    def __init__(self, subject: str, reply: str, data: bytes, head: bytes = b"") -> None:
        self.subject = subject
        self.reply = reply
        self.data = data
        self._head = head
        self._headers: dict[str, str] | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The headers; a status that the server sent in front of them is the header `Status`."""
        if self._headers is None:
            self._headers = _headers(self._head) if self._head else {}
        return self._headers


Handler = Callable[[RawMessage], None]


class Wire:
    """Wraps one nats-py client, which must not have connected yet."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._loop = asyncio.get_running_loop()
        self._handlers: dict[int, Handler] = {}
        self._flush_scheduled = False
        self._deferrals = 0
        self._ready: Sized = getattr(self._loop, "_ready", ())
        """The callbacks that the loop still has to run in this turn, if the loop exposes them."""
        self._nats_read_loop = client._read_loop
        client._read_loop = self._read  # type: ignore[method-assign]
        self._nats_handshake = client._process_connect_init
        client._process_connect_init = self._handshake  # type: ignore[method-assign]

    async def _handshake(self) -> None:
        """Run nats-py's handshake, and close a connection that fails during it, which nats-py does not do."""
        try:
            await self._nats_handshake()
        except BaseException:
            if self.client._transport is not None:
                self.client._transport.close()  # type: ignore[no-untyped-call]
            raise

    # -- reading

    async def _read(self) -> None:
        """Replace nats-py's read loop, which it starts for every connection before anything is subscribed on it."""
        reader = self.client._transport._io_reader  # type: ignore[union-attr]
        parser = _Parser(self._handlers, reader.feed_data)

        def feed(data: bytes) -> None:
            parser.feed(data)
            # Scheduled after the tasks that were just woken, so that their messages are sent in the same turn.
            self._flush_soon()

        reader.feed_data = feed
        await self._nats_read_loop()

    def subscribe(self, subject: str, handler: Handler) -> int:
        """Call `handler` for every message of a subject; it must not block. Returns the number to unsubscribe with."""
        from nats.aio.subscription import Subscription

        client = self.client
        client._sid += 1
        number = client._sid
        self._handlers[number] = handler
        # Never started: nats-py only needs it to renew the subscription after a reconnect.
        client._subs[number] = Subscription(client, number, subject)
        self._write(f"SUB {subject}  {number}\r\n".encode())
        return number

    def unsubscribe(self, number: int) -> None:
        """End the subscription with this number."""
        self._handlers.pop(number, None)
        self.client._subs.pop(number, None)
        if self.client.is_connected:
            self._write(f"UNSUB {number}\r\n".encode())

    # -- writing

    def publish(self, subject: str, payload: bytes, reply: str, headers: Mapping[str, str] | None) -> None:
        """
        Send a message in this turn of the event loop; header names and values must be printable.

        Raises:
            nats.errors.Error: there is no connection, and the buffer for the next one is full.
        """
        client = self.client
        if not client.is_connected:
            self._check_can_send(len(payload))
        if headers is None:
            self._write(f"PUB {subject} {reply} {len(payload)}\r\n".encode() + payload + _END)
            return
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        head = f"{_VERSION}\r\n{lines}\r\n".encode()
        size = len(head)
        control = f"HPUB {subject} {reply} {size} {size + len(payload)}\r\n"
        self._write(b"".join((control.encode(), head, payload, _END)))

    def _check_can_send(self, size: int) -> None:
        from nats import errors

        client = self.client
        if client.is_closed:
            raise errors.ConnectionClosedError
        if client.is_draining_pubs:
            raise errors.ConnectionDrainingError
        if size + client._pending_data_size > client._max_pending_size:
            raise errors.OutboundBufferLimitError

    def _write(self, command: bytes) -> None:
        client = self.client
        client._pending.append(command)
        client._pending_data_size += len(command)
        self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """
        Send the buffered messages; if the socket's buffer is not empty, nats-py's own task sends them.

        While other callbacks are ready, the flush is deferred a few times, so that their messages are included: one system
        call costs as much as building a dozen messages.
        """
        client = self.client
        if self._ready and client._pending and self._deferrals < _MAX_DEFERRALS:
            self._deferrals += 1
            self._loop.call_soon(self._flush)
            return
        self._flush_scheduled = False
        self._deferrals = 0
        if not client.is_connected or not client._pending:
            return  # nats-py sends the buffer after it has reconnected
        writer = getattr(client._transport, "_io_writer", None)
        if writer is None or writer.transport.get_write_buffer_size():
            if client._flush_queue is not None and client._flush_queue.empty():
                client._flush_queue.put_nowait(self._loop.create_future())
            return
        pending, client._pending = client._pending, []
        client._pending_data_size = 0
        writer.write(pending[0] if len(pending) == 1 else b"".join(pending))


class _Parser:
    """Extracts messages from the bytes of one connection, and passes all other lines to nats-py's reader."""

    def __init__(self, handlers: Mapping[int, Handler], others: Callable[[bytes], None]) -> None:
        self._handlers = handlers
        self._others = others
        self._rest = bytearray()

    def feed(self, data: bytes) -> None:
        """Parse `data` and call the handler of each complete message."""
        rest = self._rest
        found: bytes | bytearray = data
        if rest:
            rest += data
            found = rest
        position = 0
        while (end := found.find(_END, position)) >= 0:
            line = bytes(found[position:end])
            if not line.startswith((b"MSG ", b"HMSG ")):
                position = end + 2
                self._others(line + _END)
                continue
            try:
                number, subject, reply, head, size = _control(line)
            except ValueError:
                position = end + 2
                self._others(_INVALID_LINE)
                continue
            begin, stop = end + 2, end + 2 + size
            if len(found) < stop + 2:
                break
            position = stop + 2
            handler = self._handlers.get(number)
            if handler is not None:
                message = RawMessage(
                    subject, reply, bytes(found[begin + head : stop]), bytes(found[begin : begin + head])
                )
                try:
                    handler(message)
                except Exception:  # noqa: BLE001 - the connection must survive it
                    _log.exception("the handler of a NATS message failed")
        if found is rest:
            del rest[:position]
        else:
            rest += data[position:]


def _control(line: bytes) -> tuple[int, str, str, int, int]:
    """Number, subject, reply, header size and total size, from `[H]MSG subject number [reply] [size] size`."""
    parts = line.decode().split()
    headed = line.startswith(b"H")
    if len(parts) not in ({5, 6} if headed else {4, 5}):
        raise ValueError
    size = int(parts[-1])
    head = int(parts[-2]) if headed else 0
    if not 0 <= head <= size:
        raise ValueError
    return int(parts[2]), parts[1], parts[3] if len(parts) == 5 + headed else "", head, size


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
