"""Read stored messages: one by its subject, pages by sequence number, and deliveries of a consumer."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amends.stores.errors import DamagedStoreError, StoreUnavailableError
from amends.stores.nats.api_errors import NoResponderError
from amends.stores.nats.clock import parse_time
from amends.stores.nats.deliveries import PAGE_BYTES
from amends.stores.nats.replies import header, headers_of
from amends.stores.nats.streams import Streams

if TYPE_CHECKING:
    from nats.aio.msg import Msg

__all__ = [
    "StoredMessage",
    "first_from",
    "foreign_message",
    "from_delivery",
    "from_direct",
    "latest",
    "no_reply",
    "page",
    "parse_ack_subject",
]

_PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message in a stream."""

    subject: str
    seq: int
    time: float
    data: bytes
    headers: Mapping[str, str]


async def latest(streams: Streams, kind: str, name: str, suffix: str) -> StoredMessage | None:
    """The newest message of a subject, read from the stream's leader."""
    subject = streams.subject(kind, name) + suffix
    stream = streams.stream(kind, name)
    replicas = await streams.replicas(kind, name)
    if not replicas:
        return None
    if replicas > 1:
        # A direct get may be answered by any replica, also by one that lags.
        answer = await streams.connection.find(f"STREAM.MSG.GET.{stream}", {"last_by_subj": subject})
        return None if answer is None else _from_api(answer["message"])
    while True:
        try:
            message = await streams.connection.request(f"$JS.API.DIRECT.GET.{stream}.{subject}")
        except NoResponderError:
            if not await streams.exists(kind, name):
                return None
            await asyncio.sleep(_PAUSE)
            continue
        return None if header(message, "Status") == "404" else from_direct(message)


async def first_from(streams: Streams, kind: str, name: str, start: int, suffix: str) -> StoredMessage | None:
    """The first message of a subject from sequence number `start` on, read from the stream's leader."""
    subject = streams.subject(kind, name) + suffix
    answer = await streams.connection.find(
        f"STREAM.MSG.GET.{streams.stream(kind, name)}", {"seq": start, "next_by_subj": subject}
    )
    return None if answer is None else _from_api(answer["message"])


async def page(
    streams: Streams, kind: str, name: str, start: int, limit: int, suffix: str = ""
) -> list[StoredMessage]:
    """
    Up to `limit` messages from sequence number `start` on; fewer if they are large or the end is reached.

    With `suffix`, only messages of that subject.
    """
    stream = streams.stream(kind, name)
    request: dict[str, Any] = {"seq": start, "batch": limit, "max_bytes": PAGE_BYTES}
    if suffix:
        request["next_by_subj"] = streams.subject(kind, name) + suffix
    body = json.dumps(request).encode()
    loop = asyncio.get_running_loop()
    end = loop.time() + streams.connection.timeout
    while loop.time() < end:
        found: list[StoredMessage] = []
        async with aclosing(streams.connection.stream(f"$JS.API.DIRECT.GET.{stream}", body)) as replies:
            async for message in replies:
                status = header(message, "Status")
                if status is None:
                    found.append(from_direct(message))
                elif status == "503":
                    break
                else:  # 204: no more messages; 404: no message at all
                    return found
        # The connection broke: the messages so far are in order and without gaps.
        if found:
            return found
        if not await streams.exists(kind, name):
            return []
        await asyncio.sleep(_PAUSE)
    raise no_reply(streams)


def no_reply(streams: Streams) -> StoreUnavailableError:
    """The error for a request that was not answered in time."""
    return StoreUnavailableError(
        f"{streams.connection.display_url} has not answered for {streams.connection.timeout:g} s: try again"
    )


def foreign_message(kind: str, name: str, stored: StoredMessage) -> DamagedStoreError:
    """The error for a message that amends did not write; leaving it out would hide that something is missing."""
    return DamagedStoreError(
        f"message {stored.seq} of {kind} {name!r} was not written by amends: "
        f"delete it (`nats stream rmm STREAM {stored.seq}`), or restore a backup"
    )


def from_delivery(message: Msg) -> StoredMessage:
    """The stored message in a consumer's delivery; the reply subject has its numbers."""
    seq, time, _ = parse_ack_subject(message.reply)
    return StoredMessage(message.subject, seq, time, message.data, headers_of(message))


def parse_ack_subject(reply: str) -> tuple[int, float, int]:
    """The stream sequence number, time and delivery count in `$JS.ACK.[domain.account.]stream.consumer.count.seq.…`."""
    parts = reply.split(".")
    shift = 2 if len(parts) > 9 else 0
    return int(parts[5 + shift]), int(parts[7 + shift]) / 1e9, int(parts[4 + shift])


def from_direct(message: Msg) -> StoredMessage:
    """The stored message in the reply to a direct get; the headers have its numbers."""
    headers = headers_of(message)
    return StoredMessage(
        headers["Nats-Subject"],
        int(headers["Nats-Sequence"]),
        parse_time(headers["Nats-Time-Stamp"]),
        message.data,
        headers,
    )


def _from_api(message: Mapping[str, Any]) -> StoredMessage:
    lines = base64.b64decode(message.get("hdrs") or "").decode().split("\r\n")[1:]
    headers = {name: value.strip() for name, colon, value in (line.partition(":") for line in lines) if colon}
    data = base64.b64decode(message.get("data") or "")
    return StoredMessage(message["subject"], int(message["seq"]), parse_time(message["time"]), data, headers)
