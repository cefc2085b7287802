"""`amends tasks …`: run, submit, inspect and control the agent tasks of a store."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from amends.commands.tasks_work import json_or_text, load_agents, next_step, submit, work

if TYPE_CHECKING:
    from amends.commands.console import Subparsers
    from amends.tasks import Orchestrator
    from amends.tasks.state import TaskRow

__all__ = ["add", "run"]

_STORE = "sqlite:///file or nats://host:port/name (default: AMENDS_STORE)"
# The values of amends.tasks.Status. Importing it would triple the time of --help.
STATUSES = ("pending", "in_progress", "completed", "failed", "cancelled", "input_required")


def add(subparsers: Subparsers) -> None:
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
    action.add_argument("--type", help="only this capability")
    action.add_argument("--agent", help="only this agent")
    action.add_argument(
        "--older-than", type=float, metavar="S", help="only tasks created more than S seconds ago"
    )
    action.add_argument(
        "--newer-than", type=float, metavar="S", help="only tasks created less than S seconds ago"
    )
    action.add_argument(
        "--attention",
        action="store_true",
        help="only tasks that failed, wait for input, or have a step in doubt",
    )
    action.add_argument("--limit", type=int, default=100, metavar="N", help="the most tasks to list (100)")


def _task_options(action: argparse.ArgumentParser) -> None:
    action.add_argument("id", metavar="ID", help="the task's id")


def _retry_options(action: argparse.ArgumentParser) -> None:
    action.add_argument("id", metavar="ID", nargs="?", help="the task's id")
    action.add_argument("--all", action="store_true", help="all failed tasks that the filters match")
    action.add_argument("--code", help="with --all: only tasks that failed with this code")
    action.add_argument("--type", help="with --all: only this capability")
    action.add_argument("--agent", help="with --all: only this agent")


def _submit_options(action: argparse.ArgumentParser) -> None:
    action.add_argument("type", metavar="CAPABILITY", help="the capability")
    action.add_argument(
        "payload", metavar="JSON", nargs="?", help="the input; what is not JSON is taken as text"
    )
    action.add_argument("--agent", help="the agent")
    action.add_argument("--id", help="the task's id (default: a random one)")
    action.add_argument("--key", help="an idempotency key")
    action.add_argument("--deadline", type=float, metavar="S", help="seconds for the whole task")
    action.add_argument("--wait", type=float, metavar="S", help="wait up to S seconds for the task")


def _worker_options(action: argparse.ArgumentParser) -> None:
    action.add_argument("agents", metavar="MODULE:AGENTS", help="an agent, or a list of agents, in a module")
    action.add_argument("--concurrency", type=int, default=64, metavar="N", help="tasks at once (64)")
    action.add_argument("--drain", action="store_true", help="work on what is due, and end")


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
    from amends.errors.cli import NotFoundError, UsageError
    from amends.tasks import TaskNotFoundError

    if args.action == "retry" and (args.id is None) != args.all:
        raise UsageError(
            "amends tasks retry needs either ID or --all",
            suggestions=["amends tasks retry ID", "amends tasks retry --all"],
        )
    try:
        with store_failures():
            result = asyncio.run(_run_action(args))
    except TaskNotFoundError as error:
        raise NotFoundError(str(error), suggestions=["See the ids with amends tasks list"]) from error
    if wants_json(args):
        emit(result)
    else:
        from amends.commands.tasks_view import text_of

        print(text_of(args.action, result))
    return 0


def _orchestrator(args: argparse.Namespace) -> Orchestrator:
    """Return an orchestrator on an existing store; it runs no tasks itself."""
    from amends.commands.store_option import require_file, require_store
    from amends.tasks import Orchestrator

    require_store(args.store, "sqlite:///tasks.db")
    if args.action == "worker":
        agents, works = load_agents(args.agents), not args.drain
        return Orchestrator(
            agents, store=args.store, worker=works, name=args.name, concurrency=args.concurrency
        )
    if args.action != "submit":
        require_file(args.store)
    return Orchestrator(store=args.store, worker=False, name=args.name)


async def _run_action(args: argparse.Namespace) -> dict[str, object]:
    async with _orchestrator(args) as orchestrator:
        return await _ACTIONS[args.action][2](orchestrator, args)


async def _list(orchestrator: Orchestrator, args: argparse.Namespace) -> dict[str, object]:
    from amends.tasks.documents import stamp

    found = [each async for each in orchestrator.list(args.status) if _matches(each, args)]
    listed = sorted(found, key=lambda each: each.created, reverse=True)
    rows = [
        {
            "id": each.id,
            "status": each.status,
            "type": each.type,
            "agent": each.agent,
            "code": each.code,
            "question": each.question,
            "inDoubt": each.in_doubt or None,
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


def _matches(row: TaskRow, args: argparse.Namespace) -> bool:
    """Whether the filters of the command match a task."""
    import time

    age = time.time() - row.created
    wanted = {name: getattr(args, name, None) for name in ("type", "agent", "code")}
    if any(value is not None and getattr(row, name) != value for name, value in wanted.items()):
        return False
    older, newer = getattr(args, "older_than", None), getattr(args, "newer_than", None)
    if (older is not None and age <= older) or (newer is not None and age >= newer):
        return False
    attention = row.in_doubt or row.status in {"failed", "input_required"}
    return attention or not vars(args).get("attention")


async def _show(orchestrator: Orchestrator, args: argparse.Namespace) -> dict[str, object]:
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


async def _retry(orchestrator: Orchestrator, args: argparse.Namespace) -> dict[str, object]:
    if not args.all:
        doubtful = (await orchestrator.state(args.id)).in_doubt
        return {
            "task": (await orchestrator.retry(args.id)).document(),
            "next": await next_step(orchestrator, args.id, doubtful),
        }
    retried = []
    async for row in orchestrator.list("failed"):
        if _matches(row, args):
            await orchestrator.retry(row.id)
            retried.append(row.id)
    return {"retried": retried}


async def _cancel(orchestrator: Orchestrator, args: argparse.Namespace) -> dict[str, object]:
    task = (await orchestrator.cancel(args.id)).document()
    if task["status"] in {"completed", "failed", "cancelled"}:
        return {"task": task, "next": "nothing changes: the task is over"}
    return {"task": task, "next": await next_step(orchestrator, args.id, [])}


async def _answer(orchestrator: Orchestrator, args: argparse.Namespace) -> dict[str, object]:
    response = await orchestrator.answer(args.id, json_or_text(args.answer), step=args.step)
    return {"task": response.document()}


async def _verify(orchestrator: Orchestrator, args: argparse.Namespace) -> dict[str, object]:
    result = None if args.result is None else json_or_text(args.result)
    response = await orchestrator.verify(args.id, happened=args.happened, result=result, step=args.step)
    return {"task": response.document()}


_Options = Callable[[argparse.ArgumentParser], None]
_Action = Callable[["Orchestrator", argparse.Namespace], Awaitable[dict[str, object]]]

# action → (summary, adds its arguments, runs it)
_ACTIONS: dict[str, tuple[str, _Options, _Action]] = {
    "worker": ("work on the tasks of a store with the agents of a module", _worker_options, work),
    "submit": ("submit a task", _submit_options, submit),
    "list": ("list the tasks of a store, the newest first", _list_options, _list),
    "show": (
        "show one task: its response, its steps, and its timeline with every attempt and wait",
        _task_options,
        _show,
    ),
    "retry": (
        "retry a failed or cancelled task, or all failed ones; finished steps that were not undone are kept",
        _retry_options,
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
