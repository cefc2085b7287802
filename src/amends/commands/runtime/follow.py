"""Follows a job together with the jobs that it delegates to."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from amends.errors.base import FaultError

if TYPE_CHECKING:
    from amends.arcp import Client, Handle
    from amends.commands.runtime.job_view import View

__all__ = ["follow"]

_FIRST, _LONGEST = 0.05, 1.0
"""Seconds between two searches for the children of a job."""
_LISTED = 1_000


async def follow(client: Client, handle: Handle, view: View) -> None:
    """
    Show a job and its descendants until all of them have ended.

    Raises:
        FaultError: the job's error. Errors of its descendants are only shown.

    """
    with view:
        await _Family(client, view).follow(handle)


class _Family:
    """The jobs that are followed. Children are found in the listing: a `delegate` event comes before its job has an id."""

    def __init__(self, client: Client, view: View) -> None:
        self._client = client
        self._view = view
        self._depth: dict[str, int] = {}
        self._delegated: Counter[str] = Counter()
        self._children: Counter[str] = Counter()
        self._running: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._search: asyncio.Task[None] | None = None

    async def follow(self, handle: Handle) -> None:
        self._depth[handle.job_id] = 0
        try:
            await self._show(handle)
        finally:
            # Children may outlive their parent.
            while pending := [task for task in (*self._tasks, self._search) if task and not task.done()]:
                await asyncio.gather(*pending, return_exceptions=True)
        self._view.end(handle, await handle.done)

    async def _show(self, handle: Handle) -> None:
        depth = self._depth[handle.job_id]
        self._running.add(handle.job_id)
        self._view.start(handle, depth)
        try:
            async for event in handle.events():
                self._view.event(event, depth)
                if event.kind == "delegate":
                    self._delegated[handle.job_id] += 1
                    self._find_children()
        finally:
            self._running.discard(handle.job_id)

    async def _show_child(self, job_id: str) -> None:
        try:
            handle = await self._client.subscribe(job_id)
            await self._show(handle)
            result = await handle.done
        except FaultError as error:
            self._view.fail(job_id, error.fault, self._depth[job_id])
        else:
            self._view.end(handle, result, self._depth[job_id])

    def _find_children(self) -> None:
        if self._search is None or self._search.done():
            self._search = asyncio.ensure_future(self._search_children())

    async def _search_children(self) -> None:
        """List jobs until every delegation has its job. One that was refused has none: then until its parent has ended."""
        if "list_jobs" not in self._client.features:
            return
        pause = _FIRST
        while missing := {job for job, count in self._delegated.items() if count > self._children[job]}:
            last = not missing & self._running
            for entry in reversed(await self._client.jobs(limit=_LISTED)):
                parent = entry.parent_job_id
                if parent in self._depth and entry.job_id not in self._depth:
                    self._depth[entry.job_id] = self._depth[parent] + 1
                    self._children[parent] += 1
                    task = asyncio.ensure_future(self._show_child(entry.job_id))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
            if last:
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST)
