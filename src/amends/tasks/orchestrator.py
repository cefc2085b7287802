"""
The orchestrator: submit tasks to agents, work on them, wait for them, and send them commands.

    async with Orchestrator([cooking, calendar], store="sqlite:///tasks.db") as orchestrator:
        response = await orchestrator.run("create_event", {"title": "Dinner"})

By default, tasks are kept in memory. With a durable store, tasks survive the process, and other workers on the same store
continue them.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, TypedDict
from uuid import uuid4

import msgspec

import amends.tasks.commands as task_commands
from amends import stores
from amends.core.policy import Policy
from amends.core.wrong_calls import explains_wrong_calls
from amends.errors.base import FaultError
from amends.errors.task import InvalidFieldValueError
from amends.recovery.policies import TASK
from amends.recovery.scope import earlier, time_left
from amends.stores.contract import Store
from amends.tasks.agent import Agent
from amends.tasks.commands import send_command
from amends.tasks.documents import Metadata, Request, Response, Status, seconds_of
from amends.tasks.entries import Record
from amends.tasks.events import publish_refusal, submit_scope
from amends.tasks.faults import doubtful_fault, failed_task
from amends.tasks.journal import read_existing, read_records, scan_rows
from amends.tasks.maintenance import forget
from amends.tasks.offers import Offers
from amends.tasks.registry import Registry
from amends.tasks.state import TaskRow, TaskState
from amends.tasks.submit import build_submission, submit
from amends.tasks.wait import TaskWaiters
from amends.tasks.worker import Worker

__all__ = ["Handle", "Orchestrator"]

_WEEK = 7 * 86400.0


class Orchestrator:
    """
    Agents, a store, and the tasks on that store. Several processes may share a store; each of them is a worker.

        async with Orchestrator([trains], store="sqlite:///tasks.db") as orchestrator:
            handle = await orchestrator.submit("book", {"train": 7}, key="order-17")
            response = await handle.wait()
    """

    @explains_wrong_calls
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
        prefer: Mapping[str, str] | None = None,
    ) -> None:
        """
        Args:
            agents: the agents of this process; `register` adds more.
            store: an open store, or the URL of one to open: `memory:`, `sqlite:///tasks.db`, `nats://host/name`.
            policy: the recovery policy; by default the retry table of the agent error contract (T7).
            lease: seconds after which a worker that does not answer is considered dead; the same for all workers of a store.
            concurrency: tasks that this process works on at once.
            keep: seconds after which an ended task is forgotten; None: never.
            worker: whether this process works on tasks, or only submits and reads them.
            grace: seconds to wait for running tasks when the orchestrator is closed.
            name: the name of the set of tasks, if one store has several.
            clock: returns wall-clock seconds; for tests.
            prefer: for capabilities that several agents have, the agent to use if a task names none.
        """
        me = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        self._registry = Registry(
            me, space=name, policy=policy, local_clock=clock or time.time, prefer=prefer or {}
        )
        self._registry.register(agents)
        self._given = store
        self._store: Store | None = None if isinstance(store, str) else store
        self._lease, self._concurrency = lease, concurrency
        self._keep = None if keep is None else seconds_of(keep)
        self._works, self._grace = worker, seconds_of(grace)
        self._worker: Worker | None = None
        self._waiters = TaskWaiters(name, worker=worker)

    def register(self, *agents: Agent) -> None:
        """Add agents."""
        self._registry.register(agents)

    @property
    def agents(self) -> Mapping[str, Agent]:
        """The agents of this process by name."""
        return self._registry.agents

    @property
    def store(self) -> Store:
        """The open store."""
        if self._store is None:
            raise RuntimeError("the orchestrator is not open: use `async with`, or await start() first")
        return self._store

    async def start(self) -> None:
        """Open the store and start to work on tasks. `async with` calls this."""
        if self._worker is not None:
            return
        if self._store is None:
            assert isinstance(self._given, str)
            self._store = await stores.open(self._given)
        self._worker = Worker(
            self._registry,
            self._store,
            lease=self._lease,
            concurrency=self._concurrency,
            keep=self._keep,
            maintenance_interval=min(3600.0, self._keep or 3600.0),
            notify=self._waiters.notify,
        )
        if self._works:
            try:
                await self._worker.start()
            except BaseException:
                await self.close()
                raise

    async def close(self) -> None:
        """Stop the worker, close the agents' connections, and close the store if it was opened here."""
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.stop(self._grace)
        for agent in self._registry.agents.values():
            await agent.close()
        self._waiters.close()
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

    # Submitting -------------------------------------------------------------------------------------------------

    async def submit(
        self,
        task: object,
        payload: object = None,
        *,
        id: str | None = None,
        agent: str | None = None,
        retry_policy: dict[str, object] | None = None,
        deadline: float | timedelta | str | None = None,
        key: str | None = None,
    ) -> Handle:
        """
        Submit a task. It is stored when this returns.

        Args:
            task: the name of a capability; or a request document (a mapping, JSON, or a `Request`); or the steps of a plan,
                from `sequence`, `fan_out` or `graph`.
            payload: the input.
            id: the task's id; by default a random one. The same request with the same id is the same task.
            agent: the name of the agent; by default one that has the capability.
            retry_policy: {maxAttempts, backoffType, initialDelay in ms}, overrides the policy (T8).
            deadline: seconds from now, or an RFC 3339 time.
            key: an idempotency key. Requests with the same key are the same task.

        Raises:
            FaultError: the request is invalid, or no worker has such an agent or capability.
        """
        registry = self._registry
        if registry.clock_is_old:
            await registry.synchronize(self.store.queue(registry.space, lease=self._lease))
        try:
            record = build_submission(
                task,
                payload,
                now=registry.clock(),
                id=id,
                agent=agent,
                retry_policy=retry_policy,
                deadline=deadline,
                key=key,
            )
            record = registry.assign(record)
            lacking = registry.lacking(record.steps)
            if lacking:
                await Offers(registry, self.store).require_offered(lacking, worker=self._works)
            store = self.store
            with submit_scope(record) as traced:
                stored, new = await submit(store, registry.space, traced)
        except FaultError as error:
            publish_refusal(error.fault, at=registry.clock(), **_wanted(task, id, agent))
            raise
        return Handle(self, stored, new=new)

    async def run(
        self,
        task: object,
        payload: object = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        **options: Any,
    ) -> Response:
        """
        Submit a task and wait until it is over or needs an answer. A refused request is returned as a failed response.

        Args:
            task: as for `submit`.
            payload: the input.
            timeout: seconds to wait.
            options: as for `submit`.

        Raises:
            WaitTimeoutError: the task is not over after `timeout` seconds. It goes on; the exception has its id.
        """
        try:
            handle = await self.submit(task, payload, **options)
        except FaultError as error:
            wanted = _wanted(task, options.get("id"), options.get("agent"))
            now = self._registry.clock()
            metadata = Metadata(started=now, completed=now, agent=wanted["agent"])
            id = wanted["task"] or str(uuid4())
            return Response(id=id, status=Status.FAILED, error=error.fault, metadata=metadata)
        return (await self._waiters.wait(self.store, handle.id, timeout, new=handle.new)).response()

    # Reading ----------------------------------------------------------------------------------------------------

    def get(self, id: str) -> Handle:
        """The handle of a task that was submitted earlier, by any process."""
        return Handle(self, id)

    async def state(self, id: str) -> TaskState:
        """
        Return the state of a task.

        Raises:
            TaskNotFoundError: there is no such task.
        """
        return (await read_existing(self.store, self._registry.space, id))[0]

    async def records(self, id: str) -> Sequence[Record]:
        """
        Return the records of a task's log, for timelines and audits.

        Raises:
            TaskNotFoundError: there is no such task.
        """
        return await read_records(self.store, self._registry.space, id)

    async def list(self, status: str | None = None) -> AsyncIterator[TaskRow]:
        """Iterate over the tasks of the store in no particular order; only those with `status`, if it is given."""
        async for row in scan_rows(self.store, self._registry.space):
            if status is None or row.status == status:
                yield row

    async def wait(self, id: str, *, timeout: float | None = None) -> TaskState:  # noqa: ASYNC109
        """
        Wait until a task is over or needs an answer, whichever process works on it, and return its state.

        Args:
            id: the task.
            timeout: seconds to wait; less if the caller of the code that waits, or the operation around it, has less time.

        Raises:
            TaskNotFoundError: there is no such task.
            WaitTimeoutError: the task is not over after this time. It goes on.
            StoreClosedError: the orchestrator was closed while this waited; the task goes on.
        """
        return await self._waiters.wait(self.store, id, earlier(timeout, time_left()))

    async def missing_agents(self, id: str) -> Sequence[str]:
        """Return the agents of a task's unfinished steps that neither this process nor a running worker has."""
        state = await self.state(id)
        steps = [step for step in state.head.steps if state.steps[step.name].state != "done"]
        lacking = self._registry.lacking(steps)
        offers = Offers(self._registry, self.store)
        missing = [step for step in lacking if not await offers.offered_elsewhere([step])]
        return list(dict.fromkeys(step.agent or step.type for step in missing))

    async def drain(self) -> int:
        """Work on everything that is due now. Return the number of messages handled. For tests and cron jobs."""
        if self._worker is None:
            await self.start()
        assert self._worker is not None
        return await self._worker.drain()

    # Commands ---------------------------------------------------------------------------------------------------

    async def cancel(self, id: str) -> Response:
        """Cancel a task; its finished steps are undone. A task that is over does not change."""
        return await self._send(id, task_commands.cancel)

    async def retry(self, id: str) -> Response:
        """
        Retry a failed or cancelled task. Steps that finished and were not undone are kept; all others run again.

        Raises:
            FaultError: INVALID_FIELD_VALUE if the task neither failed nor was cancelled.
        """
        return await self._send(id, task_commands.retry)

    async def answer(self, id: str, answer: object, *, step: str | None = None) -> Response:
        """
        Answer the question of a step.

        Raises:
            FaultError: INVALID_FIELD_VALUE if no step asked a question.
        """
        return await self._send(id, task_commands.answer, answer=answer, step=step)

    async def verify(
        self, id: str, *, happened: bool, result: object = None, step: str | None = None
    ) -> Response:
        """
        Record whether an interrupted step happened. If it did, `result` is its result; if not, the step is attempted again.

        Raises:
            FaultError: INVALID_FIELD_VALUE if no step has to be verified.
        """
        return await self._send(id, task_commands.verify, happened=happened, result=result, step=step)

    async def forget(self, id: str) -> None:
        """
        Delete everything that is stored about an ended task.

        Raises:
            FaultError: INVALID_FIELD_VALUE if the task has not ended.
        """
        state = await self.state(id)
        if not state.over:
            raise InvalidFieldValueError(
                f"Only an ended task can be forgotten; this one is {state.status}", field="/status"
            )
        await forget(self.store, self._registry.space, id)

    async def _send(self, id: str, command: Callable[..., Record | None], **arguments: Any) -> Response:
        state = await send_command(
            self.store,
            self._registry.space,
            id,
            lambda state: command(state, now=self._registry.clock(), **arguments),
            self._notify_worker,
        )
        return state.response()

    async def _notify_worker(self, id: str) -> bool:
        return self._worker is not None and await self._worker.read_commands(id)


class _Wanted(TypedDict):
    """What a refused request asked for, as far as it can be read."""

    task: str
    agent: str | None
    capability: str | None


def _wanted(task: object, id: object, agent: object) -> _Wanted:
    """Read what a request names: a document, a Request, or the name of a capability. Any value may be invalid."""
    if isinstance(task, str) and task.lstrip().startswith("{"):
        with suppress(msgspec.DecodeError, UnicodeError):
            task = msgspec.json.decode(task)
    elif isinstance(task, str):
        task = {"type": task}
    elif isinstance(task, Request):
        task = task.document()
    found = task if isinstance(task, Mapping) else {}
    values = (id or found.get("id"), agent or found.get("agent"), found.get("type"))
    names = [value if isinstance(value, str) else None for value in values]
    return {"task": names[0] or "", "agent": names[1], "capability": names[2]}


class Handle:
    """
    One task, whichever process works on it: `Orchestrator.submit` and `Orchestrator.get` return it.

        handle = await orchestrator.submit("book", {"train": 7}, key="order-17")
        response = await handle.wait(timeout=30)
        if response.status is Status.INPUT_REQUIRED:
            await handle.answer("12A")
        ticket = await handle.result()

    The same request again is the same task, and not a new one:

    >>> import asyncio
    >>> from amends.tasks import Agent, Orchestrator
    >>> trains = Agent("trains")
    >>> @trains.capability(read_only=True)
    ... async def search(station: str) -> list[str]:
    ...     return ["09:12"]
    >>> async def example():
    ...     async with Orchestrator([trains]) as orchestrator:
    ...         first = await orchestrator.submit("search", "Ulm", key="order-17")
    ...         again = await orchestrator.submit("search", "Ulm", key="order-17")
    ...         return first.id == again.id, first.new, again.new
    >>> asyncio.run(example())
    (True, True, False)
    """

    def __init__(self, orchestrator: Orchestrator, id: str, *, new: bool = False) -> None:
        self._orchestrator = orchestrator
        self.id = id
        self.new = new
        """Whether `submit` stored a new task; False if the same request, or one with the same key, was there already."""

    def __repr__(self) -> str:
        return f"Handle({self.id!r})"

    async def wait(self, *, timeout: float | None = None) -> Response:  # noqa: ASYNC109
        """
        Wait until the task is over or needs an answer, and return its response. Cancelling the wait does not cancel the task.

        Raises:
            WaitTimeoutError: the task is not over after `timeout` seconds. It goes on.
        """
        return (await self._orchestrator.wait(self.id, timeout=timeout)).response()

    async def response(self) -> Response:
        """The current response, without waiting."""
        return (await self._orchestrator.state(self.id)).response()

    async def result(self, *, timeout: float | None = None) -> Any:  # noqa: ASYNC109
        """
        Wait for the task and return its result.

        Raises:
            WaitTimeoutError: the task is not over after `timeout` seconds. It goes on.
            FaultError: the task failed; the class is the one of the error's code. INTERNAL_ERROR, uncertain, if it waits because a
                step may have happened: find out, and tell `Orchestrator.verify`. INVALID_FIELD_VALUE if it was cancelled or
                needs an answer.
        """
        state = await self._orchestrator.wait(self.id, timeout=timeout)
        response = state.response()
        if response.error is not None:
            raise failed_task(response.error)
        if response.status is Status.INPUT_REQUIRED and state.in_doubt:
            raise FaultError.from_fault(doubtful_fault(state))
        if not response.ok:
            raise InvalidFieldValueError(f"The task is {response.status}", details={"name": "status"})
        return response.result

    async def cancel(self) -> Response:
        """See `Orchestrator.cancel`."""
        return await self._orchestrator.cancel(self.id)

    async def answer(self, answer: object, *, step: str | None = None) -> Response:
        """See `Orchestrator.answer`."""
        return await self._orchestrator.answer(self.id, answer, step=step)
