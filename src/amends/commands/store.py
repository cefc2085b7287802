"""`amends store info | check | copy`: look at a store, look it over, move it."""

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

    words = "look at, check or copy a durable store"
    store = subparsers.add_parser("store", help=words, description=as_sentence(words))
    actions = store.add_subparsers(dest="action", metavar="ACTION", required=True)
    url = "memory:, sqlite:///file or nats://host:port/name"
    for name, words in (
        ("info", "what is stored: names, sizes, sequence numbers"),
        ("check", "look at everything stored and say what is wrong; exit code 1 when something is"),
    ):
        action = actions.add_parser(name, help=words, description=as_sentence(words))
        action.add_argument("url", metavar="URL", help=url)
        action.set_defaults(run=run)
    words = "copy everything from one store to another, then compare them; begun again, it goes on"
    action = actions.add_parser("copy", help=words, description=as_sentence(words))
    action.add_argument("source", metavar="FROM", help=url)
    action.add_argument("target", metavar="TO", help=url)
    action.set_defaults(run=run)
    store.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Do it and print the outcome; 1 when a check or a copy found something wrong."""
    from amends.commands.console import emit, wants_json

    with store_failures():
        result = asyncio.run(_wanted(args))
    if wants_json(args):
        emit(result)
    else:
        print(_TEXTS[args.action](result))
    return 1 if result.get("problems") or result.get("differences") else 0


@contextmanager
def store_failures(field: str | None = None) -> Iterator[None]:
    """
    What stores raise is written for people and says what to do, most often behind its last colon.

    `field` is the option that named the store, where it was one.
    """
    from amends.errors.cli import ServiceUnavailableError, ValidationError
    from amends.stores.errors import StoreError, StoreUnavailableError

    try:
        yield
    except (StoreError, ImportError) as error:
        what, _, step = str(error).rpartition(": ")
        kind = ServiceUnavailableError if isinstance(error, StoreUnavailableError) else ValidationError
        raise kind(
            what or step, suggestions=[step[:1].upper() + step[1:]] if what else (), field=field
        ) from error
    except ValueError as error:
        raise ValidationError(str(error), field=field) from error


def _wanted(args: argparse.Namespace) -> Coroutine[Any, Any, dict[str, Any]]:
    if args.action == "copy":
        return _copy(args.source, args.target)
    return _check(args.url) if args.action == "check" else _info(args.url)


async def _info(url: str) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        store = await _opened(url, stack)
        names = await store.names()
        return {
            "url": store.url,
            "supports_transactions": store.supports_transactions,
            "logs": {name: asdict(await store.log(name).bounds()) for name in names["logs"]},
            "tables": {name: {"rows": await _count(store.table(name).scan())} for name in names["tables"]},
            "queues": {name: asdict(await store.queue(name).size()) for name in names["queues"]},
        }


async def _check(url: str) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        store = await _opened(url, stack)
        return {"url": store.url, "problems": await store.check()}


async def _copy(source: str, target: str) -> dict[str, Any]:
    from amends import stores
    from amends.stores.copy_store import copy

    async with AsyncExitStack() as stack:
        old = await _opened(source, stack)
        new = await stack.enter_async_context(await stores.open(target))
        return {"from": old.url, "to": new.url, **asdict(await copy(old, new))}


async def _opened(url: str, stack: AsyncExitStack) -> Any:
    """An existing store: asking about one that is not there must not make it."""
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
    verdict = "and both are the same" if not result["differences"] else "and they differ:"
    return "\n".join(
        [f"copied {counts} from {result['from']} to {result['to']}, {verdict}", *result["differences"]]
    )


_TEXTS = {"info": _info_text, "check": _check_text, "copy": _copy_text}
