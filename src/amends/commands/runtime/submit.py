"""`amends runtime submit`: a job, its events as they come, its result or failure as this command's own."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from amends.commands.runtime import connecting, with_runtime
from amends.commands.runtime.job_view import show, tell_line, told_as_json

if TYPE_CHECKING:
    from amends.arcp import Client, Handle

__all__ = ["options", "work"]


def options(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    parser.usage = "%(prog)s [options] URL AGENT [INPUT]"
    with_runtime(parser)
    parser.add_argument("agent", metavar="AGENT", help="NAME or NAME@VERSION")
    parser.add_argument("input", nargs="?", metavar="INPUT", help="JSON; @file for a file, - for stdin")
    parser.add_argument("--key", metavar="K", help="idempotency key: the same key is the same job")
    parser.add_argument(
        "--max-runtime", type=float, metavar="S", help="seconds after which it ends with TIMEOUT"
    )
    parser.add_argument(
        "--lease",
        action="append",
        default=[],
        metavar="WHAT",
        help="what it may do: CAPABILITY=PATTERN, as fs.read=/workspace/**; again for more",
    )
    parser.add_argument("--expires-at", metavar="TIME", help="until when it may: 2026-05-13T23:42:00Z")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--detach", action="store_true", help="leave once it is accepted; `cancel` finds it again"
    )
    how.add_argument("--recover", action="store_true", help="try again where that can help, under one key")


async def work(args: argparse.Namespace) -> int:
    """Submit, watch, and end as the job ends."""
    given = _input(args.input)
    job: dict[str, Any] = {
        "max_runtime_sec": args.max_runtime,
        "lease": _lease(args.lease),
        "expires_at": args.expires_at,
    }
    async with connecting(args) as client:
        if args.recover:
            result = await client.submit_with_recovery(args.agent, given, idempotency_key=args.key, **job)
            return _recovered(args, result)
        handle = await client.submit(args.agent, given, idempotency_key=args.key, **job)
        if args.detach:
            return await _detached(args, client, handle)
        return await _followed(args, handle)


async def _followed(args: argparse.Namespace, handle: Handle) -> int:
    """Watch it; the first Ctrl-C cancels the job, and its end is then waited for."""
    loop = asyncio.get_running_loop()
    cancelling: list[asyncio.Task[None]] = []

    def interrupted() -> None:
        # A second one is the shell's business again.
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        cancelling.append(asyncio.ensure_future(handle.cancel("interrupted")))

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted)
    try:
        await show(args, handle)
    finally:
        await asyncio.gather(*cancelling, return_exceptions=True)
    return 0


async def _detached(args: argparse.Namespace, client: Client, handle: Handle) -> int:
    from amends.commands.runtime.saved_sessions import keep

    ticket = await client.detach()
    if ticket is not None:
        keep(handle.job_id, args.url, ticket)
    if told_as_json(args):
        tell_line({"job_id": handle.job_id, "agent": handle.agent, "status": "accepted"})
    else:
        sys.stdout.write(f"{handle.job_id}\n")
    return 0


def _recovered(args: argparse.Namespace, result: Any) -> int:
    if told_as_json(args):
        tell_line({"status": "success", "result": result})
    else:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(result)).decode() + "\n")
    return 0


def _input(word: str | None) -> Any:
    from amends.errors.cli import NotFoundError, ValidationError

    if word is None:
        return None
    try:
        text: str | bytes = word
        if word == "-":
            text = sys.stdin.buffer.read()
        elif word.startswith("@"):
            text = Path(word[1:]).read_bytes()
    except OSError:
        raise NotFoundError(f"There is no file {word[1:]} that can be read", field="INPUT") from None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        raise ValidationError(
            "The input is no JSON",
            suggestions=["A text is in quotes: '\"hello\"'", "@file reads a file"],
            field="INPUT",
        ) from None


def _lease(words: list[str]) -> dict[str, list[str]] | None:
    from amends.errors.cli import UsageError

    lease: dict[str, list[str]] = {}
    for word in words:
        capability, equals, pattern = word.partition("=")
        if not equals:
            raise UsageError("A lease is CAPABILITY=PATTERN", suggestions=["--lease 'fs.read=/workspace/**'"])
        lease.setdefault(capability, []).append(pattern)
    return lease or None
