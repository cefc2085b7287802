"""
A job as it goes: JSON lines for a program, a readable view for a person.

A person sees a line per event, with a bar for progress where Rich is installed. Whatever came from an agent is
stripped of control characters: nobody paints on somebody else's terminal.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import msgspec

from amends.core.text import strip

if TYPE_CHECKING:
    from amends.arcp import Event, Handle

__all__ = ["describe", "show", "tell_line", "told_as_json"]

_LONGEST = 400


def told_as_json(args: argparse.Namespace) -> bool:
    """Whether a program reads."""
    from amends.commands.console import wants_json

    return wants_json(args)


def tell_line(value: Any) -> None:
    """One JSON document on one line, at once."""
    from amends.commands.console import json_bytes

    sys.stdout.write(json_bytes(value).decode() + "\n")
    sys.stdout.flush()


async def show(args: argparse.Namespace, handle: Handle) -> None:
    """
    Show a job to its end.

    Raises:
        FaultError: what it failed with.

    """
    view = _Lines() if told_as_json(args) else _screen()
    with view:
        view.begun(handle)
        async for event in handle.events():
            view.event(event)
        view.ended(handle, await handle.done)


class _Lines:
    """For a program."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def begun(self, handle: Handle) -> None:
        tell_line({"job_id": handle.job_id, "agent": handle.agent, "status": "accepted"})

    def event(self, event: Event) -> None:
        tell_line(_discreet(event))

    def ended(self, handle: Handle, result: Any) -> None:
        tell_line({"job_id": handle.job_id, "status": "success", "result": result})


class _Plain(_Lines):
    """For a person, line by line."""

    def __init__(self) -> None:
        from amends.commands.view import painter

        self._paint = painter()

    def begun(self, handle: Handle) -> None:
        self._say(f"{self._paint('accepted', 'green')} {handle.agent or ''} as {handle.job_id}")

    def event(self, event: Event) -> None:
        at = strip(event.ts or "")[11:19]
        colour = _COLOURS.get(event.kind, "dim")
        self._say(
            f"{self._paint(at, 'dim')} {self._paint(f'{strip(event.kind):<12}', colour)} {describe(event)}".rstrip()
        )

    def ended(self, handle: Handle, result: Any) -> None:
        self._say(
            self._paint("success", "bold", "green") + (f"  {strip(handle.summary)}" if handle.summary else "")
        )
        if result is not None:
            self._say(_result(result))

    @staticmethod
    def _say(text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def _screen() -> _Lines:
    """The best view there is."""
    if sys.stdout.isatty():
        try:
            from rich.progress import Progress
        except ImportError:
            return _Plain()
        return _screen_of(Progress)
    return _Plain()


def _screen_of(progress: Any) -> _Lines:
    """Lines above, one bar below; the bar goes when the job ends."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.text import Text

    class Screen(_Plain):
        """Lines above a bar that moves."""

        def __init__(self) -> None:
            super().__init__()
            self._console = Console(highlight=False)
            columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
            self._bar = progress(*columns, console=self._console, transient=True)
            self._task: Any = None

        def __enter__(self) -> Self:
            self._bar.start()
            return self

        def __exit__(self, *_: object) -> None:
            self._bar.stop()

        def event(self, event: Event) -> None:
            if event.kind != "progress":
                super().event(event)
                return
            body = event.body
            told = strip(str(body.get("message") or body.get("units") or "progress"))[:60]
            if self._task is None:
                self._task = self._bar.add_task(told, total=None)
            total, current = _number(body.get("total")), _number(body.get("current"))
            self._bar.update(self._task, description=told, completed=current or 0, total=total)

        def _say(self, text: str) -> None:  # type: ignore[override]
            # The colours are ours; everything else was stripped, so nothing in it is markup.
            self._console.print(Text.from_ansi(text))

    return Screen()


def describe(event: Event) -> str:
    """An event in words, on one line."""
    body = event.body
    words = _WORDS.get(event.kind)
    text = words(body) if words is not None else _json(body)
    text = strip(text).replace("\n", " ")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    from amends.commands.console import json_bytes

    return json_bytes(value).decode() if value is not None else ""


def _result(result: Any) -> str:
    if isinstance(result, bytes):
        return f"{len(result)} bytes"
    if isinstance(result, str):
        return "\n".join(strip(line) for line in result.splitlines())
    return msgspec.json.format(strip(_json(result)))


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _tool_result(body: dict[str, Any]) -> str:
    error = body.get("error")
    if isinstance(error, dict):
        return (
            f"{_text(body.get('call_id'))} failed: {_text(error.get('code'))} {_text(error.get('message'))}"
        )
    return f"{_text(body.get('call_id'))} → {_text(body.get('result'))}"


def _progress(body: dict[str, Any]) -> str:
    of = f" of {_text(body['total'])}" if body.get("total") is not None else ""
    return f"{_text(body.get('current'))}{of} {_text(body.get('units') or '')} {_text(body.get('message') or '')}".rstrip()


def _discreet(event: Event) -> Event:
    """An event without the secret that a rotated credential's has (9.8)."""
    if event.kind != "status" or event.body.get("phase") != "credential_rotated":
        return event
    body = {name: value for name, value in event.body.items() if name != "value"}
    return msgspec.structs.replace(event, body=body)


def _chunk(body: dict[str, Any]) -> str:
    data = body.get("data")
    return f"chunk {_text(body.get('chunk_seq'))}, {len(data) if isinstance(data, str) else 0} characters"


# kind → how its body reads. What is not here is shown as it is.
_WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "log": lambda body: f"{_text(body.get('level') or '')} {_text(body.get('message'))}".strip(),
    "thought": lambda body: _text(body.get("text")),
    "status": lambda body: f"{_text(body.get('phase'))} {_text(body.get('message') or '')}".strip(),
    "tool_call": lambda body: f"{_text(body.get('tool'))} {_text(body.get('args') or '')}".strip(),
    "tool_result": _tool_result,
    "metric": lambda body: (
        f"{_text(body.get('name'))} {_text(body.get('value'))} {_text(body.get('unit') or '')}".strip()
    ),
    "artifact_ref": lambda body: f"{_text(body.get('uri'))} {_text(body.get('content_type') or '')}".strip(),
    "delegate": lambda body: f"to {_text(body.get('agent'))}",
    "progress": _progress,
    "result_chunk": _chunk,
}
_COLOURS = {
    "log": "dim",
    "thought": "magenta",
    "status": "cyan",
    "tool_call": "blue",
    "tool_result": "blue",
    "metric": "dim",
    "artifact_ref": "green",
    "delegate": "yellow",
    "progress": "cyan",
}
