"""`amends store info | check | copy`: list the contents of a store, check it, or copy it."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

__all__ = ["add", "run", "store_failures"]


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `store` subcommand."""
    from amends.commands.console import as_sentence

    summary = "inspect, check or copy a durable store"
    store = subparsers.add_parser("store", help=summary, description=as_sentence(summary))
    actions = store.add_subparsers(dest="action", metavar="ACTION", required=True)
    url = "memory:, sqlite:///file or nats://host:port/name"
    for name, summary in (
        ("info", "list what is stored: names, sizes, sequence numbers"),
        ("check", "check everything stored and list the problems; exit with 1 if there are any"),
    ):
        action = actions.add_parser(name, help=summary, description=as_sentence(summary))
        action.add_argument("url", metavar="URL", help=url)
        action.set_defaults(run=run)
    summary = "copy everything from one store to another, then compare them; run it again to resume"
    action = actions.add_parser("copy", help=summary, description=as_sentence(summary))
    action.add_argument("source", metavar="FROM", help=url)
    action.add_argument("target", metavar="TO", help=url)
    action.set_defaults(run=run)
    store.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the action and print its result. Return 1 if a check found problems or a copy found differences."""
    from amends.commands.console import emit, wants_json

    with store_failures():
        result = asyncio.run(_run_action(args))
    if wants_json(args):
        emit(result)
    else:
        print(_TEXTS[args.action](result))
    return 1 if result.get("problems") or result.get("differences") else 0


@contextmanager
def store_failures(field: str | None = None) -> Iterator[None]:
    """
    Raise what stores raise as errors of the command line.

    A store's message usually ends with the remedy, after its last colon; that part becomes the suggestion.

    Args:
        field: the option that named the store, if it was an option.

    """
    from amends.errors.cli import ServiceUnavailableError, ValidationError
    from amends.stores.errors import StoreError, StoreUnavailableError

    try:
        yield
    except StoreError as error:
        what, _, step = str(error).rpartition(": ")
        kind = ServiceUnavailableError if isinstance(error, StoreUnavailableError) else ValidationError
        raise kind(
            what or step, suggestions=[step[:1].upper() + step[1:]] if what else (), field=field
        ) from error
    except ValueError as error:
        raise ValidationError(str(error), field=field) from error


def _run_action(args: argparse.Namespace) -> Coroutine[Any, Any, dict[str, Any]]:
    if args.action == "copy":
        return _copy(args.source, args.target)
    return _check(args.url) if args.action == "check" else _info(args.url)


async def _info(url: str) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        store = await _open_existing(url, stack)
        names = await store.names()
        return {
            "url": store.url,
            "transactions": store.traits.transactions,
            "logs": {name: asdict(await store.log(name).bounds()) for name in names["logs"]},
            "tables": {name: {"rows": await _count(store.table(name).scan())} for name in names["tables"]},
            "queues": {name: asdict(await store.queue(name).size()) for name in names["queues"]},
        }


async def _check(url: str) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        store = await _open_existing(url, stack)
        return {"url": store.url, "problems": await store.check()}


async def _copy(source: str, target: str) -> dict[str, Any]:
    from amends import stores
    from amends.stores.copy_store import copy

    async with AsyncExitStack() as stack:
        old = await _open_existing(source, stack)
        new = await stack.enter_async_context(await stores.open(target))
        return {"from": old.url, "to": new.url, **asdict(await copy(old, new))}


async def _open_existing(url: str, stack: AsyncExitStack) -> Any:
    """Open an existing store. A missing SQLite file is an error, because opening it would create it."""
    from amends import stores
    from amends.stores.address import parse

    address = parse(url)
    if address.scheme == "sqlite" and not Path(address.path).exists():  # noqa: ASYNC240  (nothing else runs yet)
        raise stores.StoreError(f"there is no file {address.path}: correct the path")
    return await stack.enter_async_context(await stores.open(url))


async def _count(items: Any) -> int:
    return sum([1 async for _ in items])


def _info_text(result: dict[str, Any]) -> str:
    lines = [result["url"]]
    for name, log in result["logs"].items():
        lines.append(f"  log    {name}: entries {log['first']} to {log['last']}")
    for name, table in result["tables"].items():
        lines.append(f"  table  {name}: {table['rows']} rows")
    for name, queue in result["queues"].items():
        lines.append(f"  queue  {name}: " + ", ".join(f"{count} {state}" for state, count in queue.items()))
    return "\n".join(lines if len(lines) > 1 else [*lines, "  nothing is stored here"])


def _check_text(result: dict[str, Any]) -> str:
    return "\n".join([f"{result['url']}: {len(result['problems']) or 'no'} problems", *result["problems"]])


def _copy_text(result: dict[str, Any]) -> str:
    counts = ", ".join(f"{result[what]} {what}" for what in ("entries", "rows", "messages", "dead"))
    comparison = "the stores differ:" if result["differences"] else "the stores are identical"
    return "\n".join(
        [f"copied {counts} from {result['from']} to {result['to']}; {comparison}", *result["differences"]]
    )


_TEXTS = {"info": _info_text, "check": _check_text, "copy": _copy_text}
