"""
Taking tasks off the queue and running them: any number of workers on one store share it.

A message is only a hint that a task may have something to do; the task's log decides. So a message too many costs a look, a
worker that dies is replaced when its lease ends, and one that wakes up late finds that its next append is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from amends.stores.contract import Lease, Queue, Store
from amends.stores.errors import DamagedStoreError, LeaseLostError, StoreClosedError, StoreError
from amends.tasks.documents import Status
from amends.tasks.journal import Fenced, Journal
from amends.tasks.maintenance import SWEEP, sweep
from amends.tasks.offers import Offers
from amends.tasks.registry import House
from amends.tasks.run import Run
from amends.tasks.state import TaskState
from amends.tasks.task_index import mend
from amends.tasks.task_reader import read

__all__ = ["Worker"]

_log = logging.getLogger("amends.tasks")

_TICK = 0.25
"""Seconds after which a run says that it is one, and between looks at the leases."""
_LISTEN = 1.0
"""Seconds between looks at what was said from outside, of runs that last."""
_TAKES = 8
"""Takes asked for at once when there is much to do: on a store that commits together, they cost one commit."""
_FRESH = 10_000
"""Tasks submitted here whose state is kept for whoever takes them; the oldest is read from the log instead."""
_ELSEWHERE = 0.5
"""Seconds after which a task that others can do is offered to them again."""
_ABSENT = 30.0
"""Seconds for which a task waits for a worker that has its agents, before nobody having them is its failure."""
_PAUSE = 1.0
"""Seconds before a store that did not answer is asked again."""
_STOPPING = 5.0
"""Seconds for runs that were cancelled to end."""


class Worker:
    """Takes the tasks of one store, as many at once as it may, runs them and keeps its hold on them."""

    def __init__(
        self,
        house: House,
        store: Store,
        *,
        lease: float,
        concurrency: int,
        keep: float | None,
        sweep_every: float,
        ended: Callable[[TaskState], None],
    ) -> None:
        self._house, self._store = house, store
        self._lease, self._keep, self._sweep_every = lease, keep, sweep_every
        self._ended = ended
        self._queue: Queue = store.queue(house.space, lease=lease)
        self._offers = Offers(house, store)
        self._free = asyncio.Semaphore(concurrency)
        self._concurrency = concurrency
        self._runs: dict[asyncio.Task[None], Run | None] = {}
        self._loops: list[asyncio.Task[None]] = []
        self._ticking: asyncio.Task[None] | None = None
        self._fresh: dict[str, TaskState] = {}
        """Tasks this process has just submitted: their first taker need not read what it wrote itself."""

    # From outside -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Take tasks from now on. The others know by then what this worker can do."""
        await self._offers.announce()
        self._loops = [
            asyncio.ensure_future(self._serve()),
            asyncio.ensure_future(self._offers.keep_announcing()),
        ]

    def expect(self, state: TaskState) -> None:
        """A task was just submitted here, and is most likely taken here, too."""
        if self._loops:
            self._fresh[state.head.id] = state
            if len(self._fresh) > _FRESH:
                del self._fresh[next(iter(self._fresh))]  # another process has taken it, most likely

    def expects(self, id: str) -> bool:
        """Whether a task was just submitted here, and not taken yet."""
        return id in self._fresh

    async def stop(self, grace: float) -> None:
        """Take nothing more, let what runs finish for `grace` seconds, then give it back."""
        loops, self._loops = self._loops, []
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        if self._runs and grace > 0:
            await asyncio.wait(self._runs, timeout=grace)
        for task in list(self._runs):
            task.cancel()
        if self._runs:
            # One that will not be stopped is left behind: its lease ends, and its writes are refused.
            await asyncio.wait(list(self._runs), timeout=_STOPPING)
        if self._ticking is not None:
            self._ticking.cancel()
            await asyncio.gather(self._ticking, return_exceptions=True)

    async def drain(self) -> int:
        """Do everything that is due, and return how many messages that were."""
        count = 0
        while True:
            lease = await self._queue.take()
            if lease is None:
                if not self._runs:
                    return count
                await asyncio.wait(self._runs, return_when=asyncio.FIRST_COMPLETED)
                continue
            count += 1
            await self._free.acquire()
            self._spawn(lease)

    async def hear(self, id: str) -> bool:
        """Something was said to a task; whether it is being worked on here, and has heard."""
        for run in list(self._runs.values()):
            if run is not None and run.state.head.id == id:
                with contextlib.suppress(Fenced, StoreError):
                    return await run.listen()
        return False

    # Taking -----------------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        while True:
            try:
                if self._keep is not None:
                    await self._queue.put(SWEEP, key="~sweep", delay=self._sweep_every)
                hands = 1
                while True:
                    hands = await self._took(hands)
            except StoreClosedError:
                return
            except StoreError:
                # The store is away for a moment. What runs goes on or is fenced; we look again.
                _log.warning("the store does not answer; looking again in %s s", _PAUSE, exc_info=True)
                await asyncio.sleep(_PAUSE)
            except Exception:  # noqa: BLE001 - else this worker would live, offer its agents, and take nothing
                _log.exception("a worker's own mistake; looking again in %s s", _PAUSE)
                await asyncio.sleep(_PAUSE)

    async def _took(self, hands: int) -> int:
        """Take up to `hands` tasks at once, or wait for the next one; how many to ask for after that."""
        await self._free.acquire()
        free = 1
        while free < hands and not self._free.locked():
            await self._free.acquire()
            free += 1
        taken: list[Lease | BaseException | None] = []
        try:
            if free == 1:
                # Only one waits: a crowd would wake as a crowd for every message.
                taken = [await self._queue.take(wait=None)]
            else:
                taken = await asyncio.gather(
                    *(self._queue.take() for _ in range(free)), return_exceptions=True
                )
        finally:
            leases = [each for each in taken if each is not None and not isinstance(each, BaseException)]
            for _ in range(free - len(leases)):
                self._free.release()
        for lease in leases:
            self._spawn(lease)
        for each in taken:
            if isinstance(each, BaseException):
                raise each
        # Where several run there is probably more; one that came back empty says there is not.
        return min(2 * free, _TAKES) if len(leases) == free and len(self._runs) > 1 else 1

    def _spawn(self, lease: Lease) -> None:
        task = asyncio.get_running_loop().create_task(self._handle(lease))
        self._runs[task] = None
        task.add_done_callback(self._done)
        if self._ticking is None or self._ticking.done():
            self._ticking = asyncio.get_running_loop().create_task(self._tick())

    def _done(self, task: asyncio.Task[None]) -> None:
        self._runs.pop(task, None)
        self._free.release()
        if not task.cancelled() and task.exception() is not None:
            _log.error("a worker's own mistake; the task will be taken again", exc_info=task.exception())

    # One message ------------------------------------------------------------------------------------------------

    async def _handle(self, lease: Lease) -> None:
        try:
            if lease.value == SWEEP:
                await sweep(self._store, self._house, self._keep)
                await lease.give_back(delay=self._sweep_every)
            else:
                # What is no id is nobody's, and put away.
                await self._task(lease, lease.value.decode(errors="replace"))
        except Fenced:
            # Another worker has it. Should that one die, this message brings it back.
            with contextlib.suppress(StoreError):
                await lease.give_back(delay=self._lease)
        except LeaseLostError:
            pass  # whoever has the message now will see
        except DamagedStoreError:
            _log.exception("a task cannot be read; looking again in %s s", self._lease)
            with contextlib.suppress(StoreError):
                await lease.give_back(delay=self._lease)
        except StoreError:
            _log.warning("the store does not answer; the task is taken up again later", exc_info=True)
            with contextlib.suppress(StoreError):
                await lease.give_back(delay=_PAUSE)

    async def _task(self, lease: Lease, id: str) -> None:
        store, house = self._store, self._house
        fresh = self._fresh.pop(id, None) if lease.attempt == 1 else None
        found = (fresh, 1) if fresh is not None else await read(store, house.space, id)
        if found is None or not _wanted(found[0]):
            await self._put_away(lease, found)
            return
        state, last = found
        if await self._too_early(lease, state):
            return
        if await self._elsewhere(state):
            await lease.give_back(delay=_ELSEWHERE)
            return
        run = Run(house, Journal(store, house.space, state, last, lease))
        task = asyncio.current_task()
        assert task is not None
        self._runs[task] = run
        try:
            await run.go(takeover=_lost(lease, state))
        except asyncio.CancelledError:
            await asyncio.shield(self._let_go(run))
            raise
        if run.state.over or run.state.status is Status.INPUT_REQUIRED:
            self._ended(run.state)

    async def _put_away(self, lease: Lease, found: tuple[TaskState, int] | None) -> None:
        """Nothing is left to do about it: see that the list says so, and let go of the message."""
        if found is not None:
            if not self._store.supports_transactions:
                await mend(self._store, self._house.space, *found)
            self._ended(found[0])
        await lease.done()

    async def _too_early(self, lease: Lease, state: TaskState) -> bool:
        """Whether this message has come before its time, or is one too many. It is dealt with then."""
        release, now = state.release, self._house.clock()
        if state.held:
            # Somebody outside rang, and a worker has it: that one hears by itself.
            extra = lease.key != state.head.id and lease.attempt == 1
            if extra:
                await lease.done()
            return extra
        if state.heard or release.until is None or release.until <= now:
            return False
        if release.lease == lease.id:
            await lease.give_back(delay=release.until - now)
        else:
            await lease.done()
        return True

    async def _elsewhere(self, state: TaskState) -> bool:
        """Whether this worker lacks an agent of the plan, and another one has it, or may have it in a moment."""
        lacking = [
            step
            for step in state.head.steps
            if state.steps[step.name].state != "done" and not self._house.has(step)
        ]
        if not lacking:
            return False
        if self._house.clock() - max(state.updated, state.release.until or 0.0) < _ABSENT:
            return True  # workers come and go: it is too early to say that nobody has it
        return await self._offers.elsewhere(lacking)

    async def _let_go(self, run: Run) -> None:
        """This worker stops: others may go on at once, unless something is in doubt."""
        with contextlib.suppress(StoreError, Fenced):
            if not any(step.open for step in run.state.steps.values()):
                await run.release()

    # Keeping hold -----------------------------------------------------------------------------------------------

    async def _tick(self) -> None:
        """While anything runs: extend leases, say that it runs, hear what is said."""
        loop = asyncio.get_running_loop()
        listened = loop.time()
        while self._runs:
            await asyncio.sleep(min(_TICK, self._lease / 4))
            listening = loop.time() - listened >= _LISTEN
            if listening:
                listened = loop.time()
            await asyncio.gather(
                *(
                    self._keep_hold(task, run, listening)
                    for task, run in list(self._runs.items())
                    if run is not None and not task.done()
                )
            )

    async def _keep_hold(self, task: asyncio.Task[None], run: Run, listening: bool) -> None:
        try:
            if run.lease.expires_in < self._lease * 0.6:
                await run.lease.extend()
            await run.declare()
            if listening:
                await run.listen()
        except (LeaseLostError, Fenced):
            task.cancel()
        except StoreError:
            _log.warning("the store does not answer; a lease may be lost", exc_info=True)
        except Exception:  # noqa: BLE001 - the other runs are to be held all the same
            _log.exception("a worker's own mistake; a lease may be lost")


def _wanted(state: TaskState) -> bool:
    """Whether there is anything a worker can do about it."""
    return not state.over and (state.status is not Status.INPUT_REQUIRED or state.heard)


def _lost(lease: Lease, state: TaskState) -> bool:
    """Whether somebody had it and did not let go of it: then it has to be taken over."""
    release = state.release
    expected = release.take + 1 if release.lease == lease.id else 1
    return state.held or lease.attempt != expected
