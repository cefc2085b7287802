"""`amends decode`: what a response reports, and what to do about it, as one JSON object (mappings M6)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from amends.carriers.extraction import VIAS, examine_read
from amends.carriers.report import report
from amends.commands.console import emit, json_bytes, wants_json
from amends.commands.input import document, opened, unreadable
from amends.core.wire import MAX_BYTES, Unreadable, read

__all__ = ["add", "run"]

_CHUNK = 1 << 20


def add(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "decode",
        help="what a failure on stdin is, and what to do",
        description="Read a response from stdin (or FILE) and print what it reports and what to do about it.",
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help="read this file instead of stdin")
    parser.add_argument(
        "--via", choices=tuple(VIAS), help="where the response comes from; without it, its shape decides"
    )
    parser.add_argument("--jsonl", action="store_true", help="one response per line, one answer per line")
    parser.add_argument(
        "--unsafe", action="store_true", help="decide for an operation whose repeat is not safe"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Decode what comes in."""
    with opened(args.file) as stream:
        if args.jsonl:
            return _each_line(stream, args.via, safe=not args.unsafe)
        value = document(stream)
    result = report(*examine_read(value, args.via), safe=not args.unsafe)
    if wants_json(args):
        emit(result)
    else:
        from amends.commands.view import show_report

        show_report(result)
    return 0


def _each_line(stream: BinaryIO, via: str | None, *, safe: bool) -> int:
    """One answer per line, in constant memory. A line that cannot be read is answered and does not end the run."""
    import gc

    from amends.dialects import encode

    # Nothing here makes cycles, so looking for them every few hundred objects is work for nothing.
    gc.set_threshold(100_000)
    out = sys.stdout.buffer
    status = 0
    for batch in _batches(stream):
        answers: list[bytes] = []
        for number, line in batch:
            try:
                if line is None:
                    raise Unreadable.size()
                result = report(*examine_read(read(line), via, len(line)), safe=safe)
                answers.append(_encoder(result))
            except UnicodeEncodeError:
                answers.append(json_bytes(result))
            except Unreadable as error:
                status = 2
                answers.append(json_bytes(encode(unreadable(error, number).fault, "envelope")))
        if answers:
            answers.append(b"")
            out.write(b"\n".join(answers))
            out.flush()
    return status


_encoder = msgspec.json.Encoder().encode


def _batches(stream: BinaryIO) -> Iterator[list[tuple[int, bytes | None]]]:
    """
    The non-blank lines with their numbers, a chunk at a time; None for a line over the size limit.

    Reads what is there (read1), so that a slow producer is answered at once; a line that grows past the limit is
    dropped as it comes, so memory stays flat whatever is sent.
    """
    take = getattr(stream, "read1", stream.read)
    number = 0
    rest = b""
    dropping = False
    while chunk := take(_CHUNK):
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
