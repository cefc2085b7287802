"""`amends runtime submit`: submit a job, print its events as they arrive, and exit as the job ends."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from amends.commands.console import wants_json
from amends.commands.numbers import positive_seconds
from amends.commands.runtime import add_client_options, open_client
from amends.commands.runtime.job_view import print_json_line, show_job
from amends.core.text import one_line, strip

if TYPE_CHECKING:
    from amends.arcp import Client, Handle

__all__ = ["options", "work"]


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.usage = "%(prog)s [options] URL AGENT [INPUT]"
    add_client_options(parser)
    parser.add_argument("agent", metavar="AGENT", help="NAME or NAME@VERSION")
    parser.add_argument("input", nargs="?", metavar="INPUT", help="JSON; @file for a file, - for stdin")
    parser.add_argument("--key", metavar="K", help="idempotency key: the same key is the same job")
    parser.add_argument(
        "--max-runtime", type=positive_seconds, metavar="S", help="seconds after which it fails with TIMEOUT"
    )
    parser.add_argument(
        "--lease",
        action="append",
        default=[],
        metavar="LEASE",
        help="a permission: CAPABILITY=PATTERN, as fs.read=/workspace/**; may be repeated",
    )
    parser.add_argument("--expires-at", metavar="TIME", help="the end of the lease: 2026-05-13T23:42:00Z")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--detach", action="store_true", help="exit once it is accepted; `cancel` can still cancel it"
    )
    how.add_argument("--recover", action="store_true", help="retry where that can help, with one key")


async def work(args: argparse.Namespace) -> int:
    """Submit the job, print its events, and exit as it ends."""
    given = _input(args.input)
    job: dict[str, Any] = {
        "max_runtime_sec": args.max_runtime,
        "lease": _lease(args.lease),
        "expires_at": args.expires_at,
    }
    async with open_client(args) as client:
        if args.recover:
            result = await client.submit_with_recovery(args.agent, given, idempotency_key=args.key, **job)
            return _print_result(args, result)
        handle = await client.submit(args.agent, given, idempotency_key=args.key, **job)
        if args.detach:
            return await _detach(args, client, handle)
        return await _follow(args, handle)


async def _follow(args: argparse.Namespace, handle: Handle) -> int:
    """Print the job's events. The first Ctrl-C cancels the job and waits for its end; a second one ends the command."""
    loop = asyncio.get_running_loop()
    cancelling: list[asyncio.Task[None]] = []

    def cancel() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        cancelling.append(asyncio.ensure_future(handle.cancel("interrupted")))

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, cancel)
    try:
        await show_job(args, handle)
    finally:
        await asyncio.gather(*cancelling, return_exceptions=True)
    return 0


async def _detach(args: argparse.Namespace, client: Client, handle: Handle) -> int:
    """Leave the session without closing it, and save its ticket for `cancel`."""
    from amends.commands.runtime.saved_sessions import keep

    ticket = await client.detach()
    if ticket is not None:
        keep(handle.job_id, args.url, ticket)
    if wants_json(args):
        print_json_line({"job_id": handle.job_id, "agent": handle.agent, "status": "accepted"})
    else:
        sys.stdout.write(f"{one_line(handle.job_id)}\n")
    return 0


def _print_result(args: argparse.Namespace, result: object) -> int:
    if wants_json(args):
        print_json_line({"status": "success", "result": result})
    else:
        text = msgspec.json.encode(result).decode()
        # What the agent returned stays whole for a program, and writes nothing but text on a terminal.
        sys.stdout.write(msgspec.json.format(strip(text) if sys.stdout.isatty() else text) + "\n")
    return 0


def _input(argument: str | None) -> object:
    """Return the job's input: the argument as JSON, or the JSON of a file (@file) or of stdin (-)."""
    from amends.errors.cli import NotFoundError, ValidationError

    if argument is None:
        return None
    try:
        text: str | bytes = argument
        if argument == "-":
            text = sys.stdin.buffer.read()
        elif argument.startswith("@"):
            text = Path(argument[1:]).read_bytes()
    except OSError:
        raise NotFoundError(f"The file {argument[1:]} cannot be read", field="INPUT") from None
    try:
        return msgspec.json.decode(text, type=object)
    except (msgspec.DecodeError, UnicodeError):
        raise ValidationError(
            "The input is not JSON",
            suggestions=["Put text in double quotes: '\"hello\"'", "Use @file to read a file"],
            field="INPUT",
        ) from None


def _lease(permissions: list[str]) -> dict[str, list[str]] | None:
    from amends.errors.cli import UsageError

    lease: dict[str, list[str]] = {}
    for permission in permissions:
        capability, equals, pattern = permission.partition("=")
        if not equals:
            raise UsageError(
                "--lease takes CAPABILITY=PATTERN", suggestions=["--lease 'fs.read=/workspace/**'"]
            )
        lease.setdefault(capability, []).append(pattern)
    return lease or None
