"""`amends store info | check | copy | sql`: list the contents of a store, check it, copy it, or print its tables."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from amends.commands.console import Subparsers
    from amends.stores.contract import Row, Store

__all__ = ["add", "run", "store_failures"]


def add(subparsers: Subparsers) -> None:
    """Add the `store` subcommand."""
    from amends.commands.console import as_sentence

    summary = "inspect, check or copy a durable store"
    store = subparsers.add_parser("store", help=summary, description=as_sentence(summary))
    actions = store.add_subparsers(dest="action", metavar="ACTION", required=True)
    url = "memory:, sqlite:///file, nats://host:port/name or postgres://user@host/database"
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
    summary = "print the SQL that creates the tables of a store in Postgres, for a role that may create them"
    action = actions.add_parser("sql", help=summary, description=as_sentence(summary))
    action.set_defaults(run=run_sql)
    store.set_defaults(run=run)


def run_sql(args: argparse.Namespace) -> int:
    """Print the tables of a store in Postgres, as SQL also into a pipe: `amends store sql | psql`."""
    from amends.stores.postgres.schema import DDL

    print(DDL.strip())
    return 0


def run(args: argparse.Namespace) -> int:
    """Run the action and print its result. Return 1 if a check found problems or a copy found differences."""
    from amends.commands.console import emit, wants_json

    with store_failures():
        result = asyncio.run(_run_action(args))
    if wants_json(args):
        emit(result)
    else:
        print(result.text())
    return 1 if result.wrong else 0


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
    except (StoreError, ValueError) as error:
        what, _, step = str(error).rpartition(": ")
        kind = ServiceUnavailableError if isinstance(error, StoreUnavailableError) else ValidationError
        raise kind(
            what or step, suggestions=[step[:1].upper() + step[1:]] if what else (), field=field
        ) from error


class _Info(msgspec.Struct, frozen=True):
    """What is stored."""

    url: str
    transactions: bool
    logs: dict[str, dict[str, int]]
    tables: dict[str, dict[str, int]]
    queues: dict[str, dict[str, int]]

    wrong = False

    def text(self) -> str:
        from amends.commands.view import counted

        lines = [self.url]
        for name, log in self.logs.items():
            lines.append(f"  log    {name}: entries {log['first']} to {log['last']}")
        for name, table in self.tables.items():
            lines.append(f"  table  {name}: {counted(table['rows'], 'row')}")
        for name, queue in self.queues.items():
            lines.append(
                f"  queue  {name}: " + ", ".join(f"{count} {state}" for state, count in queue.items())
            )
        return "\n".join(lines if len(lines) > 1 else [*lines, "  nothing is stored here"])


class _Checked(msgspec.Struct, frozen=True):
    """What a check found."""

    url: str
    problems: list[str]

    @property
    def wrong(self) -> bool:
        return bool(self.problems)

    def text(self) -> str:
        from amends.commands.view import counted

        found = counted(len(self.problems), "problem") if self.problems else "no problems"
        return "\n".join([f"{self.url}: {found}", *self.problems])


class _Copied(msgspec.Struct, frozen=True):
    """What was copied, and what differs."""

    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    logs: int
    entries: int
    tables: int
    rows: int
    queues: int
    messages: int
    dead: int
    differences: list[str]

    @property
    def wrong(self) -> bool:
        return bool(self.differences)

    def text(self) -> str:
        from amends.commands.view import counted

        counts = [counted(self.entries, "entry", "entries"), counted(self.rows, "row")]
        counts += [counted(self.messages, "message"), counted(self.dead, "dead message")]
        comparison = "the stores differ:" if self.differences else "the stores are identical"
        done = f"copied {', '.join(counts)} from {self.source} to {self.target}"
        return "\n".join([f"{done}; {comparison}", *self.differences])


async def _run_action(args: argparse.Namespace) -> _Info | _Checked | _Copied:
    if args.action == "copy":
        return await _copy(args.source, args.target)
    return await (_check if args.action == "check" else _info)(args.url)


async def _info(url: str) -> _Info:
    async with AsyncExitStack() as stack:
        store = await _open_existing(url, stack)
        names = await store.names()
        return _Info(
            url=store.url,
            transactions=store.traits.transactions,
            logs={name: asdict(await store.log(name).bounds()) for name in names["logs"]},
            tables={name: {"rows": await _count(store.table(name).scan())} for name in names["tables"]},
            queues={name: asdict(await store.queue(name).size()) for name in names["queues"]},
        )


async def _check(url: str) -> _Checked:
    async with AsyncExitStack() as stack:
        store = await _open_existing(url, stack)
        return _Checked(store.url, list(await store.check()))


async def _copy(source: str, target: str) -> _Copied:
    from amends import stores
    from amends.stores.copy_store import copy

    async with AsyncExitStack() as stack:
        old = await _open_existing(source, stack)
        new = await stack.enter_async_context(await stores.open(target))
        return _Copied(old.url, new.url, **asdict(await copy(old, new)))


async def _open_existing(url: str, stack: AsyncExitStack) -> Store:
    """Open an existing store. A missing SQLite file is an error, because opening it would create it."""
    from amends import stores
    from amends.stores.address import parse

    address = parse(url)
    if address.scheme == "sqlite" and not Path(address.path).exists():  # noqa: ASYNC240  (nothing else runs yet)
        raise stores.StoreError(f"there is no file {address.path}: correct the path")
    return await stack.enter_async_context(await stores.open(url))


async def _count(items: AsyncIterator[Row]) -> int:
    return sum([1 async for _ in items])
