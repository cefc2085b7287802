"""
Prints a job's events as they arrive: as JSON lines, or as text.

The text has one line per event, and a progress bar if Rich is installed. Control characters are removed from everything
an agent sent, so that it cannot control the terminal.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Self

import msgspec

from amends.commands.console import json_bytes, wants_json
from amends.core.text import strip

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from amends.arcp import Event, Handle
    from amends.core.fault import Fault

__all__ = ["View", "budget_text", "describe", "print_json_line", "show_job", "view_of"]

_MAX_LENGTH = 400


def print_json_line(value: object) -> None:
    """Print one JSON document on one line, and flush it."""
    sys.stdout.write(json_bytes(value).decode() + "\n")
    sys.stdout.flush()


async def show_job(args: argparse.Namespace, handle: Handle) -> None:
    """
    Print a job's events until it ends, then its result.

    Raises:
        FaultError: the job's error.

    """
    view = view_of(args)
    with view:
        view.start(handle)
        async for event in handle.events():
            view.event(event)
        view.end(handle, await handle.done)


def view_of(args: argparse.Namespace) -> View:
    """Return the view that the arguments ask for."""
    return View() if wants_json(args) else _text_view()


class View:
    """Prints JSON lines. `depth` is the number of a job's ancestors that are shown too."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def start(self, handle: Handle, depth: int = 0) -> None:
        """Show that a job is followed."""
        accepted = handle.accepted
        document = {"job_id": handle.job_id, "agent": handle.agent, "status": "accepted"}
        more = {"parent_job_id": accepted.parent_job_id, "budget": accepted.budget}
        print_json_line(document | {name: value for name, value in more.items() if value})

    def event(self, event: Event, depth: int = 0) -> None:
        """Show an event."""
        print_json_line(_without_secret(event))

    def end(self, handle: Handle, result: object, depth: int = 0) -> None:
        """Show a success."""
        print_json_line({"job_id": handle.job_id, "status": "success", "result": result})

    def fail(self, job_id: str, fault: Fault, depth: int = 0) -> None:
        """Show the failure of a job that another one delegated to."""
        error = {"code": fault.code, "message": fault.message, "details": fault.details}
        print_json_line({"job_id": job_id, "status": "error", "error": error})


class _TextView(View):
    """Prints lines of text."""

    def __init__(self) -> None:
        from amends.commands.view import painter

        self._paint = painter()

    def start(self, handle: Handle, depth: int = 0) -> None:
        accepted = handle.accepted
        parent = f", child of {strip(accepted.parent_job_id)}" if accepted.parent_job_id else ""
        budget = f", budget {text}" if (text := budget_text(accepted.budget)) else ""
        agent = strip(handle.agent or "")
        self._line(
            depth, f"{self._paint('accepted', 'green')} {agent} as {strip(handle.job_id)}{parent}{budget}"
        )

    def event(self, event: Event, depth: int = 0) -> None:
        at = strip(event.ts or "")[11:19]
        colour = _COLOURS.get(event.kind, "dim")
        self._line(
            depth,
            f"{self._paint(at, 'dim')} {self._paint(f'{strip(event.kind):<12}', colour)} {describe(event)}".rstrip(),
        )

    def end(self, handle: Handle, result: object, depth: int = 0) -> None:
        job = f" {strip(handle.agent or '')} {strip(handle.job_id)}" if depth else ""
        summary = f"  {strip(handle.summary)}" if handle.summary else ""
        self._line(depth, self._paint("success", "bold", "green") + job + summary)
        if result is not None and not depth:
            self._print(_result(result))

    def fail(self, job_id: str, fault: Fault, depth: int = 0) -> None:
        text = strip(f"{fault.code} {fault.message or ''}").replace("\n", " ")[:_MAX_LENGTH]
        self._line(depth, f"{self._paint('failed', 'bold', 'red')} {strip(job_id)} {text}".rstrip())

    def _line(self, depth: int, text: str) -> None:
        self._print("  " * depth + text)

    @staticmethod
    def _print(text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def _text_view() -> View:
    """Return a view with a progress bar on a terminal with Rich, else lines of text."""
    if sys.stdout.isatty():
        try:
            from rich.progress import Progress
        except ImportError:
            return _TextView()
        return _progress_view(Progress)
    return _TextView()


def _progress_view(progress: type[Progress]) -> View:
    """Return a view with lines above a progress bar, which disappears when the job ends."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.text import Text

    class ProgressView(_TextView):
        """Prints lines above a progress bar."""

        def __init__(self) -> None:
            super().__init__()
            self._console = Console(highlight=False)
            columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
            self._bar = progress(*columns, console=self._console, transient=True)
            self._task: TaskID | None = None

        def __enter__(self) -> Self:
            self._bar.start()
            return self

        def __exit__(self, *_: object) -> None:
            self._bar.stop()

        def event(self, event: Event, depth: int = 0) -> None:
            if event.kind != "progress":
                super().event(event, depth)
                return
            body = event.body
            description = strip(str(body.get("message") or body.get("units") or "progress"))[:60]
            if self._task is None:
                self._task = self._bar.add_task(description, total=None)
            total, current = _number(body.get("total")), _number(body.get("current"))
            self._bar.update(self._task, description=description, completed=current or 0, total=total)

        def _print(self, text: str) -> None:  # type: ignore[override]
            # The text's only escape sequences are our own colours: the rest was stripped.
            self._console.print(Text.from_ansi(text))

    return ProgressView()


def describe(event: Event) -> str:
    """Return an event's body as one line of text."""
    body = event.body
    describe_body = _DESCRIPTIONS.get(event.kind)
    text = describe_body(body) if describe_body is not None else _json(body)
    text = strip(text).replace("\n", " ")
    return text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 1] + "…"


def budget_text(budget: Mapping[str, object] | None) -> str:
    """
    Return what is left of a job's budget.

    >>> budget_text({"USD": 0.5, "credits": "3"})
    'USD 0.5, credits 3'
    """
    return ", ".join(f"{strip(str(name))} {strip(str(amount))}" for name, amount in (budget or {}).items())


def _text(value: object) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: object) -> str:
    return json_bytes(value).decode() if value is not None else ""


def _result(result: object) -> str:
    if isinstance(result, bytes):
        return f"{len(result)} bytes"
    if isinstance(result, str):
        return "\n".join(strip(line) for line in result.splitlines())
    return msgspec.json.format(strip(_json(result)))


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _tool_result(body: dict[str, object]) -> str:
    error = body.get("error")
    if isinstance(error, dict):
        return (
            f"{_text(body.get('call_id'))} failed: {_text(error.get('code'))} {_text(error.get('message'))}"
        )
    return f"{_text(body.get('call_id'))} → {_text(body.get('result'))}"


def _progress(body: dict[str, object]) -> str:
    of = f" of {_text(body['total'])}" if body.get("total") is not None else ""
    return f"{_text(body.get('current'))}{of} {_text(body.get('units') or '')} {_text(body.get('message') or '')}".rstrip()


def _without_secret(event: Event) -> Event:
    """Return an event without the secret value that the event of a rotated credential contains (9.8)."""
    if event.kind != "status" or event.body.get("phase") != "credential_rotated":
        return event
    body = {name: value for name, value in event.body.items() if name != "value"}
    return msgspec.structs.replace(event, body=body)


def _chunk(body: dict[str, object]) -> str:
    data = body.get("data")
    return f"chunk {_text(body.get('chunk_seq'))}, {len(data) if isinstance(data, str) else 0} characters"


# kind → the text of its body. Bodies of other kinds are shown as JSON.
_DESCRIPTIONS: dict[str, Callable[[dict[str, object]], str]] = {
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
