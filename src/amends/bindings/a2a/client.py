"""
The client: the SDK's client with typed errors and recovery by policy.

- A failed task, a JSON-RPC error, a failed HTTP response and a server that is dead, hangs or sends garbage are each a
  FaultError of their code, with `.fault`, `.decision` and `.history`.
- A message is sent again only if it surely had no effect, or if the agent is known to treat a repeated message as one
  (`repeatable`). The protocol allows agents to recognize a message by its id but does not require it, so the default
  is False.
- A stream that breaks off is continued by the task's id, with GetTask and SubscribeToTask. A lost response is searched by
  the task or the context that the message names.
- Once the caller has got content, the message is not sent again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any
from uuid import uuid4

from a2a.client import Client as SdkClient
from a2a.client import ClientConfig
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
    TaskState,
)
from google.protobuf.message import Message as ProtoMessage  # type: ignore[import-untyped,unused-ignore]

from amends.bindings.a2a.calls import IDEMPOTENT, READ, UNSAFE, Calls, copy_of
from amends.bindings.a2a.connection import Connection
from amends.bindings.a2a.deadlines import Deadline
from amends.bindings.a2a.faults import Progress
from amends.bindings.a2a.follow import Follower
from amends.bindings.a2a.message_effects import META_KEY
from amends.bindings.a2a.traces import traced
from amends.core.decision import decide
from amends.core.operation import Operation
from amends.core.policy import DEFAULT, Policy
from amends.core.wrong_calls import explains_wrong_calls
from amends.errors import ConflictError
from amends.errors.base import FaultError
from amends.foreign.trust import is_own_address
from amends.http.raising import check_raises, return_or_raise
from amends.recovery.effect_context import check_time_limit, request_key
from amends.recovery.origins import PER_ORIGIN, PerOrigin, Upstreams
from amends.recovery.scope import current_operation
from amends.recovery.streams import arecover_stream
from amends.recovery.upstream import Upstream

__all__ = ["Client"]

_SEND = Operation(name="a2a send_message", binding="a2a client")
_SEND_REPEATABLE = Operation(name="a2a send_message", idempotent=True, binding="a2a client")


def _address(agent: object) -> object:
    """Return the address of an agent, if it is known: of a card, that of its first interface."""
    if isinstance(agent, AgentCard):
        return next((each.url for each in agent.supported_interfaces), None)
    return agent


class Client(SdkClient):
    """
    A client of one agent, with recovery. Use it with `async with`.

        async with Client("https://rooms.example", policy=Policy(deadline=60)) as client:
            async for event in client.send_message(request):
                ...
    """

    @explains_wrong_calls
    def __init__(
        self,
        agent: str | AgentCard | SdkClient,
        *,
        config: ClientConfig | None = None,
        interceptors: Sequence[ClientCallInterceptor] = (),
        policy: Policy = DEFAULT,
        upstream: Upstream | PerOrigin | None = PER_ORIGIN,
        own: bool = False,
        timeout: float = 120.0,
        repeatable: bool | Callable[[SendMessageRequest], bool] = False,
        raises: str = "fault",
        refresh: Callable[..., object] | None = None,
    ) -> None:
        """
        Args:
            agent: its address, its card, or a client that the SDK made.
            config: the SDK's own options. For a client that the SDK made, the options it was made with: their
                `httpx_client` is needed to read the data of JSON-RPC errors and to limit the size of responses.
            interceptors: the SDK's own, for an address or a card.
            policy: the bounds of recovery.
            upstream: the state shared with other callers of the same agent. By default all clients of one address share
                it, with a scope per method; a client that may have credentials of its own (interceptors, an HTTP client,
                `refresh`) has its own. None turns it off.
            own: the agent is part of our own system: a server that calls it passes its failures on as they were read.
            timeout: seconds to wait for a response, or for the next event of a stream. The policy's deadline
                shortens it.
            repeatable: whether the agent treats a repeated message as one, or only reads; or a function that returns
                this for a request.
            raises: what a failure raises: "fault", our typed error; "original", the SDK's exception with the fault attached
                (a failed task has none, so it raises the typed error); "nothing", the events of a failed task are
                returned, and other failures raise the SDK's own exception.
            refresh: renews credentials that were refused, as in `recover`.

        """
        super().__init__()
        check_raises(raises)
        self._connection = Connection(agent, config, interceptors, policy, timeout)
        anonymous = not interceptors and (config is None or config.httpx_client is None)
        upstreams = Upstreams(upstream, _address(agent), shared=anonymous and refresh is None)
        own = own or is_own_address(_address(agent))
        self._calls = Calls(self._connection, policy, upstreams, timeout, refresh, own)
        self._repeatable = repeatable
        self._raises = raises

    # Messages --------------------------------------------------------------------------------------------------

    async def send_message(
        self, request: SendMessageRequest, *, context: ClientCallContext | None = None
    ) -> AsyncGenerator[StreamResponse]:
        """
        Send a message and yield the agent's events: one, or several if both sides support streaming.

        Raises:
            FaultError: the task failed, or the call did.

        """
        sent, key = request, None
        if META_KEY not in request.message.metadata and (key := request_key("message", "")) is not None:
            # Sent inside an effect (`amends.effects`): an agent with a ledger executes the message once.
            sent = copy_of(sent)
            sent.message.metadata[META_KEY] = key
        if not sent.message.message_id:
            # The same id in every attempt, and in every run of an effect, so that an agent can recognize a repeat.
            sent = copy_of(sent)
            sent.message.message_id = key or str(uuid4())
        repeatable = self._repeatable(sent) if callable(self._repeatable) else self._repeatable
        attempts: list[Progress] = []
        calls = self._calls
        operation, context = traced(_send_operation(repeatable=repeatable), context)
        follower = Follower(calls, context, Deadline(calls.policy))

        def bound() -> bool:
            last = attempts[-1]
            # A failed task accepts no further message, so a message for this task cannot be repeated.
            return any(each.content for each in attempts) or (last.failed and bool(sent.message.task_id))

        def attempt() -> AsyncGenerator[StreamResponse]:
            check_time_limit()
            attempts.append(Progress(own=calls.own))
            return follower.send(sent, attempts[-1])

        async def verify() -> AsyncGenerator[StreamResponse] | None:
            # If the task failed, its response was not lost.
            return None if attempts[-1].failed else await follower.find_lost(sent)

        try:
            events = arecover_stream(
                attempt,
                bound=bound,
                policy=calls.policy,
                upstream=calls.upstreams.of(operation.name),
                operation=operation,
                verify=verify,
                refresh=calls.refresh,
            )
            async with aclosing(events):
                async for event in events:
                    yield event
        except FaultError as error:
            for event in self._events_of(error, operation):
                yield event

    async def subscribe(
        self, request: SubscribeToTaskRequest, *, context: ClientCallContext | None = None
    ) -> AsyncGenerator[StreamResponse]:
        """
        Yield the present state of a task, then its further events.

        Raises:
            FaultError: the task failed, or cannot be read.

        """
        operation, context = traced(READ, context)
        follower = Follower(self._calls, context, Deadline(self._calls.policy))
        try:
            async with aclosing(follower.follow(Progress(request.id, own=self._calls.own))) as events:
                async for event in events:
                    yield event
        except FaultError as error:
            for event in self._events_of(error, operation):
                yield event

    def _events_of(self, error: FaultError, operation: Operation) -> tuple[StreamResponse, ...]:
        """Return the events of a failed task with `raises="nothing"`; raise the error otherwise."""
        events: tuple[StreamResponse, ...] = getattr(error, "events", ())
        if self._raises == "nothing" and events:
            return events
        error.own = error.own or self._calls.own
        if error.decision is None:
            # The error of a task that was followed was not part of recovery, so it has no decision yet.
            error.decision = decide(error.fault, policy=self._calls.policy, operation=operation)
        return return_or_raise(error, self._raises)  # type: ignore[no-any-return]

    async def _call(
        self,
        name: str,
        request: ProtoMessage,
        context: ClientCallContext | None,
        operation: Operation,
        **more: Any,
    ) -> Any:
        try:
            return await self._calls.call(name, request, context, operation, **more)
        except FaultError as error:
            return return_or_raise(error, self._raises)

    # Calls with a single response --------------------------------------------------------------------------------

    async def get_task(self, request: GetTaskRequest, *, context: ClientCallContext | None = None) -> Task:
        """Return the present state of a task, also of a failed one; `amends.extract` reads its error."""
        return await self._call("get_task", request, context, READ)  # type: ignore[no-any-return]

    async def list_tasks(
        self, request: ListTasksRequest, *, context: ClientCallContext | None = None
    ) -> ListTasksResponse:
        """Return the tasks that match."""
        return await self._call("list_tasks", request, context, READ)  # type: ignore[no-any-return]

    async def cancel_task(
        self, request: CancelTaskRequest, *, context: ClientCallContext | None = None
    ) -> Task:
        """Cancel a task. It is idempotent: if a repeat finds the task canceled, that task is returned."""
        try:
            return await self._calls.call("cancel_task", request, context, IDEMPOTENT)  # type: ignore[no-any-return]
        except ConflictError as error:
            if len(error.history) > 1:
                # An earlier attempt may have canceled the task, and its response was lost.
                task: Task = await self.get_task(GetTaskRequest(id=request.id), context=context)
                if task.status.state == TaskState.TASK_STATE_CANCELED:
                    return task
            raise

    async def create_task_push_notification_config(
        self, request: TaskPushNotificationConfig, *, context: ClientCallContext | None = None
    ) -> TaskPushNotificationConfig:
        """Set where notifications are sent. A request with an id is idempotent."""
        operation = IDEMPOTENT if request.id else UNSAFE
        return await self._call(  # type: ignore[no-any-return]
            "create_task_push_notification_config", request, context, operation
        )

    async def get_task_push_notification_config(
        self, request: GetTaskPushNotificationConfigRequest, *, context: ClientCallContext | None = None
    ) -> TaskPushNotificationConfig:
        """Return where notifications are sent."""
        return await self._call(  # type: ignore[no-any-return]
            "get_task_push_notification_config", request, context, READ
        )

    async def list_task_push_notification_configs(
        self, request: ListTaskPushNotificationConfigsRequest, *, context: ClientCallContext | None = None
    ) -> ListTaskPushNotificationConfigsResponse:
        """Return all notification settings of a task."""
        return await self._call(  # type: ignore[no-any-return]
            "list_task_push_notification_configs", request, context, READ
        )

    async def delete_task_push_notification_config(
        self, request: DeleteTaskPushNotificationConfigRequest, *, context: ClientCallContext | None = None
    ) -> None:
        """Delete a notification setting."""
        await self._call("delete_task_push_notification_config", request, context, IDEMPOTENT)

    async def get_extended_agent_card(
        self,
        request: GetExtendedAgentCardRequest,
        *,
        context: ClientCallContext | None = None,
        signature_verifier: Callable[[AgentCard], None] | None = None,
    ) -> AgentCard:
        """Return the agent's card for authenticated clients."""
        return await self._call(  # type: ignore[no-any-return]
            "get_extended_agent_card", request, context, READ, signature_verifier=signature_verifier
        )

    async def add_interceptor(self, interceptor: ClientCallInterceptor) -> None:
        """Add an interceptor to the SDK's client."""
        sdk = await self._connection.sdk()
        await sdk.add_interceptor(interceptor)

    async def close(self) -> None:
        """Close the HTTP client that was made here, or the SDK's client that was given."""
        await self._connection.close()


def _send_operation(*, repeatable: bool) -> Operation:
    """Return the operation of a message; it is repeatable too inside a `recover` whose operation is."""
    around = current_operation()
    if around is not None and (around.read_only or around.idempotent):
        repeatable = True
    return _SEND_REPEATABLE if repeatable else _SEND
