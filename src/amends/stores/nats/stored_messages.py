"""Reading stored messages: one by its subject, pages by sequence number, and those a consumer is given."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amends.stores.errors import StoreUnavailableError
from amends.stores.nats.api_errors import ApiError, NobodyThereError
from amends.stores.nats.clock import moment
from amends.stores.nats.replies import header
from amends.stores.nats.streams import Streams

if TYPE_CHECKING:
    from amends.stores.nats.wire import RawMessage

__all__ = [
    "Stored",
    "at",
    "consume",
    "delivery",
    "from_delivery",
    "from_direct",
    "latest",
    "page",
    "pull",
    "pull_one",
]

# What one answer may bring at most, well below what nats-py buffers before it drops.
_PAGE_BYTES = 8_000_000
_HEARTBEAT = 2.0
_PAUSE = 0.05
_consumers = itertools.count()


@dataclass(frozen=True, slots=True)
class Stored:
    """A message as it lies in a stream."""

    subject: str
    seq: int
    time: float
    data: bytes
    headers: Mapping[str, str]


async def latest(streams: Streams, kind: str, name: str, below: str) -> Stored | None:
    """The newest message of a subject, as the stream's leader has it."""
    subject = streams.subject(kind, name) + below
    stream = streams.stream(kind, name)
    if streams.replicas > 1:
        # Any replica may answer a direct get, also one that has not heard of the last write.
        try:
            answer = await streams.link.api(f"STREAM.MSG.GET.{stream}", {"last_by_subj": subject})
        except ApiError as error:
            if error.missing:
                return None
            raise
        return _from_api(answer["message"])
    while True:
        try:
            message = await streams.link.ask(f"$JS.API.DIRECT.GET.{stream}.{subject}")
        except NobodyThereError:
            if not await streams.exists(kind, name):
                return None
            await asyncio.sleep(_PAUSE)
            continue
        return None if header(message, "Status") == "404" else from_direct(message)


async def at(streams: Streams, kind: str, name: str, start: int, below: str) -> Stored | None:
    """The first message of a subject from a sequence number on, as the stream's leader has it."""
    subject = streams.subject(kind, name) + below
    try:
        answer = await streams.link.api(
            f"STREAM.MSG.GET.{streams.stream(kind, name)}", {"seq": start, "next_by_subj": subject}
        )
    except ApiError as error:
        if error.missing:
            return None
        raise
    return _from_api(answer["message"])


async def page(
    streams: Streams, kind: str, name: str, start: int, limit: int, below: str = ""
) -> list[Stored]:
    """
    Up to `limit` messages from a sequence number on; fewer when they are large or the end is reached.

    With `below`, only those of that subject.
    """
    stream = streams.stream(kind, name)
    request: dict[str, Any] = {"seq": start, "batch": limit, "max_bytes": _PAGE_BYTES}
    if below:
        request["next_by_subj"] = streams.subject(kind, name) + below
    body = json.dumps(request).encode()
    loop = asyncio.get_running_loop()
    end = loop.time() + streams.link.timeout
    while loop.time() < end:
        found: list[Stored] = []
        async with aclosing(streams.link.stream(f"$JS.API.DIRECT.GET.{stream}", body)) as answers:
            async for message in answers:
                status = header(message, "Status")
                if status is None:
                    found.append(from_direct(message))
                elif status == "503":
                    break
                else:  # 204: that was all; 404: there is nothing
                    return found
        # Broken off: what came is in order, and complete as far as it goes.
        if found:
            return found
        if not await streams.exists(kind, name):
            return []
        await asyncio.sleep(_PAUSE)
    raise StoreUnavailableError(
        f"{streams.link.shown} does not answer for {streams.link.timeout:g} s: try again"
    )


async def pull(
    streams: Streams,
    stream: str,
    consumer: str,
    batch: int,
    *,
    expires: float | None,
    ended: list[str] | None = None,
) -> AsyncGenerator[RawMessage, None]:
    """The next messages of a consumer, waiting `expires` for them (None: not at all); ends when there are no more."""
    request, patience = _request(batch, expires)
    async with aclosing(
        streams.link.deliveries.many(
            _next(stream, consumer), request, batch, patience=patience, expires=expires or 1.0, ended=ended
        )
    ) as messages:
        async for message in messages:
            yield message


async def pull_one(
    streams: Streams, stream: str, consumer: str, *, expires: float | None
) -> RawMessage | None:
    """The next message of a consumer, waiting `expires` for it (None: not at all)."""
    request, patience = _request(1, expires)
    return await streams.link.deliveries.one(
        _next(stream, consumer), request, patience=patience, expires=expires or 1.0
    )


def _next(stream: str, consumer: str) -> str:
    return f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"


def _request(batch: int, expires: float | None) -> tuple[bytes, float]:
    """A pull request, and how long a silence means that nobody is there."""
    body: dict[str, Any] = {"batch": batch}
    patience = _HEARTBEAT * 2
    if expires is None:
        body["no_wait"] = True
    else:
        body["expires"] = max(int(expires * 1e9), 1_000_000)
        if expires > _HEARTBEAT * 2:
            body["idle_heartbeat"] = int(_HEARTBEAT * 1e9)
        else:
            patience = expires + 1.0
    if batch > 1:
        body["max_bytes"] = _PAGE_BYTES
    return json.dumps(body).encode(), patience


async def consume(streams: Streams, stream: str, config: Mapping[str, Any]) -> tuple[str, int, str]:
    """A consumer of our own that the server forgets with us: its name, how many messages wait for it, and where it is."""
    name = f"amends-{streams.link.new_id()[1:]}-{next(_consumers)}"
    answer = await streams.link.api(
        f"CONSUMER.CREATE.{stream}.{name}",
        {
            "stream_name": stream,
            "config": {
                "name": name,
                "ack_policy": "none",
                "mem_storage": True,
                "num_replicas": 1,
                "inactive_threshold": int(60e9),
                **config,
            },
        },
    )
    return name, int(answer["num_pending"]), (answer.get("cluster") or {}).get("leader", "")


def from_delivery(message: RawMessage) -> Stored:
    """A message as a consumer delivers it; its numbers are in the reply subject."""
    seq, time, _ = delivery(message.reply)
    return Stored(message.subject, seq, time, message.data, message.headers)


def delivery(reply: str) -> tuple[int, float, int]:
    """Stream sequence number, time and delivery count from `$JS.ACK.[domain.account.]stream.consumer.count.seq.…`."""
    parts = reply.split(".")
    shift = 2 if len(parts) > 9 else 0
    return int(parts[5 + shift]), int(parts[7 + shift]) / 1e9, int(parts[4 + shift])


def from_direct(message: RawMessage) -> Stored:
    """A message as any replica answers with it; its numbers are in the headers."""
    headers = message.headers
    return Stored(
        headers["Nats-Subject"],
        int(headers["Nats-Sequence"]),
        moment(headers["Nats-Time-Stamp"]),
        message.data,
        headers,
    )


def _from_api(message: Mapping[str, Any]) -> Stored:
    lines = base64.b64decode(message.get("hdrs") or "").decode().split("\r\n")[1:]
    headers = {name: value.strip() for name, colon, value in (line.partition(":") for line in lines) if colon}
    data = base64.b64decode(message.get("data") or "")
    return Stored(message["subject"], int(message["seq"]), moment(message["time"]), data, headers)
