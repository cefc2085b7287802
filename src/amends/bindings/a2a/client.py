"""
`Client`: the SDK's client, whose calls raise typed errors and recover by policy.

- A task that failed, a JSON-RPC error, a failed HTTP answer, a dead, silent or babbling server: each is a FaultError of its
  code, with `.fault`, `.decision` and `.history`.
- A message is sent again only where it surely had no effect, or where the agent is known to take the same message
  twice for one (`repeatable`). The protocol lets agents do that by the message's id and asks none to, so nobody
  is trusted with it unasked.
- A stream that breaks is taken up where the agent is: by the task's id, with GetTask and SubscribeToTask. A response that
  is lost is looked for by the task or the context that the message named.
- What has been handed on is not taken back: once a piece of content has, the message is not sent again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace as with_changes
from typing import Any
from uuid import uuid4

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client import Client as SdkClient
from a2a.client.client import ClientCallContext
from a2a.client.interceptors import ClientCallInterceptor
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
)

from amends.bindings.a2a.faults import Progress, failure
from amends.bindings.a2a.hearing import HEARD, Heard, http_client_of, listen
from amends.bindings.a2a.waiting import Clock, Events
from amends.core.decision import decide
from amends.core.operation import Operation
from amends.core.policy import DEFAULT, Policy
from amends.errors.base import FaultError
from amends.recovery.clock import CLOCK
from amends.recovery.drivers import arecover
from amends.recovery.scope import current_operation
from amends.recovery.streams import arecover_stream
from amends.recovery.upstream import Upstream

__all__ = ["Client"]

_READ = Operation(name="a2a", read_only=True)
_SAME = Operation(name="a2a", idempotent=True)
_UNSAFE = Operation(name="a2a")
_SENT = Operation(name="a2a send_message")
_REPEATED = Operation(name="a2a send_message", idempotent=True)

_CONNECT = 10.0
"""Seconds to get a connection; nothing has been sent until then."""
_HISTORY = 100
"""Messages of each task among which a lost one is looked for."""
_FIRST_LOOK, _LAST_LOOK = 0.5, 5.0
"""Seconds between two looks at a task that is still at work."""


class Client(SdkClient):
    """The SDK's client for one agent, with recovery. Use it with `async with`."""

    def __init__(
        self,
        agent: str | AgentCard | SdkClient,
        *,
        config: ClientConfig | None = None,
        interceptors: Sequence[ClientCallInterceptor] = (),
        policy: Policy = DEFAULT,
        upstream: Upstream | None = None,
        timeout: float = 120.0,
        repeatable: bool | Callable[[SendMessageRequest], bool] = False,
        errors: str = "raise",
        refresh: Callable[..., Any] | None = None,
    ) -> None:
        """
        Args:
            agent: its address, its card, or a client that the SDK made.
            config: the SDK's own options; not for a client that is made already.
            interceptors: the SDK's own, likewise.
            policy: how far recovery may go.
            upstream: what is shared with the other callers of the same agent.
            timeout: seconds without a sign from the agent: its answer, or the next event of a stream. The policy's
                deadline shortens it.
            repeatable: whether the agent takes the same message twice for one, or only reads; or a function of the
                request that says so.
            errors: "raise" a task's failure as a typed error, or "return" the events that say it.
            refresh: renews credentials after they were refused, as in `recover`.

        """
        super().__init__()
        if errors not in {"raise", "return"}:
            raise ValueError(f'errors is "raise" or "return", not {errors!r}')
        if isinstance(agent, SdkClient) and (config is not None or interceptors):
            raise TypeError("config and interceptors are for an address or a card: this client has its own")
        self._agent = agent
        self._config = config or ClientConfig()
        self._added = list(interceptors)
        self._policy = policy
        self._upstream = upstream
        self._timeout = timeout
        self._repeatable = repeatable
        self._errors = errors
        self._refresh = refresh
        self._http: httpx.AsyncClient | None = None
        self._made = asyncio.Lock()
        self._sdk: SdkClient | None = None

    # Messages --------------------------------------------------------------------------------------------------

    async def send_message(
        self, request: SendMessageRequest, *, context: ClientCallContext | None = None
    ) -> AsyncGenerator[StreamResponse]:
        """
        Send a message, and give what the agent answers: one event, or many where both sides stream.

        Raises:
            FaultError: when the task failed, or the agent could not be reached.

        """
        sent = request
        if not sent.message.message_id:
            # The same in every attempt, so that an agent that looks can know it.
            sent = _copy(request)
            sent.message.message_id = str(uuid4())
        again = self._repeatable(sent) if callable(self._repeatable) else self._repeatable
        attempts: list[Progress] = []
        clock = Clock(self._policy)

        def bound() -> bool:
            last = attempts[-1]
            # A task that failed takes no further message: one that was for it cannot be sent again.
            return any(each.content for each in attempts) or (last.failed and bool(sent.message.task_id))

        def attempt() -> AsyncGenerator[StreamResponse]:
            attempts.append(Progress())
            return self._answer(sent, context, attempts[-1], clock)

        async def verify() -> AsyncGenerator[StreamResponse] | None:
            # What a task says of its own failure is no lost answer.
            return None if attempts[-1].failed else await self._looked_for(sent, context, clock)

        operation = _operation(again=again)
        try:
            events = arecover_stream(
                attempt,
                bound=bound,
                policy=self._policy,
                upstream=self._upstream,
                operation=operation,
                verify=verify,
                refresh=self._refresh,
            )
            async with aclosing(events):
                async for event in events:
                    yield event
        except FaultError as error:
            for event in self._said(error, operation):
                yield event

    async def subscribe(
        self, request: SubscribeToTaskRequest, *, context: ClientCallContext | None = None
    ) -> AsyncGenerator[StreamResponse]:
        """
        The events of a task that is at work, its present state first.

        Raises:
            FaultError: when the task fails, or cannot be followed.

        """
        progress = Progress(request.id)
        try:
            async with aclosing(self._followed(progress, context, Clock(self._policy))) as events:
                async for event in events:
                    yield event
        except FaultError as error:
            for event in self._said(error, _READ):
                yield event

    def _said(self, error: FaultError, operation: Operation) -> tuple[StreamResponse, ...]:
        """The events of a failure, for who would rather have those."""
        said: tuple[StreamResponse, ...] = getattr(error, "events", ())
        if self._errors == "return" and said:
            return said
        if error.decision is None:
            # Of a task that was found again: nothing is repeated then, but what could be done is still a question.
            error.decision = decide(error.fault, policy=self._policy, operation=operation)
        raise error

    async def _answer(
        self, sent: SendMessageRequest, context: ClientCallContext | None, progress: Progress, clock: Clock
    ) -> AsyncGenerator[StreamResponse]:
        """One attempt: the events of the message, and if they break off, those of its task."""
        sdk = await self._connected()
        lost: FaultError | None = None
        async with Events(sdk.send_message(_copy(sent), context=context), clock, self._timeout) as events:
            while True:
                try:
                    event = await events.next()
                except FaultError as error:
                    lost = error
                    break
                if event is None:
                    break
                if progress.take(event):
                    yield event
        progress.ended()
        if not progress.task_id and not progress.over():
            raise lost or failure(EOFError(), Heard())
        if lost is None and (progress.over() or not self._streams(sdk)):
            return
        # Broken off, or ended before the agent's turn did: the task knows how it goes on.
        async with aclosing(self._followed(progress, context, clock, lost, once=lost is None)) as rest:
            async for event in rest:
                yield event

    async def _followed(
        self,
        progress: Progress,
        context: ClientCallContext | None,
        clock: Clock,
        lost: FaultError | None = None,
        *,
        once: bool = False,
    ) -> AsyncGenerator[StreamResponse]:
        """
        What becomes of a task whose id is known: its state, then its further events, or looks from time to time.

        `once`: only its state. Its agent has said goodbye, and may be at work for long.
        """
        sdk = await self._connected()
        pause, seen = _FIRST_LOOK, CLOCK.now()
        before: Any = None
        while True:
            try:
                task = await self._call(
                    "get_task", GetTaskRequest(id=progress.task_id), context, _READ, clock
                )
            except FaultError as error:
                raise lost or error from error
            event = StreamResponse(task=task)
            if progress.take(event) and task != before:
                seen = CLOCK.now()
                yield event
            if once or progress.over():
                return
            before = task
            try:
                source = sdk.subscribe(SubscribeToTaskRequest(id=progress.task_id), context=context)
                async with Events(source, clock, self._timeout) as events:
                    while (further := await events.next()) is not None:
                        # The first is the state that is known already, which is no sign of life.
                        if progress.take(further) and further.task != task:
                            seen = CLOCK.now()
                            yield further
                progress.ended()
            except FaultError as error:
                if getattr(error, "events", None) is not None:
                    raise
                # Nothing to subscribe to, or broken off again: look instead.
                lost = error
            if progress.over():
                return
            if CLOCK.now() - seen > self._timeout or clock.over():
                raise lost or failure(TimeoutError(), Heard())
            await CLOCK.asleep(pause)
            pause = min(pause * 2, _LAST_LOOK)

    async def _looked_for(
        self, sent: SendMessageRequest, context: ClientCallContext | None, clock: Clock
    ) -> AsyncGenerator[StreamResponse] | None:
        """
        The rest of a message's story, where its task can be found; None where nobody can tell.

        That the message is not there proves nothing: it may still be on its way.
        """
        found: str | None = None
        try:
            if sent.message.task_id:
                looked = GetTaskRequest(id=sent.message.task_id)
                tasks = [await self._call("get_task", looked, context, _READ, clock)]
            elif sent.message.context_id:
                query = ListTasksRequest(context_id=sent.message.context_id, history_length=_HISTORY)
                tasks = list((await self._call("list_tasks", query, context, _READ, clock)).tasks)
            else:
                return None
        except FaultError:
            return None
        for task in tasks:
            if any(message.message_id == sent.message.message_id for message in task.history):
                found = task.id
        return None if found is None else self._followed(Progress(found), context, clock)

    # Calls that answer once ------------------------------------------------------------------------------------

    async def _call(
        self,
        name: str,
        request: Any,
        context: ClientCallContext | None,
        operation: Operation,
        clock: Clock | None = None,
        **more: Any,
    ) -> Any:
        clock = clock or Clock(self._policy)

        async def attempt() -> Any:
            sdk = await self._connected()
            heard = Heard()
            before = HEARD.set(heard)
            try:
                async with asyncio.timeout(clock.left(self._timeout)):
                    return await getattr(sdk, name)(_copy(request), context=context, **more)
            except Exception as exc:
                raise failure(exc, heard) from exc
            finally:
                HEARD.reset(before)

        return await arecover(
            attempt,
            policy=self._policy,
            upstream=self._upstream,
            operation=operation,
            refresh=self._refresh,
        )

    async def get_task(self, request: GetTaskRequest, *, context: ClientCallContext | None = None) -> Task:
        """A task as it is now; one that failed too: `amends.extract` reads what it says."""
        return await self._call("get_task", request, context, _READ)  # type: ignore[no-any-return]

    async def list_tasks(
        self, request: ListTasksRequest, *, context: ClientCallContext | None = None
    ) -> ListTasksResponse:
        """The tasks that match."""
        return await self._call("list_tasks", request, context, _READ)  # type: ignore[no-any-return]

    async def cancel_task(
        self, request: CancelTaskRequest, *, context: ClientCallContext | None = None
    ) -> Task:
        """Ask the agent to stop. Asking twice asks for the same."""
        return await self._call("cancel_task", request, context, _SAME)  # type: ignore[no-any-return]

    async def create_task_push_notification_config(
        self, request: TaskPushNotificationConfig, *, context: ClientCallContext | None = None
    ) -> TaskPushNotificationConfig:
        """Set where to be notified. With an id of its own, setting it twice sets it once."""
        operation = _SAME if request.id else _UNSAFE
        return await self._call(  # type: ignore[no-any-return]
            "create_task_push_notification_config", request, context, operation
        )

    async def get_task_push_notification_config(
        self, request: GetTaskPushNotificationConfigRequest, *, context: ClientCallContext | None = None
    ) -> TaskPushNotificationConfig:
        """Where one is notified."""
        return await self._call(  # type: ignore[no-any-return]
            "get_task_push_notification_config", request, context, _READ
        )

    async def list_task_push_notification_configs(
        self, request: ListTaskPushNotificationConfigsRequest, *, context: ClientCallContext | None = None
    ) -> ListTaskPushNotificationConfigsResponse:
        """Everything of a task's."""
        return await self._call(  # type: ignore[no-any-return]
            "list_task_push_notification_configs", request, context, _READ
        )

    async def delete_task_push_notification_config(
        self, request: DeleteTaskPushNotificationConfigRequest, *, context: ClientCallContext | None = None
    ) -> None:
        """No longer be notified."""
        await self._call("delete_task_push_notification_config", request, context, _SAME)

    async def get_extended_agent_card(
        self,
        request: GetExtendedAgentCardRequest,
        *,
        context: ClientCallContext | None = None,
        signature_verifier: Callable[[AgentCard], None] | None = None,
    ) -> AgentCard:
        """The agent's card for those who have signed in."""
        return await self._call(  # type: ignore[no-any-return]
            "get_extended_agent_card", request, context, _READ, signature_verifier=signature_verifier
        )

    async def add_interceptor(self, interceptor: ClientCallInterceptor) -> None:
        """One more interceptor of the SDK's kind."""
        sdk = await self._connected()
        await sdk.add_interceptor(interceptor)

    # The client inside -----------------------------------------------------------------------------------------

    async def _connected(self) -> SdkClient:
        """The SDK's client, made at the first call: the card of an address has to be fetched."""
        if self._sdk is None:
            async with self._made:
                if self._sdk is None:
                    self._sdk = await self._connect()
        return self._sdk

    async def _connect(self) -> SdkClient:
        agent = self._agent
        if isinstance(agent, SdkClient):
            found = http_client_of(agent)
            if found is not None:
                listen(found)
            return agent
        http = self._config.httpx_client or self._http
        if http is None:
            http = self._http = httpx.AsyncClient(timeout=httpx.Timeout(self._timeout, connect=_CONNECT))
        listen(http)
        factory = ClientFactory(with_changes(self._config, httpx_client=http))
        card = agent if isinstance(agent, AgentCard) else await self._card(http, agent)
        return factory.create(card, self._added)

    async def _card(self, http: httpx.AsyncClient, address: str) -> AgentCard:
        heard = Heard()
        before = HEARD.set(heard)
        try:
            async with asyncio.timeout(Clock(self._policy).left(self._timeout)):
                return await A2ACardResolver(http, address).get_agent_card()
        except Exception as exc:
            raise failure(exc, heard) from exc
        finally:
            HEARD.reset(before)

    def _streams(self, sdk: SdkClient) -> bool:
        config, card = getattr(sdk, "_config", self._config), getattr(sdk, "_card", None)
        return bool(config.streaming and (card is None or card.capabilities.streaming))

    async def close(self) -> None:
        """Close the connections that are this client's own, and a client that was given."""
        if self._sdk is not None and (
            self._config.httpx_client is None or isinstance(self._agent, SdkClient)
        ):
            await self._sdk.close()
        if self._http is not None:
            await self._http.aclose()


def _copy(request: Any) -> Any:
    """The SDK's client writes its own options into what it is given."""
    found = type(request)()
    found.CopyFrom(request)
    return found


def _operation(*, again: bool) -> Operation:
    """What sending a message promises: whoever calls within an operation of their own knows better."""
    around = current_operation()
    if around is not None and (around.read_only or around.idempotent):
        again = True
    return _REPEATED if again else _SENT
