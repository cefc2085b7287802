"""Read the newest message of every subject under a prefix, including everything that was acknowledged before."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing

from amends.stores.nats.api_errors import ApiError
from amends.stores.nats.deliveries import PAGE_BYTES
from amends.stores.nats.replies import header, headers_of
from amends.stores.nats.stored_messages import (
    StoredMessage,
    first_from,
    from_delivery,
    from_direct,
    no_reply,
)
from amends.stores.nats.streams import Streams

__all__ = ["scan"]

_BATCH = 256
_PAUSE = 0.05
_NO_MORE = "404"


async def scan(
    streams: Streams, kind: str, name: str, suffixes: list[str]
) -> AsyncGenerator[StoredMessage, None]:
    """
    Yield the newest message of every subject that matches one of `suffixes`, each subject once, the oldest first.

    The result includes everything that was acknowledged before the call, whichever replica replies. Only for streams that
    keep one message per subject.
    """
    filters = [f"{streams.subject(kind, name)}.{suffix}" for suffix in suffixes]
    min_seq = 0
    if await streams.replicas(kind, name) > 1:
        info = await streams.info(kind, name)
        if info is None:
            return
        # The leader's last number is the minimum that a replica must have reached; any replica may answer.
        min_seq = info["state"]["last_seq"]
    found = await _read_direct(streams, kind, name, filters, min_seq)
    if found is not None:
        for stored in found:
            yield stored
        return
    async with aclosing(_read_by_consumer(streams, kind, name, filters)) as messages:
        async for stored in messages:
            yield stored


async def _read_direct(
    streams: Streams, kind: str, name: str, filters: list[str], min_seq: int
) -> list[StoredMessage] | None:
    """All messages in one reply, from a replica that has reached `min_seq`; None if they are too many for one reply."""
    request = f"$JS.API.DIRECT.GET.{streams.stream(kind, name)}"
    body = json.dumps({"multi_last": filters, "max_bytes": PAGE_BYTES}).encode()
    loop = asyncio.get_running_loop()
    end = loop.time() + streams.connection.timeout
    while loop.time() < end:
        found: list[StoredMessage] = []
        status = None
        async with aclosing(streams.connection.stream(request, body)) as replies:
            async for message in replies:
                status = header(message, "Status")
                if status is not None:
                    break
                found.append(from_direct(message))
        if status == "413":
            return None
        if status == "204":
            if int(headers_of(message)["Nats-Num-Pending"]):
                return None
            if int(headers_of(message)["Nats-UpTo-Sequence"]) >= min_seq:
                return sorted(found, key=lambda stored: stored.seq)
        elif status == "404":
            # This reply does not contain how far the replica is.
            if not min_seq or not await _any(streams, kind, name, filters):
                return []
        elif not await streams.exists(kind, name):
            return []
        await asyncio.sleep(_PAUSE)
    raise no_reply(streams)


async def _any(streams: Streams, kind: str, name: str, filters: list[str]) -> bool:
    """Whether the leader has any message under these subjects."""
    base = streams.subject(kind, name)
    for subject in filters:
        if await first_from(streams, kind, name, 1, subject.removeprefix(base)) is not None:
            return True
    return False


async def _read_by_consumer(
    streams: Streams, kind: str, name: str, filters: list[str]
) -> AsyncGenerator[StoredMessage, None]:
    """All messages through a consumer, one after the other; starts again if a delivery may have been lost."""
    stream, seen = streams.stream(kind, name), set[str]()
    loop = asyncio.get_running_loop()
    end = loop.time() + streams.connection.timeout
    while loop.time() < end:
        try:
            consumer, left = await _create_consumer(streams, kind, name, filters)
        except ApiError as error:
            if error.missing:
                return
            raise
        got, received, end_status = 1, 0, list[str]()
        while left > 0 and got:
            got, end_status = 0, []
            async with aclosing(
                streams.connection.deliveries.pull(
                    stream, consumer, min(left, _BATCH), expires=None, end_status=end_status
                )
            ) as messages:
                async for message in messages:
                    got += 1
                    received += 1
                    left -= 1
                    stored = from_delivery(message)
                    if stored.subject not in seen:
                        seen.add(stored.subject)
                        yield stored
            if got:
                end = loop.time() + streams.connection.timeout
        # Messages counted at the start may have been replaced or have expired; the server then reports that none are left.
        # It reports the same after a delivery that did not arrive.
        complete = left <= 0 or (
            end_status == [_NO_MORE] and await _delivered(streams, stream, consumer) == received
        )
        await streams.connection.publish(f"$JS.API.CONSUMER.DELETE.{stream}.{consumer}")
        if complete:
            return
        await asyncio.sleep(_PAUSE)
    raise no_reply(streams)


async def _delivered(streams: Streams, stream: str, consumer: str) -> int:
    """How many messages the server has sent to a consumer; -1 if the consumer is gone."""
    answer = await streams.connection.find(f"CONSUMER.INFO.{stream}.{consumer}")
    return -1 if answer is None else int(answer["delivered"]["consumer_seq"])


async def _create_consumer(streams: Streams, kind: str, name: str, filters: list[str]) -> tuple[str, int]:
    """Create a consumer, with replicas on the stream's leader; returns its name and the number of its messages."""
    stream = streams.stream(kind, name)
    config: dict[str, object] = {
        "ack_policy": "none",
        "mem_storage": True,
        "num_replicas": 1,
        "inactive_threshold": int(60e9),
        "deliver_policy": "last_per_subject",
        "filter_subjects": filters,
    }
    loop = asyncio.get_running_loop()
    end = loop.time() + streams.connection.timeout
    while loop.time() < end:
        info = await streams.info(kind, name) if await streams.replicas(kind, name) > 1 else None
        leader = "" if info is None else (info.get("cluster") or {}).get("leader", "")
        consumer = config["name"] = f"amends-{streams.connection.new_id()[1:]}"
        answer = await streams.connection.api(
            f"CONSUMER.CREATE.{stream}.{consumer}", {"stream_name": stream, "config": config}
        )
        if not leader or (answer.get("cluster") or {}).get("leader", "") == leader:
            return consumer, int(answer["num_pending"])
        # The server placed it on a replica that may lag.
        await streams.connection.publish(f"$JS.API.CONSUMER.DELETE.{stream}.{consumer}")
    raise no_reply(streams)
