"""`amends trace ID`: everything that is recorded about one failure, in all processes that share the store."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amends.recorder.traces import Trace

__all__ = ["add", "check_exists", "run"]

STORE = "the recorder's store (default: AMENDS_RECORD, else the one of `amends gateway`)"


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `trace` subcommand."""
    from amends.commands.console import as_sentence

    summary = "show everything recorded about one failure"
    parser = subparsers.add_parser("trace", help=summary, description=as_sentence(summary))
    parser.add_argument("id", metavar="ID", help="a trace id, or its beginning")
    parser.add_argument("--store", metavar="URL", help=STORE)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the timeline of the trace."""
    from amends.commands.console import emit, wants_json
    from amends.commands.store import store_failures
    from amends.core.text import strip
    from amends.errors.cli import NotFoundError
    from amends.recorder.locations import default_url

    url = args.store or default_url()
    with store_failures():
        check_exists(url)
        traces = asyncio.run(_read(url, args.id.strip()))
    if not traces:
        raise NotFoundError(
            f"no event of the trace {strip(args.id)[:80]} is recorded",
            suggestions=[
                "amends watch --last 20",
                "set AMENDS_RECORD to the store that the program records to",
            ],
        )
    if wants_json(args):
        emit({"traces": [_document(trace) for trace in traces]})
    else:
        print("\n\n".join("\n".join(_lines(trace)) for trace in traces))
    return 0


def check_exists(url: str) -> None:
    """Refuse a SQLite file that does not exist: reading would create it."""
    from amends.stores.address import parse
    from amends.stores.errors import StoreError

    address = parse(url)
    if address.scheme == "sqlite" and not Path(address.path).exists():
        raise StoreError(
            f"there is no file {address.path}: record into it first, with amends.record or AMENDS_RECORD"
        )


async def _read(url: str, id: str) -> list[Trace]:
    from amends.recorder.reader import open_reader

    async with open_reader(url) as reader:
        return await reader.trace(id)


def _document(trace: Trace) -> dict[str, Any]:
    import msgspec

    return {
        "id": trace.id,
        "outcome": trace.outcome,
        "code": trace.code,
        "tries": trace.tries,
        "summary": trace.sentence,
        "processes": list(trace.processes),
        "timeline": msgspec.to_builtins(trace.lines),
        "events": msgspec.to_builtins(trace.events),
    }


def _lines(trace: Trace) -> list[str]:
    from amends.commands.view import painter
    from amends.core.text import strip

    paint = painter()
    several = len(trace.processes) > 1
    lines = [f"{paint(strip(trace.id) or 'no trace id', 'bold')}  {trace.sentence}"]
    for line in trace.lines:
        process = paint(f"  [{strip(line.process)}]", "dim") if several else ""
        lines.append(f"{paint(line.at[11:23], 'dim')}  {line.where:<13} {strip(line.text)}{process}")
    last = trace.events[-1].fault
    if last.message:
        lines.append(paint(f"{'':14}{strip(last.message)}", "dim"))
    lines += [f"{'':14}{paint('fix', 'cyan')} {strip(step)}" for step in last.suggestions]
    return lines
