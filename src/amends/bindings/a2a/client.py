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

from amends.bindings.a2a.calls import READ, SAME, UNSAFE, Calls, copy_of
from amends.bindings.a2a.connection import Connection
from amends.bindings.a2a.deadlines import Clock
from amends.bindings.a2a.faults import Progress
from amends.bindings.a2a.follow import Follower
from amends.core.decision import decide
from amends.core.operation import Operation
from amends.core.policy import DEFAULT, Policy
from amends.errors import ConflictError
from amends.errors.base import FaultError
from amends.recovery.scope import current_operation
from amends.recovery.streams import arecover_stream
from amends.recovery.upstream import Upstream

__all__ = ["Client"]

_SENT = Operation(name="a2a send_message")
_REPEATED = Operation(name="a2a send_message", idempotent=True)


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
        self._connection = Connection(agent, config, interceptors, policy, timeout)
        self._calls = Calls(self._connection, policy, upstream, timeout, refresh)
        self._repeatable = repeatable
        self._errors = errors

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
            sent = copy_of(request)
            sent.message.message_id = str(uuid4())
        again = self._repeatable(sent) if callable(self._repeatable) else self._repeatable
        attempts: list[Progress] = []
        calls = self._calls
        follower = Follower(calls, context, Clock(calls.policy))

        def bound() -> bool:
            last = attempts[-1]
            # A task that failed takes no further message: one that was for it cannot be sent again.
            return any(each.content for each in attempts) or (last.failed and bool(sent.message.task_id))

        def attempt() -> AsyncGenerator[StreamResponse]:
            attempts.append(Progress())
            return follower.answer(sent, attempts[-1])

        async def verify() -> AsyncGenerator[StreamResponse] | None:
            # What a task says of its own failure is no lost answer.
            return None if attempts[-1].failed else await follower.lost(sent)

        operation = _operation(again=again)
        try:
            events = arecover_stream(
                attempt,
                bound=bound,
                policy=calls.policy,
                upstream=calls.upstream,
                operation=operation,
                verify=verify,
                refresh=calls.refresh,
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
        follower = Follower(self._calls, context, Clock(self._calls.policy))
        try:
            async with aclosing(follower.task(Progress(request.id))) as events:
                async for event in events:
                    yield event
        except FaultError as error:
            for event in self._said(error, READ):
                yield event

    def _said(self, error: FaultError, operation: Operation) -> tuple[StreamResponse, ...]:
        """The events of a failure, for who would rather have those."""
        said: tuple[StreamResponse, ...] = getattr(error, "events", ())
        if self._errors == "return" and said:
            return said
        if error.decision is None:
            # Of a task that was found again: nothing is repeated then, but what could be done is still a question.
            error.decision = decide(error.fault, policy=self._calls.policy, operation=operation)
        raise error

    # Calls that answer once ------------------------------------------------------------------------------------

    async def get_task(self, request: GetTaskRequest, *, context: ClientCallContext | None = None) -> Task:
        """A task as it is now; one that failed too: `amends.extract` reads what it says."""
        return await self._calls.call("get_task", request, context, READ)  # type: ignore[no-any-return]

    async def list_tasks(
        self, request: ListTasksRequest, *, context: ClientCallContext | None = None
    ) -> ListTasksResponse:
        """The tasks that match."""
        return await self._calls.call("list_tasks", request, context, READ)  # type: ignore[no-any-return]

    async def cancel_task(
        self, request: CancelTaskRequest, *, context: ClientCallContext | None = None
    ) -> Task:
        """Ask the agent to stop. Asking twice asks for the same, and one that has stopped by then has done so."""
        try:
            return await self._calls.call("cancel_task", request, context, SAME)  # type: ignore[no-any-return]
        except ConflictError as error:
            if len(error.history) > 1:
                # Refused because it was not the first: the answer to an earlier one was lost.
                task: Task = await self.get_task(GetTaskRequest(id=request.id), context=context)
                if task.status.state == TaskState.TASK_STATE_CANCELED:
                    return task
            raise

    async def create_task_push_notification_config(
        self, request: TaskPushNotificationConfig, *, context: ClientCallContext | None = None
    ) -> TaskPushNotificationConfig:
        """Set where to be notified. With an id of its own, setting it twice sets it once."""
        operation = SAME if request.id else UNSAFE
        return await self._calls.call(  # type: ignore[no-any-return]
            "create_task_push_notification_config", request, context, operation
        )

    async def get_task_push_notification_config(
        self, request: GetTaskPushNotificationConfigRequest, *, context: ClientCallContext | None = None
    ) -> TaskPushNotificationConfig:
        """Where one is notified."""
        return await self._calls.call(  # type: ignore[no-any-return]
            "get_task_push_notification_config", request, context, READ
        )

    async def list_task_push_notification_configs(
        self, request: ListTaskPushNotificationConfigsRequest, *, context: ClientCallContext | None = None
    ) -> ListTaskPushNotificationConfigsResponse:
        """Everything of a task's."""
        return await self._calls.call(  # type: ignore[no-any-return]
            "list_task_push_notification_configs", request, context, READ
        )

    async def delete_task_push_notification_config(
        self, request: DeleteTaskPushNotificationConfigRequest, *, context: ClientCallContext | None = None
    ) -> None:
        """No longer be notified."""
        await self._calls.call("delete_task_push_notification_config", request, context, SAME)

    async def get_extended_agent_card(
        self,
        request: GetExtendedAgentCardRequest,
        *,
        context: ClientCallContext | None = None,
        signature_verifier: Callable[[AgentCard], None] | None = None,
    ) -> AgentCard:
        """The agent's card for those who have signed in."""
        return await self._calls.call(  # type: ignore[no-any-return]
            "get_extended_agent_card", request, context, READ, signature_verifier=signature_verifier
        )

    async def add_interceptor(self, interceptor: ClientCallInterceptor) -> None:
        """One more interceptor of the SDK's kind."""
        sdk = await self._connection.sdk()
        await sdk.add_interceptor(interceptor)

    async def close(self) -> None:
        """Close the connections that are this client's own, and a client that was given."""
        await self._connection.close()


def _operation(*, again: bool) -> Operation:
    """What sending a message promises: whoever calls within an operation of their own knows better."""
    around = current_operation()
    if around is not None and (around.read_only or around.idempotent):
        again = True
    return _REPEATED if again else _SENT
