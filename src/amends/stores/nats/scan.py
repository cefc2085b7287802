"""
Read the newest message of every subject under a prefix, including everything that was acknowledged before.

With replicas, any of them may answer, also one that was paused and lags, and after an election no answer about the leader can
be trusted. So the reader first writes a message of its own, the barrier. A majority has acknowledged it, and everything
acknowledged before has a smaller number: an answer that contains the barrier contains all of that, too.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from amends.proof import Claim, Proof, rests_on
from amends.stores.nats.api_errors import ApiError
from amends.stores.nats.deliveries import PAGE_BYTES
from amends.stores.nats.replies import header, headers_of
from amends.stores.nats.stored_messages import StoredMessage, from_delivery, from_direct, no_reply
from amends.stores.nats.streams import Streams

__all__ = ["scan"]

_BATCH = 256
_PAUSE = 0.05
_NO_MORE = "404"
_BARRIER = ".amends-barrier"
"""The reserved subject of barriers. Keys have subjects that begin with `k.` or `h.`, claims and dead letters with others."""
_BARRIER_KEPT = "300s"


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
        min_seq = await _write_barrier(streams, kind, name)
        filters.append(streams.subject(kind, name) + _BARRIER)
    found = await _read_direct(streams, kind, name, filters, min_seq)
    if found is not None:
        for stored in found:
            yield stored
        return
    async with aclosing(_read_by_consumer(streams, kind, name, filters, min_seq)) as messages:
        async for stored in messages:
            yield stored


async def _write_barrier(streams: Streams, kind: str, name: str) -> int:
    """Write the barrier, and return its number: a majority has everything up to it."""
    headers = {
        "Amends-Key": "~",
        "Amends-Deleted": "1",
        "Nats-TTL": _BARRIER_KEPT,
        "Nats-Msg-Id": streams.connection.new_id(),
    }
    return await streams.publish(kind, name, _BARRIER, b"", headers)


@rests_on(Claim.COMPLETE, Proof.MAJORITY)
def _reached(found: Iterable[StoredMessage], barrier: str) -> int:
    """Return the number of the barrier that an answer contains: the answer has everything up to it. 0 without one."""
    return max((stored.seq for stored in found if stored.subject == barrier), default=0)


async def _read_direct(
    streams: Streams, kind: str, name: str, filters: list[str], min_seq: int
) -> list[StoredMessage] | None:
    """All messages in one reply that contains the barrier `min_seq`; None if they are too many for one reply."""
    barrier = streams.subject(kind, name) + _BARRIER
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
            if _reached(found, barrier) >= min_seq:
                found = [stored for stored in found if stored.subject != barrier]
                return sorted(found, key=lambda stored: stored.seq)
        elif (status == "404" and not min_seq) or not await streams.exists(kind, name):
            return []
        await asyncio.sleep(_PAUSE)
    raise no_reply(streams)


async def _read_by_consumer(
    streams: Streams, kind: str, name: str, filters: list[str], min_seq: int
) -> AsyncGenerator[StoredMessage, None]:
    """
    All messages through a consumer, one after the other; starts again if a delivery may have been lost.

    With replicas they are yielded when the barrier has been delivered, because the consumer may be on a replica that lags.
    """
    stream, seen = streams.stream(kind, name), set[str]()
    barrier = streams.subject(kind, name) + _BARRIER
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
        held: dict[str, StoredMessage] = {}
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
                    if min_seq:
                        held[stored.subject] = stored
                    elif stored.subject not in seen:
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
        if complete and _reached(held.values(), barrier) >= min_seq:
            held.pop(barrier, None)
            for stored in sorted(held.values(), key=lambda stored: stored.seq):
                yield stored
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
        if info is None or (leader and (answer.get("cluster") or {}).get("leader", "") == leader):
            return consumer, int(answer["num_pending"])
        # The server placed it on a replica that may lag.
        await streams.connection.publish(f"$JS.API.CONSUMER.DELETE.{stream}.{consumer}")
        await asyncio.sleep(_PAUSE)
    raise no_reply(streams)
