"""`amends tasks list | show | retry | cancel | answer | verify`: look at agent tasks on a store, and say things to them."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

__all__ = ["add", "run"]

_STORE = "sqlite:///file or nats://host:port/name; else AMENDS_STORE"
# amends.tasks.Status, whose import would triple the time of a help.
STATUSES = ("pending", "in_progress", "completed", "failed", "cancelled", "input_required")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `tasks` subcommand."""
    from amends.commands.console import as_sentence

    words = "look at agent tasks on a store, retry or cancel them"
    tasks = subparsers.add_parser("tasks", help=words, description=as_sentence(words))
    actions = tasks.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (words, options, _) in _ACTIONS.items():
        action = actions.add_parser(name, help=words, description=as_sentence(words))
        action.add_argument("--store", metavar="URL", default=os.environ.get("AMENDS_STORE"), help=_STORE)
        action.add_argument("--name", default="tasks", help="the set of tasks, where a store has several")
        options(action)
        action.set_defaults(run=run)
    tasks.set_defaults(run=run)


def _of_many(action: argparse.ArgumentParser) -> None:
    action.add_argument("--status", choices=STATUSES, metavar="S", help=f"only those: {', '.join(STATUSES)}")
    action.add_argument("--limit", type=int, default=100, help="at most so many (100)")


def _of_one(action: argparse.ArgumentParser) -> None:
    action.add_argument("id", metavar="ID", help="the task")


def _of_an_answer(action: argparse.ArgumentParser) -> None:
    _of_a_step(action)
    action.add_argument("answer", metavar="JSON", help="the answer; text that is no JSON is taken as text")


def _of_a_look(action: argparse.ArgumentParser) -> None:
    _of_a_step(action)
    happened = action.add_mutually_exclusive_group(required=True)
    happened.add_argument("--happened", action="store_true", help="it did")
    happened.add_argument("--not-happened", dest="happened", action="store_false", help="it did not")
    action.add_argument("--result", metavar="JSON", help="what it gave, if it happened")


def _of_a_step(action: argparse.ArgumentParser) -> None:
    _of_one(action)
    action.add_argument("--step", help="which step, where several wait")


def run(args: argparse.Namespace) -> int:
    """Do it and print the outcome."""
    from amends.commands.console import emit, wants_json
    from amends.commands.store import store_failures
    from amends.errors.cli import NotFoundError
    from amends.tasks import TaskNotFoundError

    try:
        with store_failures():
            result = asyncio.run(_wanted(args))
    except TaskNotFoundError as error:
        raise NotFoundError(str(error)) from error
    if wants_json(args):
        emit(result)
    else:
        from amends.commands.tasks_view import text_of

        print(text_of(args.action, result))
    return 0


def _opened(args: argparse.Namespace) -> Any:
    """An orchestrator that works on nothing itself, on a store that is there already."""
    from amends.stores.address import parse
    from amends.tasks import Orchestrator

    if not args.store:
        raise ValueError("say which store: --store sqlite:///tasks.db, or AMENDS_STORE in the environment")
    address = parse(args.store)
    if address.scheme == "sqlite" and not Path(address.path).exists():
        raise ValueError(f"there is no file {address.path}: correct the path")
    return Orchestrator(store=args.store, worker=False, name=args.name)


async def _wanted(args: argparse.Namespace) -> dict[str, Any]:
    async with _opened(args) as orchestrator:
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
_Do = Callable[[Any, argparse.Namespace], Coroutine[Any, Any, dict[str, Any]]]

# action → (what it does, what it takes, who does it)
_ACTIONS: dict[str, tuple[str, _Options, _Do]] = {
    "list": ("the tasks of a store, the newest first", _of_many, _list),
    "show": (
        "one task: its response, its steps, and its timeline with every attempt and wait",
        _of_one,
        _show,
    ),
    "retry": (
        "try again what failed or was cancelled; what was finished and not undone stays",
        _of_one,
        _retry,
    ),
    "cancel": ("stop a task that is not over; what was done is undone", _of_one, _cancel),
    "answer": ("answer what a task asks for; it goes on", _of_an_answer, _answer),
    "verify": ("say whether an interrupted step happened; it goes on", _of_a_look, _verify),
}
