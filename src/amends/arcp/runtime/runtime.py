"""The runtime: agents on one side, connections on the other, a store underneath."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from amends import stores
from amends.arcp.runtime import connection as connections
from amends.arcp.runtime.agents import Agents
from amends.arcp.runtime.auth import Authenticate, authenticator
from amends.arcp.runtime.credential_lifecycle import Issued
from amends.arcp.runtime.credentials import CredentialProvider
from amends.arcp.runtime.dispatch import dispatch, rest
from amends.arcp.runtime.entries import NODES
from amends.arcp.runtime.heartbeat import beat
from amends.arcp.runtime.job import RUNNING, Job
from amends.arcp.runtime.limits import Limits
from amends.arcp.runtime.maintenance import heartbeat, in_doubt, inherit, listen, maintain
from amends.arcp.runtime.node import Node
from amends.arcp.transports import Connection
from amends.arcp.wire.messages import Bye
from amends.stores import ConflictError, Store, StoreError

__all__ = ["Runtime"]

_log = logging.getLogger("amends.arcp")

Function = TypeVar("Function", bound=Callable[..., Any])

_LOOK = {"memory": 0.02, "sqlite": 0.05}
"""How often a store that others share, and that cannot call, is looked at."""
_LOOK_ELSEWHERE = 5.0
_DISPATCH = 0


class Runtime:
    """
    Runs agents for clients of the Agent Runtime Control Protocol.

        runtime = Runtime(tokens={"secret": "alice"})
        runtime.register_agent("echo", echo)

        async with runtime, runtime.listen("127.0.0.1", 7777):
            ...

    Args:
        store: where everything is kept: a URL (`sqlite:///jobs.db`, `nats://…`), an open store (which stays open), or
            None for memory.
        tokens: from bearer token to principal, or tokens alone.
        authenticate: a function from bearer token to principal or None, instead of a table.
        name: what the runtime calls itself.
        limits: every bound there is.
        may_observe: whether one principal may see another's jobs: `(observer, owner) -> bool`. Nobody may, without it.
        credentials: mints credentials for jobs. Without one the feature is not offered.

    """

    def __init__(
        self,
        store: str | Store | None = None,
        *,
        tokens: Mapping[str, str] | Iterable[str] | str | None = None,
        authenticate: Authenticate | None = None,
        name: str = "amends",
        limits: Limits | None = None,
        may_observe: Callable[[str, str], bool | Awaitable[bool]] | None = None,
        credentials: CredentialProvider | None = None,
    ) -> None:
        self.name = name
        self.limits = limits or Limits()
        self._where = store
        self._authenticate = authenticator(tokens, authenticate)
        self._may_observe = may_observe
        self._provider = credentials
        self._agents = Agents()
        self._node: Node | None = None
        self._own: Store | None = None
        self._duties: list[asyncio.Task[None]] = []

    @overload
    def register_agent(
        self,
        name: str,
        function: Function,
        *,
        version: str = ...,
        default: bool | None = ...,
        repeatable: bool = ...,
    ) -> Function: ...

    @overload
    def register_agent(
        self,
        name: str,
        function: None = ...,
        *,
        version: str = ...,
        default: bool | None = ...,
        repeatable: bool = ...,
    ) -> Callable[[Function], Function]: ...

    def register_agent(
        self,
        name: str,
        function: Function | None = None,
        *,
        version: str = "1.0.0",
        default: bool | None = None,
        repeatable: bool = False,
    ) -> Function | Callable[[Function], Function]:
        """
        Offer a function to clients; without one, a decorator.

        Args:
            name: what clients ask for.
            function: `async def (input, ctx)` whose return value is the result, or an async generator of chunks of it.
            version: clients may pin it: `name@version`.
            default: what a bare name means; the first version registered, unless said otherwise.
            repeatable: running it twice does no harm: a job whose node died is run again. Otherwise such a job fails,
                in doubt.

        """

        def add(function: Function) -> Function:
            self._agents.add(name, function, version=version, default=default, repeatable=repeatable)
            if self._node is not None:
                self._node.spawn(self._node.announce())
            return function

        return add if function is None else add(function)

    # -- life

    @property
    def running(self) -> bool:
        """Whether it was started and not stopped since."""
        return self._node is not None

    async def start(self) -> None:
        """Open the store and begin to work."""
        if self._node is not None:
            raise RuntimeError("the runtime has been started")
        if self._where is None or isinstance(self._where, str):
            store = self._own = await stores.open(self._where or "memory:")
        else:
            store = self._where
        alone = self._own is not None and self._where in {None, "memory:"}
        issued = None if self._provider is None else Issued(self._provider)
        node = Node(
            store,
            name=self.name,
            agents=self._agents,
            limits=self.limits,
            alone=alone,
            authenticate=self._authenticate,
            may_observe=self._may_observe,
            credentials=issued,
        )
        if issued is not None:
            issued.use(node)
        try:
            await node.announce()
            if not alone:
                await inherit(node)
        except BaseException:
            await self._close()
            raise
        self._node = node
        every = None if alone else _LOOK.get(store.url.partition(":")[0], _LOOK_ELSEWHERE)
        duties = [
            partial(dispatch, node, every),
            partial(beat, node),
            partial(heartbeat, node),
            partial(maintain, node),
        ]
        if every is not None:
            duties.append(partial(listen, node, every))
        self._duties = [node.duty(duty) for duty in duties]

    async def stop(self, drain: float | None = None) -> None:
        """
        End: take nothing more, let running jobs finish for a while (`limits.drain`), then stop them.

        A job that has to be stopped goes back into its queue where its agent is repeatable and others can take it;
        else it ends in doubt.
        """
        node = self._node
        if node is None:
            return
        await rest(node, self._duties[_DISPATCH])
        deadline = node.loop.time() + (self.limits.drain if drain is None else drain)
        await _until(node, deadline)
        await self._stop_jobs(node)
        for session in list(node.sessions.attached.values()):
            session.say("session.bye", Bye("the runtime stops"))
            await session.flushed(1.0)
            await node.drop(session)
        await self._halt(node)
        with suppress(StoreError):
            await node.store.table(NODES).delete(node.id)
        await self._close()

    async def _stop_jobs(self, node: Node) -> None:
        # One that is just ending has nothing left to do but to be written.
        jobs = [job for job in node.jobs.values() if job.phase is RUNNING]
        back = [job for job in jobs if job.order.repeatable and not node.alone]
        for job in jobs:
            if job not in back:
                job.stop(in_doubt("The runtime was stopped; the job may have had its effect"))
        await self._give_back(node, back)
        await _until(node, node.loop.time() + self.limits.cancel_grace + 5.0)

    async def _give_back(self, node: Node, jobs: list[Job]) -> None:
        """Put jobs back into their queues: their agents stop first, so that nobody begins beside them."""
        tasks = [job.task for job in jobs if job.task is not None and not job.task.done()]
        for job in jobs:
            job.lost()
        if tasks:
            await asyncio.wait(tasks, timeout=self.limits.cancel_grace)
        for job in jobs:
            # What cannot be put back now is taken over when this node is gone.
            with suppress(StoreError, ConflictError):
                tail = await node.ledger.tail(job.order.job_id)
                if tail is not None and (tail[1].epoch, tail[1].node) == (job.epoch, node.id):
                    await node.ledger.requeue(job.order, tail)

    async def abandon(self) -> None:
        """Stop at once and write nothing: to others it looks like a crash. For tests of what comes after one."""
        if self._node is not None:
            await self._halt(self._node)
            await self._close()

    async def _halt(self, node: Node) -> None:
        self._node = None
        node.closed = node.draining = True
        for task in list(node.tasks):
            task.cancel()
        if node.tasks:
            await asyncio.wait(list(node.tasks), timeout=5.0)
        for session in list(node.sessions.attached.values()):
            await session.connection.close(1001, "")

    async def _close(self) -> None:
        if self._own is not None:
            await self._own.close()
            self._own = None

    async def __aenter__(self) -> Self:
        """Start."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; what is left of the jobs gets its grace."""
        await self.stop()

    @property
    def agents(self) -> list[str]:
        """What it offers: `name@version`."""
        return [agent.ref for agent in self._agents.all()]

    @property
    def shared(self) -> bool:
        """Whether others can have its store too."""
        return self._where not in {None, "memory:"} if isinstance(self._where, str | None) else True

    @property
    def node(self) -> Node | None:
        """What its parts share while it runs; for those who look on."""
        return self._node

    # -- connections

    async def serve(self, connection: Connection) -> None:
        """Run one connection to its end. Transports call it."""
        if self._node is None:
            await connection.close(1013, "")
            raise RuntimeError("start the runtime first: `async with runtime:`")
        await connections.serve(self._node, connection)

    def listen(
        self, host: str = "127.0.0.1", port: int = 7777, **options: Any
    ) -> AbstractAsyncContextManager[Any]:
        """Serve WebSocket connections; see `amends.arcp.transports.websocket.serve`."""
        from amends.arcp.transports import websocket

        return websocket.serve(self, host, port, **options)


async def _until(node: Node, deadline: float) -> None:
    """Wait for the jobs that run here to end, but not beyond a time."""
    while node.jobs and (left := deadline - node.loop.time()) > 0:
        tasks = [job.task for job in node.jobs.values() if job.task is not None and not job.task.done()]
        # One whose agent was given up has no task to wait for; it ends within a write.
        await (asyncio.wait(tasks, timeout=min(left, 0.1)) if tasks else asyncio.sleep(min(left, 0.01)))
