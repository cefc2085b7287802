"""Server-sent events: the fragments of a page, sent again when they have changed."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import StreamingResponse

from amends.page.render import HEADERS
from amends.recorder import Event, Filter, Reader

__all__ = ["live_response"]

_TICK = 1.0
"""Seconds between two looks at the figures of the upstreams."""
_COLLECT = 0.01
"""Seconds in which further events are awaited before a fragment is rendered: a burst is one change."""


def live_response(
    request: Request,
    reader: Reader,
    wanted: Filter,
    limit: int,
    fragments: Callable[[Sequence[Event]], dict[str, str]],
    stopping: Callable[[], bool],
) -> StreamingResponse:
    """Return a stream of `{"id": …, "html": …}`, one for each fragment that has changed."""
    stream = _stream(request, reader, wanted, limit, fragments, stopping)
    return StreamingResponse(stream, media_type="text/event-stream", headers=HEADERS)


async def _stream(
    request: Request,
    reader: Reader,
    wanted: Filter,
    limit: int,
    fragments: Callable[[Sequence[Event]], dict[str, str]],
    stopping: Callable[[], bool],
) -> AsyncGenerator[bytes]:
    events: deque[Event] = deque(maxlen=limit)
    changed = asyncio.Event()

    async def collect() -> None:
        async for event in reader.follow(wanted, last=limit):
            events.appendleft(event)
            changed.set()

    following = asyncio.create_task(collect())
    sent: dict[str, str] = {}
    try:
        yield b"retry: 2000\n\n"
        while not stopping() and not await request.is_disconnected():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_TICK):
                    await changed.wait()
                await asyncio.sleep(_COLLECT)
            if following.done():
                return  # the store failed; the browser asks again
            changed.clear()
            for id, html in fragments(events).items():
                if sent.get(id) != html:
                    sent[id] = html
                    yield b"data: " + msgspec.json.encode({"id": id, "html": html}) + b"\n\n"
            yield b": \n\n"
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await following
