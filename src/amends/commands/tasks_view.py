"""Text output of `amends tasks`: a table of tasks, and one task with its timeline."""

from __future__ import annotations

from typing import Any

from amends.commands.view import Painter, counted, painter
from amends.core.text import strip

__all__ = ["text_of"]

_COLOURS = {
    "completed": "green",
    "failed": "red",
    "cancelled": "dim",
    "input_required": "magenta",
    "in_progress": "yellow",
    "pending": "cyan",
}


def text_of(action: str, result: dict[str, Any]) -> str:
    """Return the result of a `tasks` action as text."""
    paint = painter()
    if action == "list":
        return "\n".join(_list_lines(result, paint))
    if action == "show":
        return "\n".join(_show_lines(result, paint))
    if "retried" in result:
        return "\n".join(
            [*map(strip, result["retried"]), f"{counted(len(result['retried']), 'task')} will be retried"]
        )
    if "handled" in result:
        return "ended" if result["handled"] is None else f"handled {counted(result['handled'], 'message')}"
    task = result["task"]
    if "next" in result:
        return f"{strip(task['id'])} is {_status(task['status'], paint)}: {strip(result['next'])}"
    return f"{strip(task['id'])} is {_status(task['status'], paint)}"


def _status(status: str, paint: Painter, width: int = 0) -> str:
    return paint(status.ljust(width), _COLOURS.get(status, "dim"))


def _list_lines(result: dict[str, Any], paint: Painter) -> list[str]:
    tasks = result["tasks"]
    if not tasks:
        return ["no tasks"]
    width = max(len(strip(task["id"])) for task in tasks)
    lines = []
    for task in tasks:
        kind = strip(task["type"]) + (f" at {strip(task['agent'])}" if "agent" in task else "")
        more = [strip(task["code"])] if "code" in task else []
        if "inDoubt" in task:
            more.append(paint("in doubt", "magenta"))
        if "question" in task:
            more.append(strip(task["question"]))
        if "dueAt" in task:
            more.append(f"due {task['dueAt']}")
        lines.append(
            f"{strip(task['id']).ljust(width)}  {_status(task['status'], paint, 14)}  {task['updatedAt']:<24}  "
            + "  ".join([kind, *more])
        )
    if result["total"] > len(tasks):
        lines.append(paint(f"and {result['total'] - len(tasks)} more", "dim"))
    return lines


def _show_lines(result: dict[str, Any], paint: Painter) -> list[str]:
    task = result["task"]
    lines = [f"{paint(strip(task['id']), 'bold')} is {_status(task['status'], paint)}"]
    error = task.get("error")
    if error is not None:
        lines.append(f"  {paint(strip(error['code']), 'bold')} {strip(error['message'])}")
    request = task.get("input")
    if request is not None:
        lines.append(f"  {paint(request['kind'], 'magenta')} {strip(str(request.get('question', '')))}")
    lines += [
        paint(f"  {strip(step['name'])}: {step['state']}, {counted(step['attempts'], 'attempt')}", "dim")
        for step in result["steps"]
    ]
    lines.append("")
    lines += [f"{line['at']:<24}  {line['text']}" for line in result["timeline"]]
    return lines
