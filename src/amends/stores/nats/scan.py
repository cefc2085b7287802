"""Reading everything below a subject, as it stands now, with all that was acknowledged before."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing

from amends.stores.errors import StoreUnavailableError
from amends.stores.nats.api_errors import ApiError
from amends.stores.nats.replies import header
from amends.stores.nats.stored_messages import Stored, at, consume, from_delivery, from_direct, pull
from amends.stores.nats.streams import Streams

__all__ = ["sweep"]

# What one answer may bring at most; more is delivered bit by bit.
_ANSWER_BYTES = 8_000_000
_BATCH = 256
_PAUSE = 0.05
_NO_MORE = "404"


async def sweep(streams: Streams, kind: str, name: str, below: list[str]) -> AsyncGenerator[Stored, None]:
    """
    The newest message of every subject under the given ones, each subject once, the oldest first.

    What was acknowledged before is among it, whichever replica answers. Of a stream that keeps one message per subject.
    """
    filters = [f"{streams.subject(kind, name)}.{part}" for part in below]
    least = 0
    if streams.replicas > 1:
        info = await streams.info(kind, name)
        if info is None:
            return
        # The leader says what there is; any replica may be asked for it, also one that has not heard of it yet.
        least = info["state"]["last_seq"]
    found = await _at_once(streams, kind, name, filters, least)
    if found is not None:
        for stored in found:
            yield stored
        return
    async with aclosing(_in_turn(streams, kind, name, filters)) as messages:
        async for stored in messages:
            yield stored


async def _at_once(
    streams: Streams, kind: str, name: str, filters: list[str], least: int
) -> list[Stored] | None:
    """All of them in one answer, of a replica that has message `least`; None where they are too many for that."""
    request = f"$JS.API.DIRECT.GET.{streams.stream(kind, name)}"
    body = json.dumps({"multi_last": filters, "max_bytes": _ANSWER_BYTES}).encode()
    loop = asyncio.get_running_loop()
    end = loop.time() + streams.link.timeout
    while loop.time() < end:
        found: list[Stored] = []
        status = None
        async with aclosing(streams.link.stream(request, body)) as answers:
            async for message in answers:
                status = header(message, "Status")
                if status is not None:
                    break
                found.append(from_direct(message))
        if status == "413":
            return None
        if status == "204":
            if int(message.headers["Nats-Num-Pending"]):
                return None
            if int(message.headers["Nats-UpTo-Sequence"]) >= least:
                return sorted(found, key=_by_number)
        elif status == "404":
            # How far that replica is, such an answer does not say.
            if not least or not await _any(streams, kind, name, filters):
                return []
        elif not await streams.exists(kind, name):
            return []
        await asyncio.sleep(_PAUSE)
    raise _silent(streams)


def _by_number(stored: Stored) -> int:
    return stored.seq


async def _any(streams: Streams, kind: str, name: str, filters: list[str]) -> bool:
    """Whether the leader has any message under these subjects."""
    base = streams.subject(kind, name)
    for subject in filters:
        if await at(streams, kind, name, 1, subject.removeprefix(base)) is not None:
            return True
    return False


async def _in_turn(
    streams: Streams, kind: str, name: str, filters: list[str]
) -> AsyncGenerator[Stored, None]:
    """They are delivered one after the other; begun anew where a delivery may have been lost."""
    stream, seen = streams.stream(kind, name), set[str]()
    loop = asyncio.get_running_loop()
    end = loop.time() + streams.link.timeout
    while loop.time() < end:
        try:
            consumer, left = await _placed(streams, kind, name, filters)
        except ApiError as error:
            if error.missing:
                return
            raise
        got, ended = 1, list[str]()
        while left > 0 and got:
            got, ended = 0, []
            async with aclosing(
                pull(streams, stream, consumer, min(left, _BATCH), expires=None, ended=ended)
            ) as messages:
                async for message in messages:
                    got += 1
                    left -= 1
                    stored = from_delivery(message)
                    if stored.subject not in seen:
                        seen.add(stored.subject)
                        yield stored
            if got:
                end = loop.time() + streams.link.timeout
        streams.link.tell(f"$JS.API.CONSUMER.DELETE.{stream}.{consumer}")
        # Messages counted at the start may have been replaced or have expired since: then it says that there are no more.
        if left <= 0 or ended == [_NO_MORE]:
            return
        await asyncio.sleep(_PAUSE)
    raise _silent(streams)


async def _placed(streams: Streams, kind: str, name: str, filters: list[str]) -> tuple[str, int]:
    """A consumer, with the server that leads the stream where there are several; and how many messages it has."""
    stream = streams.stream(kind, name)
    config = {"deliver_policy": "last_per_subject", "filter_subjects": filters}
    loop = asyncio.get_running_loop()
    end = loop.time() + streams.link.timeout
    while loop.time() < end:
        info = await streams.info(kind, name) if streams.replicas > 1 else None
        leader = "" if info is None else (info.get("cluster") or {}).get("leader", "")
        consumer, left, where = await consume(streams, stream, config)
        if where == leader or not leader:
            return consumer, left
        # Placed by lot, with a replica that may have heard less.
        streams.link.tell(f"$JS.API.CONSUMER.DELETE.{stream}.{consumer}")
    raise _silent(streams)


def _silent(streams: Streams) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"{streams.link.shown} does not answer for {streams.link.timeout:g} s: try again"
    )
