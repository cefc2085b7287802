"""
Server-sent events: the fragments of a page, sent again when they have changed.

All browsers that watch the same thing share one feed: it follows the recorder once, and renders each change once, on a thread,
so that neither the number of browsers nor the number of events delays the calls of the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from amends.logs import logger
from amends.page.render import HEADERS
from amends.recorder import Event, Filter, Reader

__all__ = ["Fragments", "LiveFeeds"]

_log = logger("amends.page")

T = TypeVar("T")

Fragments = Callable[[Sequence[Event], bool], Callable[[], dict[str, str]]]
"""
What a feed shows: from its events, and whether they have changed, to a function that renders the fragments on a thread.

The outer function is called on the event loop, where it may read what changes there.
"""

_VIEWERS = 64
"""Browsers that watch at the same time."""
_FEEDS = 16
"""Different things that are watched at the same time. Each renders by itself."""
_TICK = 1.0
"""Seconds between two looks at the figures of the upstreams."""
_COLLECT = 0.01
"""Seconds in which further events are awaited before a fragment is rendered: a burst is one change."""
_SHARE = 20.0
"""A feed rests this many times as long as its last change took to render: at most 5 % of a core."""
_LINGER = 5.0
"""Seconds for which a feed without a browser is kept, for pages that are loaded again."""


class LiveFeeds:
    """The feeds of one page, and the thread that renders them."""

    def __init__(self, stopping: Callable[[], bool]) -> None:
        self._stopping = stopping
        self._feeds: dict[Hashable, _Feed] = {}
        self._viewers = 0
        self._thread: ThreadPoolExecutor | None = None

    async def render(self, work: Callable[[], T]) -> T:
        """Run a function on the thread that renders."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "amends-page")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def response(
        self,
        request: Request,
        key: Hashable,
        reader: Reader,
        wanted: Filter,
        limit: int,
        fragments: Fragments,
    ) -> Response:
        """Return a stream of `{"id": …, "html": …}`, one for each fragment that has changed; 503 if too many watch."""
        feed = self._feeds.get(key)
        if self._viewers >= _VIEWERS or (feed is None and len(self._feeds) >= _FEEDS):
            return Response("Too many browsers are watching.", 503, {**HEADERS, "retry-after": "30"})
        stream = self._stream(request, key, reader, wanted, limit, fragments)
        return StreamingResponse(stream, media_type="text/event-stream", headers=HEADERS)

    async def close(self) -> None:
        """End all feeds."""
        feeds = list(self._feeds.values())
        self._feeds.clear()
        for feed in feeds:
            await feed.stop()
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
            self._thread = None

    async def _stream(
        self,
        request: Request,
        key: Hashable,
        reader: Reader,
        wanted: Filter,
        limit: int,
        fragments: Fragments,
    ) -> AsyncGenerator[bytes]:
        feed = self._feeds.get(key)
        if feed is None or feed.ended:
            feed = self._feeds[key] = _Feed(reader, wanted, limit, fragments, self.render)
        self._viewers += 1
        feed.viewers += 1
        version = 0
        try:
            yield b"retry: 2000\n\n"
            while not self._stopping() and not feed.ended and not await request.is_disconnected():
                for frame in feed.newer(version):
                    yield frame
                version = feed.version
                yield b": \n\n"
                await feed.changed(version)
        finally:
            self._viewers -= 1
            feed.viewers -= 1
            if not feed.viewers:
                feed.let_go(lambda: self._drop(key, feed))

    def _drop(self, key: Hashable, feed: _Feed) -> None:
        if not feed.viewers and self._feeds.get(key) is feed:
            del self._feeds[key]
            feed.cancel()


class _Feed:
    """The newest events of one filter, and the frames of the fragments made from them."""

    def __init__(
        self,
        reader: Reader,
        wanted: Filter,
        limit: int,
        fragments: Fragments,
        render: Callable[[Callable[[], dict[str, str]]], Awaitable[dict[str, str]]],
    ) -> None:
        self.version = 0
        """The number of the last change."""
        self.viewers = 0
        self._render = render
        self._fragments = fragments
        self._events: deque[Event] = deque(maxlen=limit)
        self._new = asyncio.Event()
        self._frames: dict[str, tuple[int, str, bytes]] = {}
        """By fragment: the change that it belongs to, its text and its frame."""
        self._waiting: asyncio.Event = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._following = asyncio.create_task(self._collect(reader, wanted, limit))
        self._rendering = asyncio.create_task(self._render_changes())

    @property
    def ended(self) -> bool:
        """Whether the store failed; the browser asks again."""
        return self._rendering.done()

    def newer(self, version: int) -> list[bytes]:
        """Return the frames of the fragments that changed after a version."""
        return [frame for number, _, frame in self._frames.values() if number > version]

    async def changed(self, version: int) -> None:
        """Wait for a newer version, for at most a tick."""
        if self.version > version:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_TICK):
                await self._waiting.wait()

    def let_go(self, drop: Callable[[], None]) -> None:
        """Call `drop` a while after the last browser has left."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(_LINGER, drop)

    def cancel(self) -> None:
        """End the feed."""
        if self._timer is not None:
            self._timer.cancel()
        self._following.cancel()
        self._rendering.cancel()

    async def stop(self) -> None:
        """End the feed, and wait for it."""
        self.cancel()
        for task in (self._following, self._rendering):
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task

    async def _collect(self, reader: Reader, wanted: Filter, limit: int) -> None:
        async for event in reader.follow(wanted, last=limit):
            self._events.appendleft(event)
            self._new.set()

    async def _render_changes(self) -> None:
        changed = True
        await self._wait_for_events()
        while True:
            began = monotonic()
            try:
                rendered = await self._render(self._fragments(tuple(self._events), changed))
            except Exception:  # noqa: BLE001 - of a template or an event; the stream ends and the browser asks again
                _log.exception("the live page could not be rendered")
                return
            self._publish(rendered)
            rest = _SHARE * (monotonic() - began) if changed else _TICK
            await asyncio.sleep(max(_COLLECT, min(rest, 10 * _TICK)))
            await self._wait_for_events()
            if self._following.done():
                return
            changed = self._new.is_set()
            self._new.clear()

    async def _wait_for_events(self) -> None:
        """Wait for an event and those that follow it directly, for at most a tick."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_TICK):
                await self._new.wait()
            await asyncio.sleep(_COLLECT)

    def _publish(self, rendered: dict[str, str]) -> None:
        number = self.version + 1
        for id, html in rendered.items():
            before = self._frames.get(id)
            if before is None or before[1] != html:
                frame = b"data: " + msgspec.json.encode({"id": id, "html": html}) + b"\n\n"
                self._frames[id] = (number, html, frame)
                self.version = number
        if self.version == number:
            self._waiting.set()
            self._waiting = asyncio.Event()
