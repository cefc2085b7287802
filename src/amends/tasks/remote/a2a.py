"""An A2A agent as an agent: its skills are the capabilities; what it asks for, the task asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from amends.tasks.agent import Agent
from amends.tasks.capability import Capability
from amends.tasks.context import Context, Question
from amends.tasks.persistent_client import Kept

__all__ = ["A2aAgent"]


class A2aAgent(Agent):
    """
    An agent behind A2A.

        travel = A2aAgent("travel-agent", "https://travel.example")

    A capability is a skill; the message carries its id in its metadata, the payload as a data part (text where it is one),
    and the step's key as the message's id, so that an agent that looks at ids recognises a repeat.
    """

    dynamic = True

    def __init__(
        self,
        name: str,
        agent: Any,
        *,
        read_only: Iterable[str] = (),
        repeatable: bool = False,
        parts: Callable[[str, Any], list[Any]] | None = None,
        timeout: float = 120.0,
        client: Any = None,
        **options: Any,
    ) -> None:
        """
        Args:
            name: the agent's name.
            agent: its address, its card, or a client the SDK made, as `amends.bindings.a2a.Client` takes it.
            read_only: skills that change nothing.
            repeatable: whether the agent takes the same message twice for one.
            parts: makes the message's parts from the skill and the payload.
            timeout: seconds for one call.
            client: a function that returns an unopened client of your own.
            options: as for `Agent`.
        """
        super().__init__(name, timeout=timeout, **options)
        self._agent = agent
        self._read_only = frozenset(read_only)
        self._repeatable = repeatable
        self._parts = parts or _parts
        self._kept = Kept(client or self._client)

    def _client(self) -> Any:
        from amends.bindings.a2a import Client
        from amends.recovery.policies import NONE

        return Client(self._agent, policy=NONE, timeout=self.timeout or 120.0, repeatable=self._repeatable)

    async def find(self, type: str) -> Capability:
        """The skill; an agent may do more than its card says, so it is asked and not looked up."""
        found = self.capabilities.get(type)
        if found is None:
            found = self.capabilities[type] = Capability(
                name=type,
                call=partial(self.send, type),
                read_only=type in self._read_only,
                keyed=self._repeatable,
                timeout=self.timeout,
                policy=self.policy,
            )
        return found

    async def send(self, skill: str, payload: Any, ctx: Context) -> Any:
        """
        One message, and what comes of it.

        Raises:
            FaultError: what the agent said, or why it could not.
            Question: it needs an answer.
        """
        from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageRequest

        client = await self._kept.client()
        message = Message(
            message_id=ctx.key if not ctx.answers else f"{ctx.key}/{len(ctx.answers)}", role=Role.ROLE_USER
        )
        message.parts.extend(self._parts(skill, payload))
        # What was answered since goes along: an agent elsewhere does not remember our tries.
        message.parts.extend(Part(text=_text(answer)) for answer in ctx.answers)
        message.metadata.update({"skill": skill, "idempotencyKey": ctx.key})
        request = SendMessageRequest(message=message)
        outcome = _Outcome()
        async for event in client.send_message(request):
            outcome.take(event)
        if outcome.question is not None:
            raise Question(outcome.question)
        return outcome.result()

    async def close(self) -> None:
        """Close the connection."""
        await self._kept.close()
        await super().close()


class _Outcome:
    """What an agent's events come to: the parts of its artifacts or of its message, or a question."""

    def __init__(self) -> None:
        self._artifacts: dict[str, list[Any]] = {}
        self._said: list[Any] = []
        self.question: str | None = None

    def take(self, event: Any) -> None:
        from a2a.types.a2a_pb2 import TaskState

        kind = event.WhichOneof("payload")
        if kind == "message":
            self._said = list(event.message.parts)
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
        self.question = (_texts(parts) or "The agent needs more to go on") if asks else None
        self._said = parts or self._said

    def result(self) -> Any:
        """The data of the one part there is, or the parts in order."""
        parts = [part for artifact in self._artifacts.values() for part in artifact] or self._said
        values = [_value(part) for part in parts]
        return values[0] if len(values) == 1 else values or None


def _parts(skill: str, payload: Any) -> list[Any]:
    from a2a.types.a2a_pb2 import Part
    from google.protobuf.json_format import ParseDict  # type: ignore[import-untyped,unused-ignore]

    if isinstance(payload, str):
        return [Part(text=payload)]
    # A message without parts is none, so that nothing is an empty object.
    return [ParseDict({"data": {} if payload is None else payload}, Part())]


def _value(part: Any) -> Any:
    from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped,unused-ignore]

    kind = part.WhichOneof("content")
    if kind == "text":
        return part.text
    if kind == "data":
        return _whole(MessageToDict(part.data))
    return MessageToDict(part)


def _whole(value: Any) -> Any:
    """Numbers as they were meant: protobuf makes every number a float."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value


def _texts(parts: list[Any]) -> str:
    return " ".join(part.text for part in parts if part.WhichOneof("content") == "text").strip()


def _text(answer: Any) -> str:
    return answer if isinstance(answer, str) else msgspec.json.encode(answer).decode()
