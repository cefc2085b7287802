"""`Runtime`: serves connections, runs agents, and keeps its state in a store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import timedelta
from itertools import islice
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from amends import stores
from amends.arcp.leases import read as read_lease
from amends.arcp.runtime.agents import AgentLimits, Agents
from amends.arcp.runtime.credentials.provider import CredentialProvider
from amends.arcp.runtime.jobs.job import Job
from amends.arcp.runtime.jobs.outcome import in_doubt
from amends.arcp.runtime.limits import Limits
from amends.arcp.runtime.node import Node
from amends.arcp.runtime.server.auth import Authenticate, authenticator
from amends.arcp.runtime.server.session import Session
from amends.arcp.tokens import environment_tokens
from amends.arcp.transports import Connection
from amends.arcp.wire.messages import Bye
from amends.core.policy import Policy
from amends.core.wrong_calls import explains_wrong_calls
from amends.errors.arcp import InvalidRequestError
from amends.logs import logger
from amends.stores import ConflictError, Store, StoreError

__all__ = ["Runtime"]

_log = logger("amends.arcp")

Function = TypeVar("Function", bound=Callable[..., Any])


_DEFAULT_LEASE = {"tool.call": ["**"]}
_SHOWN = 5
"""Jobs that are named in the log while `stop` waits for them."""


class Runtime:
    """
    Runs agents for clients of the Agent Runtime Control Protocol.

        runtime = Runtime(tokens={"secret": "alice"})
        runtime.register_agent("echo", echo)

        async with runtime, runtime.listen("127.0.0.1", 7777):
            ...

    Args:
        store: where sessions and jobs are stored: a URL (`sqlite:///jobs.db`, `nats://…`), an open store, which the
            runtime does not close, or None for memory.
        tokens: a mapping from bearer token to principal, or tokens alone. By default the token in AMENDS_RUNTIME_TOKEN.
        authenticate: a function from bearer token to principal or None, instead of `tokens`.
        name: the runtime's name, which clients see in the welcome.
        limits: the limits of this runtime.
        may_observe: whether one principal may see another's jobs: `(observer, owner) -> bool`. Without it, principals
            see only their own jobs.
        credentials: issues credentials for jobs. Without it, the feature is not offered.
        default_lease: the lease of a job that is submitted without one: capability → patterns. By default it may call every
            tool and nothing else. A lease that a submission requests is closed: what it does not name is denied.
        anonymous: whether clients without a token are accepted, all as the principal `anonymous`.

    """

    @explains_wrong_calls
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
        default_lease: Mapping[str, Sequence[str]] | None = None,
        anonymous: bool = False,
    ) -> None:
        self.name = name
        self.limits = limits or Limits()
        self._store = store
        if tokens is None and authenticate is None:
            tokens = environment_tokens() or None
        self._authenticators = [authenticator(tokens, authenticate)]
        self._may_observe = may_observe
        self._provider = credentials
        if not isinstance(anonymous, bool):
            raise TypeError(f"anonymous={anonymous!r}: give True or False")
        self._anonymous = anonymous
        default = _DEFAULT_LEASE if default_lease is None else default_lease
        try:
            self._default_lease = read_lease(default, now=0.0)
        except InvalidRequestError as error:
            raise ValueError(f"default_lease={default!r}: {(error.details or {}).get('reason')}") from error
        self._agents = Agents()
        self._node: Node | None = None
        self._opened: Store | None = None

    @overload
    def register_agent(
        self,
        name: str,
        function: Function,
        *,
        version: str = ...,
        default: bool | None = ...,
        repeatable: bool = ...,
        concurrency: int | None = ...,
        rate: tuple[int, float | timedelta] | None = ...,
        time_limit: float | timedelta | None = ...,
        priority: int = ...,
        retry: Policy | None = ...,
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
        concurrency: int | None = ...,
        rate: tuple[int, float | timedelta] | None = ...,
        time_limit: float | timedelta | None = ...,
        priority: int = ...,
        retry: Policy | None = ...,
    ) -> Callable[[Function], Function]: ...

    def register_agent(
        self,
        name: str,
        function: Function | None = None,
        *,
        version: str = "1.0.0",
        default: bool | None = None,
        repeatable: bool = False,
        concurrency: int | None = None,
        rate: tuple[int, float | timedelta] | None = None,
        time_limit: float | timedelta | None = None,
        priority: int = 0,
        retry: Policy | None = None,
    ) -> Function | Callable[[Function], Function]:
        """
        Register a function as an agent. Without `function`, return a decorator.

        Args:
            name: the name that clients submit jobs to.
            function: `async def (input, ctx)` that returns the result, or an async generator that yields its chunks.
            version: the agent's version; clients can request it as `name@version`.
            default: whether a name without a version means this version; by default, the first registered one.
            repeatable: whether the function may run twice for one job. If so, a job runs again after its node died.
                Otherwise such a job fails in doubt.
            concurrency: how many jobs of this agent this node runs at once. Further ones wait in its queue.
            rate: how many jobs of it this node starts in how many seconds: `(10, 60)`.
            time_limit: the seconds after which a job of it ends with TIMEOUT, whatever its submission asks for.
            priority: from -100 to 100. While jobs wait for a place, those of the agent with the highest one start first.
            retry: how often a run that failed is repeated before the job ends, after which wait, and for which codes
                (`Policy(attempts=1, rules={"INTERNAL_ERROR": Rule(attempts=3)})`). Only a run is repeated that had no effect
                (`executed="no"`), or that began steps and all of them have ended, or whose agent is `repeatable`; never
                one that streamed a part of its result.

        Raises:
            TypeError, ValueError: an option has a wrong value.

        """
        limits = AgentLimits.of(
            concurrency=concurrency, rate=rate, time_limit=time_limit, priority=priority, retry=retry
        )

        def add(function: Function) -> Function:
            self._agents.add(
                name, function, version=version, default=default, repeatable=repeatable, limits=limits
            )
            if self._node is not None:
                self._node.tasks.spawn(self._node.membership.announce())
            return function

        return add if function is None else add(function)

    def accept_tokens(self, tokens: Mapping[str, str]) -> None:
        """
        Accept further bearer tokens, beside those that the runtime was created with.

        >>> Runtime(tokens={"secret": "alice"}).accept_tokens({"other": "bob"})

        Args:
            tokens: a mapping from bearer token to principal.

        """
        self._authenticators.insert(0, authenticator(tokens, None))

    async def _authenticate(self, token: str) -> str | None:
        for authenticate in list(self._authenticators):
            principal = await authenticate(token)
            if principal is not None:
                return principal
        return None

    # -- lifecycle

    @property
    def running(self) -> bool:
        """Whether the runtime was started and not stopped since."""
        return self._node is not None

    async def start(self) -> None:
        """Open the store, register this node in it, and start the background tasks."""
        if self._node is not None:
            raise RuntimeError("the runtime is already started")
        if self._store is None or isinstance(self._store, str):
            store = self._opened = await stores.open(self._store or "memory:")
        else:
            store = self._store
        node = Node(
            store,
            name=self.name,
            agents=self._agents,
            limits=self.limits,
            # A store that was passed in may also be used by another runtime of this process.
            exclusive=self._opened is not None and store.traits.exclusive,
            authenticate=self._authenticate,
            may_observe=self._may_observe,
            provider=self._provider,
            default_lease=self._default_lease,
            anonymous=self._anonymous,
        )
        try:
            await node.start()
        except BaseException:
            await self._close()
            raise
        self._node = node

    async def stop(self, drain: float | None = None) -> None:
        """
        Stop the runtime: take no more jobs, wait for running jobs up to `drain` seconds, then stop the rest.

        `drain` is `Limits.drain` by default. A job that is stopped goes back into its queue if its agent is repeatable
        and the store is shared; otherwise it ends in doubt.
        """
        node = self._node
        if node is None:
            return
        await node.stop_dispatch()
        deadline = node.tasks.loop.time() + (self.limits.drain if drain is None else drain)
        await _wait_for_jobs(node, deadline)
        await self._stop_jobs(node)
        # At the same time: a client that is gone takes seconds.
        await asyncio.gather(*map(_dismiss, list(node.sessions.attached.values())))
        await self._halt(node)
        with suppress(StoreError):
            await node.membership.withdraw()
        await self._close()

    async def _stop_jobs(self, node: Node) -> None:
        # Jobs that are ending only have to write their end.
        jobs = [job for job in node.jobs if job.is_running]
        requeued = [job for job in jobs if job.spec.repeatable and not node.exclusive]
        for job in jobs:
            if job not in requeued:
                job.stop(in_doubt("The runtime was stopped; the job may have had its effect"))
        await self._requeue(node, requeued)
        await _wait_for_jobs(node, node.tasks.loop.time() + self.limits.cancel_grace + 5.0)

    async def _requeue(self, node: Node, jobs: list[Job]) -> None:
        """Put jobs back into their queues, after their agents have stopped, so that no job runs twice at a time."""
        tasks = [job.task for job in jobs if job.task is not None and not job.task.done()]
        for job in jobs:
            job.drop()
        if tasks:
            await asyncio.wait(tasks, timeout=self.limits.cancel_grace)
        for job in jobs:
            # If this fails, another node takes the job over after this node's row is deleted.
            with suppress(StoreError, ConflictError):
                tail = await node.ledger.tail(job.spec.job_id)
                if tail is not None and (tail[1].epoch, tail[1].node) == (job.epoch, node.id):
                    await node.ledger.requeue(job.spec, tail)

    async def abandon(self) -> None:
        """Stop at once and write nothing, as if the process had crashed; for tests."""
        if self._node is not None:
            await self._halt(self._node)
            await self._close()

    async def _halt(self, node: Node) -> None:
        self._node = None
        await node.halt()

    async def _close(self) -> None:
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    async def __aenter__(self) -> Self:
        """Start the runtime."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the runtime; see `stop`."""
        await self.stop()

    @property
    def agents(self) -> list[str]:
        """The registered agents, as `name@version`."""
        return [agent.ref for agent in self._agents.all()]

    @property
    def shared(self) -> bool:
        """Whether other processes can use the same store."""
        return self._store not in {None, "memory:"} if isinstance(self._store, str | None) else True

    @property
    def node(self) -> Node | None:
        """The parts of the running runtime, for monitoring; None while it is stopped."""
        return self._node

    # -- connections

    def serve(self, connection: Connection) -> Coroutine[Any, Any, None]:
        """Serve one connection until it ends. Transports call and await this."""
        return _refuse(connection) if self._node is None else self._node.server.serve(connection)

    def listen(
        self, host: str = "127.0.0.1", port: int = 7777, **options: Any
    ) -> AbstractAsyncContextManager[Any]:
        """Serve WebSocket connections; see `amends.arcp.transports.websocket.serve`."""
        from amends.arcp.transports import websocket

        return websocket.serve(self, host, port, **options)


async def _refuse(connection: Connection) -> None:
    await connection.close(1013, "")
    raise RuntimeError("start the runtime first: `async with runtime:`")


async def _dismiss(session: Session) -> None:
    session.send_message("session.bye", Bye("the runtime stops"))
    await session.wait_until_flushed(1.0)
    await session.drop()


async def _wait_for_jobs(node: Node, deadline: float) -> None:
    """Wait until no job runs on this node or the deadline has passed."""
    now = node.tasks.loop.time()
    if node.jobs and deadline > now:
        _log.info(
            "closing: waiting up to %.1f s for %d jobs: %s",
            deadline - now,
            len(node.jobs),
            ", ".join(f"{job.spec.job_id} of {job.spec.agent}" for job in islice(node.jobs, _SHOWN)),
        )
    while node.jobs and (left := deadline - node.tasks.loop.time()) > 0:
        tasks = [job.task for job in node.jobs if job.task is not None and not job.task.done()]
        # A job whose agent did not stop has no task to wait for; it ends after one write.
        await (asyncio.wait(tasks, timeout=min(left, 0.1)) if tasks else asyncio.sleep(min(left, 0.01)))
