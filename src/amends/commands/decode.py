"""`amends decode`: print what a response reports and what to do about it, as one JSON object (mappings M6)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from amends.carriers.extraction import VIAS, examine, examine_read
from amends.carriers.report import report
from amends.cli.arguments import close_matches
from amends.commands.console import emit, json_bytes, wants_json
from amends.commands.input import open_input, read_input, unreadable
from amends.commands.pasted import unwrapped
from amends.core.reading import Reading
from amends.core.wire import MAX_BYTES, Unreadable, read
from amends.errors.cli import ValidationError

__all__ = ["add", "examined", "run"]

_CHUNK = 1 << 20


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "decode",
        help="decode a failure and decide what to do",
        description="Read a response (JSON, curl -i, HAR, an event stream, log lines, a traceback) from stdin or FILE and print "
        "what it reports and what to do about it.",
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help="read this file instead of stdin")
    parser.add_argument(
        "--via",
        choices=tuple(VIAS),
        metavar="NAME",
        help=f"{', '.join(VIAS)} (default: detected by the shape)",
    )
    parser.add_argument("--vendor", metavar="NAME", help="the sender (default: detected)")
    parser.add_argument("--in-success", action="store_true", help="also look inside successful answers")
    parser.add_argument(
        "--jsonl", action="store_true", help="read one response and print one result per line"
    )
    parser.add_argument(
        "--unsafe", action="store_true", help="decide for an operation that is not safe to repeat"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Decode the input."""
    with open_input(args.file) as stream:
        if args.jsonl:
            return _each_line(stream, args.via, safe=not args.unsafe)
        value = read_input(stream)
    via, reading, document = examined(value, args)
    result = report(via, reading, document, safe=not args.unsafe)
    if wants_json(args):
        emit(result)
    else:
        from amends.commands.view import show_report

        show_report(result)
    return 0


def examined(value: object, args: argparse.Namespace) -> tuple[str | None, Reading, object]:
    """Examine a document, or a text that is none. The last item is the document that was examined."""
    vendor = check_vendor(args.vendor)
    if args.via is None or args.via == "http":
        value = unwrapped(value)
    if isinstance(value, Reading):
        return None, value, None
    if vendor is None and not args.in_success and isinstance(value, dict):
        return *examine_read(value, args.via), value
    return *examine(value, args.via, vendor=vendor, in_success=args.in_success), value


def check_vendor(name: str | None) -> str | None:
    """Return the name of a vendor for its name or an alias."""
    if name is None:
        return None
    from amends.vendors.registry import check
    from amends.vendors.registry import names as service_names

    try:
        return check(name)
    except LookupError:
        raise ValidationError(
            f"no vendor {name!r}",
            field="--vendor",
            suggestions=[
                f"Did you mean {match}?" for match in close_matches(name.lower(), sorted(service_names()))
            ]
            or ["See the names with amends explain :"],
        ) from None


def _each_line(stream: BinaryIO, via: str | None, *, safe: bool) -> int:
    """Print one result per line, in constant memory. An unreadable line gives an error envelope and the run continues."""
    from amends.dialects import encode

    out = sys.stdout.buffer
    status = 0
    for batch in _batches(stream):
        results: list[bytes] = []
        for number, line in batch:
            try:
                if line is None:
                    raise Unreadable.size()
                value = read(line)
                result = report(*examine_read(value, via, len(line)), value, safe=safe)
                results.append(_encode(result))
            except UnicodeEncodeError:
                results.append(json_bytes(result))
            except Unreadable as error:
                status = 2
                results.append(json_bytes(encode(unreadable(error, number).fault, "envelope")))
        if results:
            results.append(b"")
            out.write(b"\n".join(results))
            out.flush()
    return status


_encode = msgspec.json.Encoder().encode


def _batches(stream: BinaryIO) -> Iterator[list[tuple[int, bytes | None]]]:
    """
    Yield the non-blank lines with their numbers, one chunk at a time; None for a line over the size limit.

    `read1` returns the bytes that are available, so that a slow producer gets its results at once. A line over the limit
    is dropped while it arrives, so memory use does not grow.
    """
    read_available = getattr(stream, "read1", stream.read)
    number = 0
    rest = b""
    dropping = False
    while chunk := read_available(_CHUNK):
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        batch: list[tuple[int, bytes | None]] = []
        for line in lines:
            number += 1
            if dropping or len(line) > MAX_BYTES:
                batch.append((number, None))
                dropping = False
            elif line and not line.isspace():
                batch.append((number, line))
        if len(rest) > MAX_BYTES:
            rest, dropping = b"", True
        elif dropping:
            rest = b""
        yield batch
    if dropping:
        yield [(number + 1, None)]
    elif rest and not rest.isspace():
        yield [(number + 1, rest)]
