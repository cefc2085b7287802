"""Tasks on the page: a list, the timeline of each, and its actions."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import msgspec

from amends.core.redaction import redact, redact_value
from amends.core.wire import as_dict
from amends.page.sources import Opened
from amends.stores.contract import Store

if TYPE_CHECKING:
    from amends.tasks import Orchestrator

__all__ = ["ACTIONS", "TaskSource", "act_on_task", "list_tasks", "read_task"]

_LISTED = 200
_TONES = {"completed": "good", "failed": "bad", "cancelled": "doubt", "input_required": "doubt"}
ACTIONS = ("answer", "retry", "cancel")


class TaskSource(Opened["Orchestrator"]):
    """An orchestrator, or one that only reads and sends commands, on the store of a URL."""

    def __init__(self, source: Orchestrator | Store | str) -> None:
        """
        Args:
            source: a started orchestrator, an open store, or a store's URL.

        """
        super().__init__()
        self._source = source

    async def _open(self, stack: AsyncExitStack) -> Orchestrator:
        from amends.tasks import Orchestrator

        if isinstance(self._source, Orchestrator):
            return self._source
        return await stack.enter_async_context(Orchestrator(store=self._source, worker=False))


async def list_tasks(orchestrator: Orchestrator) -> list[dict[str, object]]:
    """Return the newest tasks."""
    from amends.tasks.documents import stamp

    rows = sorted([each async for each in orchestrator.list()], key=lambda each: -each.created)
    return [
        {
            "id": each.id,
            "status": str(each.status),
            "tone": _TONES.get(each.status, "wait"),
            "type": each.type,
            "agent": each.agent or "",
            "code": each.code or "",
            "updated": stamp(each.updated),
            "question": redact(each.question or ""),
        }
        for each in rows[:_LISTED]
    ]


async def read_task(orchestrator: Orchestrator, id: str) -> dict[str, object]:
    """
    Return one task with its timeline.

    Raises:
        TaskNotFoundError: there is no such task.

    """
    from amends.tasks.timeline import timeline

    state = await orchestrator.state(id)
    document = state.response().document()
    status = str(document["status"])
    wanted, error = as_dict(document.get("input")) or {}, as_dict(document.get("error")) or {}
    return {
        "id": id,
        "status": status,
        "tone": _TONES.get(status, "wait"),
        "type": state.head.type,
        "agent": state.agent or "",
        "code": str(error.get("code", "")),
        "message": redact(str(error.get("message", ""))),
        "question": redact(str(wanted.get("question", ""))),
        "asks": status == "input_required" and wanted.get("kind") != "verify",
        "steps": [(name, step.state, len(step.stepper.history)) for name, step in state.steps.items()],
        "timeline": redact_value(msgspec.to_builtins(timeline(await orchestrator.records(id)))),
        "over": status in {"completed", "failed", "cancelled"},
        "again": status in {"failed", "cancelled"},
    }


async def act_on_task(orchestrator: Orchestrator, id: str, action: str, answer: str) -> None:
    """
    Answer, retry or cancel a task. An answer that is not JSON is taken as text.

    Raises:
        TaskNotFoundError: there is no such task.
        FaultError: the task is in no state for this.

    """
    if action == "answer":
        await orchestrator.answer(id, _json(answer))
    elif action == "retry":
        await orchestrator.retry(id)
    else:
        await orchestrator.cancel(id)


def _json(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
