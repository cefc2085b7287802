"""An A2A agent as an agent of the orchestrator. Its skills are the capabilities, and its questions become the task's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from amends.errors.base import FaultError
from amends.tasks.agent import Agent
from amends.tasks.capability import Capability
from amends.tasks.context import Context, Question
from amends.tasks.persistent_client import PersistentClient

if TYPE_CHECKING:
    from a2a.types.a2a_pb2 import Part, StreamResponse

    from amends.bindings.a2a import Client

__all__ = ["A2aAgent"]


class A2aAgent(Agent):
    """
    An agent that is called over A2A.

        travel = A2aAgent("travel-agent", "https://travel.example")

    A capability is a skill. The message has the skill's id in its metadata, the payload as a data part (as text if it is a
    string), and the step's key as its message id, so that an agent that checks message ids recognises a repeat.
    """

    dynamic = True

    def __init__(
        self,
        name: str,
        agent: Any,
        *,
        read_only: Iterable[str] = (),
        repeatable: bool = False,
        parts: Callable[[str, object], list[Part]] | None = None,
        timeout: float = 120.0,
        client: Callable[[], Client] | None = None,
        **options: Any,
    ) -> None:
        """
        Args:
            name: the agent's name.
            agent: its URL, its card, or a client of the SDK, as for `amends.bindings.a2a.Client`.
            read_only: skills that change nothing.
            repeatable: whether the agent treats a repeated message as the same one.
            parts: returns the message's parts for a skill and a payload.
            timeout: seconds for one call.
            client: a function that returns an unopened client, to be used instead.
            options: as for `Agent`.
        """
        super().__init__(name, timeout=timeout, **options)
        self._agent = agent
        self._read_only = frozenset(read_only)
        self._repeatable = repeatable
        self._parts = parts or _parts
        self._persistent = PersistentClient(client or self._client)

    def _client(self) -> Client:
        from amends.bindings.a2a import Client
        from amends.recovery.policies import NONE

        return Client(self._agent, policy=NONE, timeout=self.timeout or 120.0, repeatable=self._repeatable)

    async def find(self, type: str) -> Capability:
        """Return a capability for any skill. The card is not checked, because an agent may have further skills."""
        return self.capabilities.get(type) or self.relay(
            type,
            partial(self.send, type),
            read_only=type in self._read_only,
            keyed=self._repeatable,
        )

    async def send(self, skill: str, payload: object, ctx: Context) -> object:
        """
        Send one message and return the result.

        Raises:
            FaultError: the agent's failure, or the failure to reach it.
            Question: the agent needs an answer.
        """
        from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageRequest

        client = await self._persistent.get()
        message = Message(
            message_id=ctx.key if not ctx.answers else f"{ctx.key}/{len(ctx.answers)}", role=Role.ROLE_USER
        )
        message.parts.extend(self._parts(skill, payload))
        # All answers so far are sent again, because the remote agent does not know earlier attempts.
        message.parts.extend(Part(text=_text(answer)) for answer in ctx.answers)
        message.metadata.update({"skill": skill, "idempotencyKey": ctx.key})
        request = SendMessageRequest(message=message)
        outcome = _Outcome()
        try:
            async for event in client.send_message(request):
                outcome.add(event)
        except FaultError as error:
            # A task that waits for a sign-in is an error of the client, and a question here.
            for event in getattr(error, "events", ()):
                outcome.add(event)
            if outcome.question is None:
                raise
        if outcome.question is not None:
            raise Question(outcome.question)
        return outcome.result()

    async def close(self) -> None:
        """Close the connection."""
        await self._persistent.close()
        await super().close()


class _Outcome:
    """The result of an agent's events: the parts of its artifacts or of its message, or a question."""

    def __init__(self) -> None:
        self._artifacts: dict[str, list[Part]] = {}
        self._message_parts: list[Part] = []
        self.question: str | None = None

    def add(self, event: StreamResponse) -> None:
        from a2a.types.a2a_pb2 import TaskState

        kind = event.WhichOneof("payload")
        if kind == "message":
            self._message_parts = list(event.message.parts)
            return
        if kind == "artifact_update":
            artifact = event.artifact_update.artifact
            known = self._artifacts.get(artifact.artifact_id, []) if event.artifact_update.append else []
            self._artifacts[artifact.artifact_id] = [*known, *artifact.parts]
            return
        if kind == "task":
            status = event.task.status
            for artifact in event.task.artifacts:
                self._artifacts[artifact.artifact_id] = list(artifact.parts)
        else:
            status = event.status_update.status
        asks = status.state in {TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED}
        parts = list(status.message.parts) if status.HasField("message") else []
        self.question = (_texts(parts) or "The agent needs more information") if asks else None
        self._message_parts = parts or self._message_parts

    def result(self) -> object:
        """The value of the only part, or the values of all parts in order."""
        parts = [part for artifact in self._artifacts.values() for part in artifact] or self._message_parts
        values = [_value(part) for part in parts]
        return values[0] if len(values) == 1 else values or None


def _parts(skill: str, payload: object) -> list[Part]:
    from a2a.types.a2a_pb2 import Part
    from google.protobuf.json_format import ParseDict  # type: ignore[import-untyped,unused-ignore]

    if isinstance(payload, str):
        return [Part(text=payload)]
    # A message needs at least one part, so no payload is sent as an empty object.
    return [ParseDict({"data": {} if payload is None else payload}, Part())]


def _value(part: Part) -> object:
    from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped,unused-ignore]

    kind = part.WhichOneof("content")
    if kind == "text":
        return part.text
    if kind == "data":
        return _restore_ints(MessageToDict(part.data))
    return MessageToDict(part)


def _restore_ints(value: object) -> object:
    """Convert floats without a fraction to int: protobuf turns every number into a float."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _restore_ints(item) for name, item in value.items()}
    return [_restore_ints(item) for item in value] if isinstance(value, list) else value


def _texts(parts: list[Part]) -> str:
    return " ".join(part.text for part in parts if part.WhichOneof("content") == "text").strip()


def _text(answer: object) -> str:
    return answer if isinstance(answer, str) else msgspec.json.encode(answer).decode()
