"""
Take tasks from the queue and run them. Any number of workers on one store share the queue.

A message only says that a task may have work to do; the task's log decides. A superfluous message therefore costs one read. When
a worker dies, another one takes its message at the end of the lease. A worker that was paused for longer than its lease finds
that its next append is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from amends.durable.index import write_row
from amends.durable.journal import Snapshot
from amends.durable.worker import Worker as MessageWorker
from amends.logs import logger
from amends.stores.contract import Lease, Queue, Store
from amends.stores.errors import DamagedStoreError, LeaseLostError, StoreError
from amends.tasks.documents import AT_REST
from amends.tasks.journal import Fenced, Journal, read_task
from amends.tasks.maintenance import MAINTENANCE, maintain
from amends.tasks.offers import Offers
from amends.tasks.registry import Registry
from amends.tasks.run import Run
from amends.tasks.state import TaskState

__all__ = ["Worker"]

_log = logger("amends.tasks")

_TICK = 0.25
"""Seconds between two checks of the leases."""
_READ_COMMANDS = 1.0
"""Seconds between two reads of the commands for running tasks."""
_OFFER_AGAIN = 0.5
"""Seconds after which a task for another worker's agents is put back on the queue again."""
_ABSENT = 30.0
"""Seconds for which a task waits for a worker that has its agents; after that the missing agent is its failure."""
_PAUSE = 1.0
"""Seconds to wait after the store did not answer."""
_OTHERS_END = 30.0
"""Seconds for which a task that has to run by itself waits for the other tasks of the worker."""


class Worker:
    """Takes the tasks of one store, runs up to `concurrency` of them at once, and extends their leases."""

    def __init__(
        self,
        registry: Registry,
        store: Store,
        *,
        lease: float,
        concurrency: int,
        keep: float | None,
        maintenance_interval: float,
        notify: Callable[[TaskState], None],
    ) -> None:
        """
        Args:
            registry: the agents of this worker, and its settings.
            store: where the tasks are.
            lease: seconds a message is leased for.
            concurrency: tasks run at once.
            keep: seconds after which an ended task is forgotten; None: never.
            maintenance_interval: seconds between two runs of the maintenance, over all workers.
            notify: called with the state of a task that is over or needs an answer.
        """
        self._registry, self._store = registry, store
        self._lease, self._keep, self._maintenance_interval = lease, keep, maintenance_interval
        self._notify = notify
        self._queue: Queue = store.queue(registry.space, lease=lease)
        self._offers = Offers(registry, store)
        self._messages = MessageWorker(
            self._queue,
            self._handle,
            self._maintain_runs,
            concurrency=concurrency,
            every=min(_TICK, lease / 4),
            log=_log,
        )
        self._runs: dict[asyncio.Task[None], Run] = {}
        self._alone: asyncio.Task[None] | None = None
        """The run that waits until no other runs, or that runs by itself."""
        self._commands_read = 0.0
        self._loops: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Announce this worker's agents, then start to take tasks."""
        await self._registry.synchronize(self._queue)
        await self._offers.announce()
        self._loops = [
            asyncio.ensure_future(self._messages.serve(self._schedule_maintenance)),
            asyncio.ensure_future(self._offers.keep_announcing(self._queue)),
        ]

    async def stop(self, grace: float) -> None:
        """Take no further tasks, wait up to `grace` seconds for the running ones, then give those back."""
        loops, self._loops = self._loops, []
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        await self._messages.stop(grace)
        await self._registry.late_results.close()

    async def drain(self) -> int:
        """Handle all messages that are due, and return their number."""
        await self._registry.synchronize(self._queue)
        return await self._messages.drain()

    async def _schedule_maintenance(self) -> None:
        await self._queue.put(b"", key=MAINTENANCE, delay=self._maintenance_interval)

    async def read_commands(self, id: str) -> bool:
        """Have a running task read its commands. Return whether the task runs here and has read them."""
        for run in list(self._runs.values()):
            if run.state.head.id == id:
                with contextlib.suppress(Fenced, StoreError):
                    return await run.read_commands()
        return False

    # One message ------------------------------------------------------------------------------------------------

    async def _handle(self, lease: Lease) -> None:
        try:
            if lease.key == MAINTENANCE:
                await maintain(self._store, self._registry, self._keep)
                await lease.give_back(delay=self._maintenance_interval)
            else:
                # A message that is no task id matches no task and is removed.
                await self._run_task(lease, lease.value.decode(errors="replace"))
        except Fenced:
            # Another worker has the task. If that one dies, this message starts it again.
            with contextlib.suppress(StoreError):
                await lease.give_back(delay=self._lease)
        except LeaseLostError:
            pass  # another worker has the message
        except DamagedStoreError:
            _log.exception("a task cannot be read; trying again in %s s", self._lease)
            with contextlib.suppress(StoreError):
                await lease.give_back(delay=self._lease)
        except StoreError:
            _log.warning("the store does not answer; the task will be taken again", exc_info=True)
            with contextlib.suppress(StoreError):
                await lease.give_back(delay=_PAUSE)

    async def _run_task(self, lease: Lease, id: str) -> None:
        store, registry = self._store, self._registry
        found = await read_task(store, registry.space, id)
        if found is None or not found.state.has_work:
            await self._discard(lease, found)
            return
        state = found.state
        if await self._handle_early(lease, state):
            return
        if await self._leave_to_others(state) or self._alone is not None:
            await lease.give_back(delay=_OFFER_AGAIN)
            return
        journal = Journal(store, registry.space, found, lease)
        run = Run(registry, journal)
        task = asyncio.current_task()
        assert task is not None
        self._runs[task] = run
        try:
            if found.valid < found.last:
                await run.repair()
            takeover = journal.state.held
            alone = takeover and registry.suspects(journal.state)
            if alone and not await self._stop_others(task):
                await lease.give_back(delay=_OFFER_AGAIN)
                return
            await run.execute(takeover=takeover, alone=alone)
        except asyncio.CancelledError:
            await asyncio.shield(self._release(run))
            raise
        finally:
            del self._runs[task]
            self._end_alone(task)
        if journal.state.status in AT_REST:
            self._notify(journal.state)

    async def _stop_others(self, task: asyncio.Task[None]) -> bool:
        """
        Take no further tasks, and wait until the other ones have ended. Return whether this run has the worker for itself.

        Workers were lost while running this task, and other tasks that ran at the same time. If it is the cause, it has to be
        alone when the next worker is lost.
        """
        if self._alone is not None:
            return False
        self._alone = task
        others = [each for each in self._runs if each is not task]
        if others:
            await asyncio.wait(others, timeout=_OTHERS_END)
        if all(each.done() for each in others):
            return True
        self._alone = None
        return False

    def _end_alone(self, task: asyncio.Task[None]) -> None:
        if self._alone is task:
            self._alone = None

    async def _discard(self, lease: Lease, found: Snapshot[TaskState] | None) -> None:
        """Remove the message of a task that has no work to do, and bring the task's row up to date."""
        if found is not None:
            if not self._store.traits.transactions:
                await write_row(self._store, found.state.row(self._registry.space, found.last))
            self._notify(found.state)
        await lease.done()

    async def _handle_early(self, lease: Lease, state: TaskState) -> bool:
        """Put off or remove a message that came early or is superfluous. Return whether it was one."""
        if state.held:
            # The worker that holds the task by another message extends its lease on that one, and reads all commands. If it is
            # lost, that message is delivered again.
            other = (lease.key or "") != state.message
            if other:
                await lease.done()
            return other
        release = state.release
        if state.command_pending or release.until is None:
            return False
        wait = release.until - self._registry.clock()
        if wait <= 0:
            return False
        if release.lease == lease.id:
            await lease.give_back(delay=wait)
        else:
            await lease.done()
        return True

    async def _leave_to_others(self, state: TaskState) -> bool:
        """Return whether this worker lacks an agent of the plan that another worker has, or may soon have."""
        left = [step for step in state.head.steps if state.steps[step.name].state != "done"]
        lacking = self._registry.lacking(left)
        if not lacking:
            return False
        if self._registry.clock() - max(state.updated, state.release.until or 0.0) < _ABSENT:
            return True  # a worker that has the agent may be starting
        return await self._offers.offered_elsewhere(lacking)

    async def _release(self, run: Run) -> None:
        """Let other workers take the task at once, unless one of its steps has to be verified first."""
        with contextlib.suppress(StoreError, Fenced):
            await run.settle()
            if not any(step.open for step in run.state.steps.values()):
                await run.release()

    # Leases -----------------------------------------------------------------------------------------------------

    async def _maintain_runs(self) -> None:
        """Extend the leases of the running tasks, and read their commands."""
        now = asyncio.get_running_loop().time()
        reading = now - self._commands_read >= _READ_COMMANDS
        if reading:
            self._commands_read = now
        await asyncio.gather(*(self._maintain_run(*each, reading) for each in list(self._runs.items())))

    async def _maintain_run(self, task: asyncio.Task[None], run: Run, reading: bool) -> None:
        try:
            if run.guard.expires_in < self._lease * 0.6:
                await run.guard.extend()
            if reading:
                await run.read_commands()
        except (LeaseLostError, Fenced):
            task.cancel()
        except StoreError:
            _log.warning("the store does not answer; a lease may be lost", exc_info=True)
        except Exception:  # noqa: BLE001 - the leases of the other runs must still be extended
            _log.exception("unexpected error in a worker; a lease may be lost")
