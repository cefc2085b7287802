"""
Handing tasks to agents, and answering for what becomes of them.

    async with Orchestrator([cooking, calendar], store="sqlite:///tasks.db") as orchestrator:
        response = await orchestrator.run("create_event", {"title": "Dinner"})

Without a store it keeps everything in memory and needs no set-up. With one, tasks survive the process: other workers on the
same store go on with them.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from datetime import timedelta
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import msgspec

from amends import stores
from amends.core.policy import Policy
from amends.errors.base import FaultError
from amends.errors.task import InvalidFieldValueError, InvalidInputError
from amends.recovery.policies import TASK
from amends.stores.contract import Store
from amends.stores.errors import ConflictError
from amends.tasks.agent import Agent
from amends.tasks.documents import ENDED, Request, Response, Status, moment, seconds_of
from amends.tasks.entries import (
    Answered,
    Cancelled,
    Record,
    Retried,
    Submitted,
    Verified,
    decode,
    encode,
    stored,
)
from amends.tasks.house import House
from amends.tasks.journal import Journal, Listing, log_name, read
from amends.tasks.plan import Step
from amends.tasks.state import TaskState
from amends.tasks.submitting import submit
from amends.tasks.sweeping import forget
from amends.tasks.worker import Worker, announced

__all__ = ["Handle", "Orchestrator", "TaskNotFoundError"]

_FRESH = 10_000
_WEEK = 7 * 86400.0
_LOCAL = (0.1, 0.5)
"""Seconds in which a task is most likely done by this very process; the longer ones when many are waited for."""
_LOOK = (0.5, 2.0)
"""Seconds between looks at a task another process works on, at first and at most, when too many are followed already."""
_FOLLOWED = 16
_WAITS = frozenset({*ENDED, Status.INPUT_REQUIRED})


class TaskNotFoundError(LookupError):
    """There is no task of that id on this store."""


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
        self._waiting: dict[str, set[asyncio.Future[TaskState]]] = {}
        self._following = 0

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
            ended=self._ended,
        )
        if self._works:
            await self._worker.start()

    async def close(self) -> None:
        """Stop working, close the agents' connections, and the store if it was opened here."""
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.stop(self._grace)
        for agent in self._house.agents.values():
            await agent.close()
        for waiting in [each for group in self._waiting.values() for each in group]:
            if not waiting.done():
                waiting.set_exception(stores.StoreClosedError("of this orchestrator"))
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
        now = self._house.clock()
        if isinstance(task, tuple | list):
            record = self._plan(tuple(task), now)
        else:
            record = self._single(task, payload, now, agent)
        changes: dict[str, Any] = {"id": id or record.id or str(uuid4())}
        if retry_policy is not None:
            changes["retry_policy"] = retry_policy
        if deadline is not None:
            changes["until"] = _until(deadline, now)
        if key is not None:
            changes["key"] = key
        record = msgspec.structs.replace(record, **changes)
        await self._offered(record)
        found, new = await submit(self.store, self._house.space, record)
        if new is not None and self._worker is not None and self._worker.serving:
            fresh = self._worker.fresh
            fresh[found] = (new, 1)
            if len(fresh) > _FRESH:
                del fresh[next(iter(fresh))]  # another process has taken it, most likely
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

    def _single(self, task: Any, payload: Any, now: float, agent: str | None) -> Submitted:
        if isinstance(task, str) and not task.lstrip().startswith("{"):
            request = Request(id="", type=task, payload=payload, agent=agent)
        else:
            request = Request.read(task)
        step = Step(
            name=request.type.replace(">", "") or "step",
            type=request.type,
            payload=_kept(request.payload),
            agent=agent or request.agent or self._agent_for(request.type),
        )
        return Submitted(
            at=now,
            id=request.id,
            type=request.type,
            steps=(step,),
            agent=step.agent,
            retry_policy=request.retry_policy,
            until=moment(request.deadline),
            key=request.idempotency_key,
        )

    def _agent_for(self, type: str) -> str | None:
        try:
            return self._house.agent_for(type, None).name
        except FaultError:
            return None  # perhaps another process has it

    def _plan(self, steps: tuple[Any, ...], now: float) -> Submitted:
        from amends.tasks.plan import graph

        if not all(isinstance(step, Step) for step in steps):
            raise TypeError("a plan consists of Steps: use sequence(), fan_out() or graph()")
        checked = tuple(
            msgspec.structs.replace(
                step, payload=_kept(step.payload), agent=step.agent or self._agent_for(step.type)
            )
            for step in graph(steps)
        )
        return Submitted(at=now, id="", type="plan", steps=checked, single=False)

    async def _offered(self, record: Submitted) -> None:
        """Refuse at once what nobody could do, here or in any living worker."""
        others: list[dict[str, list[str]]] | None = None
        for step in record.steps:
            try:
                self._house.agent_for(step.type, step.agent)
            except FaultError:
                if others is None:
                    others = await announced(self.store, self._house.space)
                if not others and not self._works:
                    return  # nobody is up yet; the first worker will see
                known = {name for offered in others for name in offered}
                if not any(
                    step.type in types
                    for offered in others
                    for name, types in offered.items()
                    if step.agent in {None, name}
                ) and (step.agent is None or step.agent not in known or step.agent in self._house.agents):
                    raise
                if step.agent in known and not any(
                    step.type in each.get(step.agent or "", ()) for each in others
                ):
                    from amends.errors.task import CapabilityNotFoundError

                    raise CapabilityNotFoundError(
                        details={"agent": step.agent, "capability": step.type}
                    ) from None

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
        found = await read(self.store, self._house.space, id)
        if found is None:
            raise TaskNotFoundError(f"there is no task {id!r} on {self.store.url}")
        return found[0]

    async def records(self, id: str) -> Sequence[Record]:
        """
        A task's log, record by record, for timelines and audits.

        Raises:
            TaskNotFoundError: there is no such task.
        """
        log, start = self.store.log(log_name(self._house.space, id)), 1
        found: list[Record] = []
        while page := await log.read(start):
            for entry in page:
                found += decode(entry.value)
            start = page[-1].seq + 1
        if not found:
            raise TaskNotFoundError(f"there is no task {id!r} on {self.store.url}")
        return found

    async def list(self, status: str | None = None) -> AsyncIterator[Listing]:
        """The tasks of this store, in no promised order; those of one status, if said."""
        async for row in self.store.table(self._house.space).scan():
            try:
                listed = msgspec.json.decode(row.value, type=Listing)
            except msgspec.MsgspecError:
                continue
            if status is None or listed.status == status:
                yield listed

    async def drain(self) -> int:
        """Work on everything that is due now, and return; how many messages there were. For tests, and for cron."""
        if self._worker is None:
            await self.start()
        assert self._worker is not None
        return await self._worker.drain()

    # Saying something to a task ---------------------------------------------------------------------------------

    async def cancel(self, id: str) -> Response:
        """Stop a task that is not over: what was done is undone. Of one that is over, nothing changes."""

        def command(state: TaskState) -> Record | None:
            return None if state.over or state.cancelled else Cancelled(at=self._house.clock())

        return await self._say(id, command)

    async def retry(self, id: str) -> Response:
        """
        Try again what failed or was cancelled: what was finished and not undone stays, everything else begins anew.

        Raises:
            FaultError: INVALID_FIELD_VALUE when it did not fail.
        """

        def command(state: TaskState) -> Record | None:
            if state.status not in {Status.FAILED, Status.CANCELLED}:
                raise InvalidFieldValueError(
                    f"A task that is {state.status} is not tried again", field="/status"
                )
            return Retried(at=self._house.clock())

        return await self._say(id, command)

    async def answer(self, id: str, answer: Any, *, step: str | None = None) -> Response:
        """
        What a step asked for.

        Raises:
            FaultError: INVALID_FIELD_VALUE when nothing was asked.
        """

        def command(state: TaskState) -> Record | None:
            name = _only(state, "asking", step)
            return Answered(at=self._house.clock(), step=name, answer=_kept(answer))

        return await self._say(id, command)

    async def verify(
        self, id: str, *, happened: bool, result: Any = None, step: str | None = None
    ) -> Response:
        """
        Whether an interrupted step happened, after somebody looked. If it did, `result` is its result; if not, it
        is tried again.

        Raises:
            FaultError: INVALID_FIELD_VALUE when no step is in doubt.
        """

        def command(state: TaskState) -> Record | None:
            name = _only(state, "doubt", step)
            return Verified(at=self._house.clock(), step=name, happened=happened, result=_kept(result))

        return await self._say(id, command)

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

    async def _say(self, id: str, command: Callable[[TaskState], Record | None]) -> Response:
        """Append what somebody outside says, behind exactly the state it was said about; then ring."""
        space = self._house.space
        while True:
            found = await read(self.store, space, id)
            if found is None:
                raise TaskNotFoundError(f"there is no task {id!r} on {self.store.url}")
            state, last = found
            record = command(state)
            if record is None:
                return state.response()
            try:
                seq = await self.store.log(log_name(space, id)).append(encode([record]), last=last)
            except ConflictError:
                continue
            state.apply([record])
            await Journal(self.store, space, id, state, seq).list()
            if self._worker is None or not await self._worker.hear(id):
                await self.store.queue(space).put(id.encode(), key=f"{id}!{seq}")
            return state.response()

    # Waiting ----------------------------------------------------------------------------------------------------

    def _ended(self, state: TaskState) -> None:
        for waiting in self._waiting.get(state.head.id, ()):
            if not waiting.done():
                waiting.set_result(state)

    async def wait(self, id: str) -> TaskState:
        """
        A task's state when it is over or needs an answer, whoever works on it.

        Raises:
            TaskNotFoundError: there is no such task.
            StoreClosedError: the orchestrator was closed meanwhile; the task goes on.
        """
        state = await self.state(id) if self._worker is None or id not in self._worker.fresh else None
        waits = iter((_LOCAL[len(self._waiting) > _FOLLOWED],))
        pause = _LOOK[0]
        while state is None or not _at_rest(state):
            future: asyncio.Future[TaskState] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(id, set()).add(future)
            try:
                local = next(waits, None) if self._works else None
                if local is None and (not self._works or self._following < _FOLLOWED):
                    state = await self._either(future, id)
                else:
                    # At first because this process does it most likely; then because too many are followed already.
                    await asyncio.wait([future], timeout=local or pause)
                    if local is None:
                        pause = min(pause * 2, _LOOK[1])
                    state = future.result() if future.done() else await self.state(id)
            finally:
                self._waiting[id].discard(future)
                if not self._waiting[id]:
                    del self._waiting[id]
        return state

    async def _either(self, future: asyncio.Future[TaskState], id: str) -> TaskState:
        """Done here, or done by its log: whichever comes first."""
        self._following += 1
        follow = asyncio.ensure_future(self._followed(id))
        try:
            await asyncio.wait([future, follow], return_when=asyncio.FIRST_COMPLETED)
            return future.result() if future.done() else follow.result()
        finally:
            self._following -= 1
            if not follow.done():
                follow.cancel()
                await asyncio.wait([follow])

    async def _followed(self, id: str) -> TaskState:
        """A task's state when its log says that it is over or needs an answer."""
        space = self._house.space
        found = await read(self.store, space, id)
        if found is None:
            raise TaskNotFoundError(f"there is no task {id!r} on {self.store.url}")
        state, last = found
        if _at_rest(state):
            return state
        following: Any = self.store.log(log_name(space, id)).follow(last + 1)
        async with aclosing(following):
            async for entry in following:
                state.apply(decode(entry.value))
                if _at_rest(state):
                    break
        return state


def _at_rest(state: TaskState) -> bool:
    return state.status in _WAITS and not state.heard


def _kept(value: Any) -> Any:
    """A value as the log gives it back; one that cannot be written there is the caller's mistake."""
    try:
        return stored(value)
    except (TypeError, ValueError, msgspec.MsgspecError):
        raise InvalidInputError("What was given cannot be written as JSON") from None


def _until(deadline: float | timedelta | str, now: float) -> float:
    if isinstance(deadline, str):
        at = moment(deadline)
        if at is None:
            raise InvalidFieldValueError("A deadline is an RFC 3339 time", field="/deadline")
        return at
    return now + seconds_of(deadline)


def _only(state: TaskState, wanted: str, step: str | None) -> str:
    """The step that is meant: the one named, or the first that waits for such a thing."""
    names = [name for name, each in state.steps.items() if each.state == wanted and step in {None, name}]
    if not names:
        what = "asked for anything" if wanted == "asking" else "is in doubt"
        raise InvalidFieldValueError(f"No such step {what}", field="/step", details={"name": "step"})
    return names[0]


class Handle:
    """One task, wherever it is worked on."""

    def __init__(self, orchestrator: Orchestrator, id: str) -> None:
        self._orchestrator = orchestrator
        self.id = id

    def __repr__(self) -> str:
        return f"Handle({self.id!r})"

    async def wait(self) -> Response:
        """The response, when the task is over or needs an answer. Cancelling the wait does not cancel the task."""
        return (await self._orchestrator.wait(self.id)).response()

    async def response(self) -> Response:
        """The response as of now."""
        return (await self._orchestrator.state(self.id)).response()

    async def result(self) -> Any:
        """
        The result.

        Raises:
            FaultError: why there is none; TimeoutError and its like by their own classes.
        """
        response = await self.wait()
        if response.error is not None:
            raise FaultError.from_fault(response.error)
        if not response.ok:
            raise InvalidFieldValueError(f"The task is {response.status}", details={"name": "status"})
        return response.result

    async def cancel(self) -> Response:
        """See `Orchestrator.cancel`."""
        return await self._orchestrator.cancel(self.id)

    async def answer(self, answer: Any, *, step: str | None = None) -> Response:
        """See `Orchestrator.answer`."""
        return await self._orchestrator.answer(self.id, answer, step=step)
