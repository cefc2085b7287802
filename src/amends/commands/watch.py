"""`amends watch`: follow the failures that are recorded, live, in the terminal."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amends.commands.trace import STORE, check_exists

if TYPE_CHECKING:
    from amends.recorder.event import Event

__all__ = ["add", "run"]

_COLOURS = {
    "retry": "yellow",
    "queued": "yellow",
    "recovered": "green",
    "fallback": "blue",
    "gave-up": "red",
    "failed": "red",
    "sent": "red",
    "passed-on": "red",
    "refused": "red",
    "doubt": "magenta",
}


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `watch` subcommand."""
    from amends.commands.console import as_sentence
    from amends.commands.numbers import count_argument

    summary = "follow recorded failures live"
    parser = subparsers.add_parser("watch", help=summary, description=as_sentence(summary))
    parser.add_argument("--store", metavar="URL", help=STORE)
    parser.add_argument("--trace", metavar="ID", default="", help="only this trace")
    parser.add_argument("--where", default="", help='only this binding, such as http, or "http server"')
    parser.add_argument("--code", default="", help="only this code")
    parser.add_argument("--outcome", default="", help="only this outcome, such as gave-up")
    parser.add_argument("--upstream", default="", help="only this service")
    parser.add_argument(
        "--last", type=count_argument, default=10, metavar="N", help="begin with the last N events (10)"
    )
    parser.add_argument("--no-follow", action="store_true", help="print the last events and end")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print events until interrupted."""
    from amends.commands.console import wants_json
    from amends.commands.store import store_failures
    from amends.recorder.locations import default_url

    url = args.store or default_url()
    with store_failures():
        if args.no_follow:
            check_exists(url)
        else:
            _announce(url)
        asyncio.run(_print_events(url, args, as_json=wants_json(args)))
    return 0


def _announce(url: str) -> None:
    """Say on stderr what is being watched: until something fails, there is nothing else to see."""
    from amends.stores.address import parse

    address = parse(url)
    missing = address.scheme == "sqlite" and not Path(address.path).exists()
    hint = "; nothing records into it yet (amends.record or AMENDS_RECORD)" if missing else ""
    sys.stderr.write(f"watching {address.display_url}{hint}; Ctrl-C ends\n")


async def _print_events(url: str, args: argparse.Namespace, *, as_json: bool) -> None:
    from amends.recorder.reader import Filter, open_reader

    wanted = Filter(
        trace=args.trace, where=args.where, code=args.code, outcome=args.outcome, upstream=args.upstream
    )
    async with open_reader(url) as reader:
        if args.no_follow:
            for event in reversed(await reader.events(wanted, limit=args.last)):
                _print(event, as_json=as_json)
            return
        async for event in reader.follow(wanted, last=args.last):
            _print(event, as_json=as_json)


def _print(event: Event, *, as_json: bool) -> None:
    from amends.commands.console import json_bytes

    text = json_bytes(event).decode() if as_json else _line(event)
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _line(event: Event) -> str:
    from amends.commands.view import painter
    from amends.core.text import strip
    from amends.recorder.traces import describe, stamp

    paint: Any = painter()
    colour = _COLOURS.get(event.outcome, "dim")
    trace = paint(f"  {strip(event.trace_id)[:16]}", "dim") if event.trace_id else ""
    return (
        f"{paint(stamp(event.at)[11:23], 'dim')}  {paint(f'{event.outcome:<9}', colour)} "
        f"{event.where:<13} {strip(describe(event))}{trace}"
    )
