"""`amends tasks list | show | retry | cancel | answer | verify`: inspect and control the agent tasks of a store."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

__all__ = ["add", "run"]

_STORE = "sqlite:///file or nats://host:port/name (default: AMENDS_STORE)"
# The values of amends.tasks.Status. Importing it would triple the time of --help.
STATUSES = ("pending", "in_progress", "completed", "failed", "cancelled", "input_required")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `tasks` subcommand."""
    from amends.commands.console import as_sentence

    summary = "inspect, retry or cancel the agent tasks of a store"
    tasks = subparsers.add_parser("tasks", help=summary, description=as_sentence(summary))
    actions = tasks.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (summary, options, _) in _ACTIONS.items():
        action = actions.add_parser(name, help=summary, description=as_sentence(summary))
        action.add_argument("--store", metavar="URL", default=os.environ.get("AMENDS_STORE"), help=_STORE)
        action.add_argument("--name", default="tasks", help="the set of tasks, if the store has several")
        options(action)
        action.set_defaults(run=run)
    tasks.set_defaults(run=run)


def _list_options(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "--status", choices=STATUSES, metavar="S", help=f"only this status: {', '.join(STATUSES)}"
    )
    action.add_argument("--limit", type=int, default=100, help="the most tasks to list (100)")


def _task_options(action: argparse.ArgumentParser) -> None:
    action.add_argument("id", metavar="ID", help="the task's id")


def _step_options(action: argparse.ArgumentParser) -> None:
    _task_options(action)
    action.add_argument("--step", help="the step, if several are waiting")


def _answer_options(action: argparse.ArgumentParser) -> None:
    _step_options(action)
    action.add_argument(
        "answer", metavar="JSON", help="the answer; anything that is not JSON is taken as text"
    )


def _verify_options(action: argparse.ArgumentParser) -> None:
    _step_options(action)
    happened = action.add_mutually_exclusive_group(required=True)
    happened.add_argument("--happened", action="store_true", help="the step took effect")
    happened.add_argument(
        "--not-happened", dest="happened", action="store_false", help="the step did not take effect"
    )
    action.add_argument("--result", metavar="JSON", help="the step's result, if it took effect")


def run(args: argparse.Namespace) -> int:
    """Run the action and print its result."""
    from amends.commands.console import emit, wants_json
    from amends.commands.store import store_failures
    from amends.errors.cli import NotFoundError
    from amends.tasks import TaskNotFoundError

    try:
        with store_failures():
            result = asyncio.run(_run_action(args))
    except TaskNotFoundError as error:
        raise NotFoundError(str(error)) from error
    if wants_json(args):
        emit(result)
    else:
        from amends.commands.tasks_view import text_of

        print(text_of(args.action, result))
    return 0


def _orchestrator(args: argparse.Namespace) -> Any:
    """Return an orchestrator on an existing store; it runs no tasks itself."""
    from amends.stores.address import parse
    from amends.tasks import Orchestrator

    if not args.store:
        raise ValueError("no store is given: use --store sqlite:///tasks.db, or set AMENDS_STORE")
    address = parse(args.store)
    if address.scheme == "sqlite" and not Path(address.path).exists():
        raise ValueError(f"there is no file {address.path}: correct the path")
    return Orchestrator(store=args.store, worker=False, name=args.name)


async def _run_action(args: argparse.Namespace) -> dict[str, Any]:
    async with _orchestrator(args) as orchestrator:
        return await _ACTIONS[args.action][2](orchestrator, args)


async def _list(orchestrator: Any, args: argparse.Namespace) -> dict[str, Any]:
    from amends.tasks.documents import stamp

    listed = sorted(
        [each async for each in orchestrator.list(args.status)], key=lambda each: each.created, reverse=True
    )
    rows = [
        {
            "id": each.id,
            "status": each.status,
            "type": each.type,
            "agent": each.agent,
            "code": each.code,
            "createdAt": stamp(each.created),
            "updatedAt": stamp(each.updated),
            "dueAt": None if each.due is None else stamp(each.due),
        }
        for each in listed[: max(args.limit, 0)]
    ]
    return {
        "tasks": [{name: value for name, value in row.items() if value is not None} for row in rows],
        "total": len(listed),
    }


async def _show(orchestrator: Any, args: argparse.Namespace) -> dict[str, Any]:
    import msgspec

    from amends.tasks.timeline import timeline

    state = await orchestrator.state(args.id)
    records = await orchestrator.records(args.id)
    return {
        "task": state.response().document(),
        "request": {"type": state.head.type, "agent": state.agent},
        "steps": [
            {"name": name, "state": step.state, "attempts": len(step.stepper.history)}
            for name, step in state.steps.items()
        ],
        "timeline": msgspec.to_builtins(timeline(records)),
    }


async def _retry(orchestrator: Any, args: argparse.Namespace) -> dict[str, Any]:
    return {"task": (await orchestrator.retry(args.id)).document()}


async def _cancel(orchestrator: Any, args: argparse.Namespace) -> dict[str, Any]:
    return {"task": (await orchestrator.cancel(args.id)).document()}


async def _answer(orchestrator: Any, args: argparse.Namespace) -> dict[str, Any]:
    response = await orchestrator.answer(args.id, _json(args.answer), step=args.step)
    return {"task": response.document()}


async def _verify(orchestrator: Any, args: argparse.Namespace) -> dict[str, Any]:
    result = None if args.result is None else _json(args.result)
    response = await orchestrator.verify(args.id, happened=args.happened, result=result, step=args.step)
    return {"task": response.document()}


def _json(text: str) -> Any:
    import msgspec

    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


_Options = Callable[[argparse.ArgumentParser], None]
_Action = Callable[[Any, argparse.Namespace], Coroutine[Any, Any, dict[str, Any]]]

# action → (summary, adds its arguments, runs it)
_ACTIONS: dict[str, tuple[str, _Options, _Action]] = {
    "list": ("list the tasks of a store, the newest first", _list_options, _list),
    "show": (
        "show one task: its response, its steps, and its timeline with every attempt and wait",
        _task_options,
        _show,
    ),
    "retry": (
        "retry a failed or cancelled task; finished steps that were not undone are kept",
        _task_options,
        _retry,
    ),
    "cancel": ("cancel an unfinished task; its finished steps are undone", _task_options, _cancel),
    "answer": ("answer a task's question and let it continue", _answer_options, _answer),
    "verify": (
        "report whether an interrupted step took effect, and let the task continue",
        _verify_options,
        _verify,
    ),
}
