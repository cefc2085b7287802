"""
Handing tasks to agents, and answering for what becomes of them.

    async with Orchestrator([cooking, calendar], store="sqlite:///tasks.db") as orchestrator:
        response = await orchestrator.run("create_event", {"title": "Dinner"})

Without a store it keeps everything in memory and needs no set-up. With one, tasks survive the process: other workers on the
same store go on with them.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from amends import stores
from amends.core.policy import Policy
from amends.errors.base import FaultError
from amends.errors.task import InvalidFieldValueError
from amends.recovery.policies import TASK
from amends.stores.contract import Store
from amends.tasks import commands
from amends.tasks.agent import Agent
from amends.tasks.commands import say
from amends.tasks.documents import Response, Status, seconds_of
from amends.tasks.entries import Record
from amends.tasks.handle import Handle
from amends.tasks.maintenance import forget
from amends.tasks.offers import Offers
from amends.tasks.registry import House
from amends.tasks.state import TaskState
from amends.tasks.submit import submit
from amends.tasks.task_index import Listing, listed
from amends.tasks.task_reader import known, records_of
from amends.tasks.task_request import requested
from amends.tasks.wait import Waiting
from amends.tasks.worker import Worker

__all__ = ["Orchestrator"]

_WEEK = 7 * 86400.0


class Orchestrator:
    """Agents, a store, and the tasks on it."""

    def __init__(
        self,
        agents: Iterable[Agent] = (),
        *,
        store: Store | str = "memory:",
        policy: Policy = TASK,
        lease: float = 30.0,
        concurrency: int = 64,
        keep: float | timedelta | None = _WEEK,
        worker: bool = True,
        grace: float | timedelta = 10.0,
        name: str = "tasks",
        clock: Callable[[], float] | None = None,
    ) -> None:
        """
        Args:
            agents: whom tasks are handed to; more with `register`.
            store: an open store, or the URL of one to open: `memory:`, `sqlite:///tasks.db`, `nats://host/name`.
            policy: how far recovery may go; S3's table (T7) unless said otherwise.
            lease: seconds after which a silent worker counts as dead; the same for all workers of a store.
            concurrency: tasks this process works on at once.
            keep: seconds after which a task that is over is forgotten; None: never.
            worker: whether this process works on tasks, or only submits and looks.
            grace: seconds running tasks get to finish when this one closes.
            name: tells several sets of tasks on one store apart.
            clock: wall-clock seconds, for tests.
        """
        me = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        self._house = House(me, space=name, policy=policy, clock=clock or time.time)
        self._house.register(agents)
        self._given = store
        self._store: Store | None = None if isinstance(store, str) else store
        self._lease, self._concurrency = lease, concurrency
        self._keep = None if keep is None else seconds_of(keep)
        self._works, self._grace = worker, seconds_of(grace)
        self._worker: Worker | None = None
        self._waiting = Waiting(name, worker=worker)

    def register(self, *agents: Agent) -> None:
        """Hand tasks to these agents, too."""
        self._house.register(agents)

    @property
    def agents(self) -> Mapping[str, Agent]:
        """The agents of this process by name."""
        return self._house.agents

    @property
    def store(self) -> Store:
        """Where the tasks are."""
        if self._store is None:
            raise RuntimeError("the orchestrator is not open: use `async with`, or await start() first")
        return self._store

    async def start(self) -> None:
        """Open the store and begin to work. `async with` does it."""
        if self._worker is not None:
            return
        if self._store is None:
            assert isinstance(self._given, str)
            self._store = await stores.open(self._given)
        self._worker = Worker(
            self._house,
            self._store,
            lease=self._lease,
            concurrency=self._concurrency,
            keep=self._keep,
            sweep_every=min(3600.0, self._keep or 3600.0),
            ended=self._waiting.tell,
        )
        if self._works:
            try:
                await self._worker.start()
            except BaseException:
                await self.close()
                raise

    async def close(self) -> None:
        """Stop working, close the agents' connections, and the store if it was opened here."""
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.stop(self._grace)
        for agent in self._house.agents.values():
            await agent.close()
        self._waiting.close()
        if isinstance(self._given, str) and self._store is not None:
            await self._store.close()
            self._store = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Handing out ------------------------------------------------------------------------------------------------

    async def submit(
        self,
        task: Any,
        payload: Any = None,
        *,
        id: str | None = None,
        agent: str | None = None,
        retry_policy: dict[str, Any] | None = None,
        deadline: float | timedelta | str | None = None,
        key: str | None = None,
    ) -> Handle:
        """
        Have a task done. It is on the store when this returns.

        Args:
            task: the capability; or S3's request document (a mapping, JSON, or a `Request`); or the steps of a plan, from
                `sequence`, `fan_out` or `graph`.
            payload: its input.
            id: its id; made up without one. The same request under the same id is the same task.
            agent: which agent; without it the one that has the capability.
            retry_policy: {maxAttempts, backoffType, initialDelay in ms}, in place of the defaults (T8).
            deadline: seconds from now, or an RFC 3339 time.
            key: an idempotency key: requests with the same key are one task.

        Raises:
            FaultError: the request cannot be understood, or nobody has such an agent.
        """
        house = self._house
        record = requested(
            house,
            task,
            payload,
            id=id,
            agent=agent,
            retry_policy=retry_policy,
            deadline=deadline,
            key=key,
        )
        lacking = [step for step in record.steps if not house.has(step)]
        if lacking:
            await Offers(house, self.store).refuse(lacking, worker=self._works)
        found, new = await submit(self.store, house.space, record)
        if new is not None and self._worker is not None:
            self._worker.expect(new)
        return Handle(self, found)

    async def run(self, task: Any, payload: Any = None, **options: Any) -> Response:
        """`submit`, and wait until it is over or needs an answer. What is refused outright is a failed response too."""
        try:
            handle = await self.submit(task, payload, **options)
        except FaultError as error:
            document = task if isinstance(task, Mapping) else {}
            id = options.get("id") or document.get("id")
            name = id if isinstance(id, str) else str(uuid4())
            return Response(id=name, status=Status.FAILED, error=error.fault)
        return await handle.wait()

    # Looking ----------------------------------------------------------------------------------------------------

    def get(self, id: str) -> Handle:
        """The handle of a task that was submitted some time, somewhere."""
        return Handle(self, id)

    async def state(self, id: str) -> TaskState:
        """
        Everything a task's log says.

        Raises:
            TaskNotFoundError: there is no such task.
        """
        return (await known(self.store, self._house.space, id))[0]

    async def records(self, id: str) -> Sequence[Record]:
        """
        A task's log, record by record, for timelines and audits.

        Raises:
            TaskNotFoundError: there is no such task.
        """
        return await records_of(self.store, self._house.space, id)

    async def list(self, status: str | None = None) -> AsyncIterator[Listing]:
        """The tasks of this store, in no promised order; those of one status, if said."""
        async for row in listed(self.store, self._house.space):
            if status is None or row.status == status:
                yield row

    async def wait(self, id: str) -> TaskState:
        """
        A task's state when it is over or needs an answer, whoever works on it.

        Raises:
            TaskNotFoundError: there is no such task.
            StoreClosedError: the orchestrator was closed meanwhile; the task goes on.
        """
        new = self._worker is not None and self._worker.expects(id)
        return await self._waiting.wait(self.store, id, new=new)

    async def drain(self) -> int:
        """Work on everything that is due now, and return; how many messages there were. For tests, and for cron."""
        if self._worker is None:
            await self.start()
        assert self._worker is not None
        return await self._worker.drain()

    # Saying something to a task ---------------------------------------------------------------------------------

    async def cancel(self, id: str) -> Response:
        """Stop a task that is not over: what was done is undone. Of one that is over, nothing changes."""
        return await self._say(id, commands.cancel)

    async def retry(self, id: str) -> Response:
        """
        Try again what failed or was cancelled: what was finished and not undone stays, everything else begins anew.

        Raises:
            FaultError: INVALID_FIELD_VALUE when it did not fail.
        """
        return await self._say(id, commands.retry)

    async def answer(self, id: str, answer: Any, *, step: str | None = None) -> Response:
        """
        What a step asked for.

        Raises:
            FaultError: INVALID_FIELD_VALUE when nothing was asked.
        """
        return await self._say(id, commands.answer, answer=answer, step=step)

    async def verify(
        self, id: str, *, happened: bool, result: Any = None, step: str | None = None
    ) -> Response:
        """
        Whether an interrupted step happened, after somebody looked. If it did, `result` is its result; if not, it
        is tried again.

        Raises:
            FaultError: INVALID_FIELD_VALUE when no step is in doubt.
        """
        return await self._say(id, commands.verify, happened=happened, result=result, step=step)

    async def forget(self, id: str) -> None:
        """
        Remove everything about a task that is over.

        Raises:
            FaultError: INVALID_FIELD_VALUE when it is not.
        """
        state = await self.state(id)
        if not state.over:
            raise InvalidFieldValueError(f"A task that is {state.status} is not forgotten", field="/status")
        await forget(self.store, self._house.space, id)

    async def _say(self, id: str, command: Callable[..., Record | None], **said: Any) -> Response:
        state = await say(
            self.store,
            self._house.space,
            id,
            lambda state: command(state, now=self._house.clock(), **said),
            self._heard,
        )
        return state.response()

    async def _heard(self, id: str) -> bool:
        return self._worker is not None and await self._worker.hear(id)
