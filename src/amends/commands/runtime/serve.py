"""`amends runtime serve`: serve the agents of your modules on a WebSocket or on stdin and stdout."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from amends.commands.runtime import TOKEN
from amends.commands.runtime.load_runtime import AGENT_SYNTAX, add_limit_options, load_runtime

if TYPE_CHECKING:
    from ssl import SSLContext

    from amends.arcp import Runtime

__all__ = ["options", "work"]

_SHOWN = 5
"""Jobs that are named while the command waits for them."""


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.usage = "%(prog)s [options] [AGENT …]"
    parser.description = f"{parser.description} {AGENT_SYNTAX}"
    parser.add_argument("agents", nargs="*", metavar="AGENT", help=argparse.SUPPRESS)
    parser.add_argument("--store", metavar="URL", help="sqlite:///file or nats://host:port/name (memory)")
    add_limit_options(parser)
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=7777, help="the port; 0 for a free one (7777)")
    parser.add_argument(
        "--token",
        action="append",
        metavar="T",
        help=f"TOKEN or PRINCIPAL=TOKEN; safer in {TOKEN} (default: a new one, printed)",
    )
    parser.add_argument("--stdio", action="store_true", help="serve one client on stdin and stdout instead")
    parser.add_argument("--tls-cert", metavar="FILE", help="the certificate, for wss:")
    parser.add_argument("--tls-key", metavar="FILE", help="its key, if it is not in the same file")
    parser.add_argument("--insecure", action="store_true", help="accept other machines without TLS")


async def work(args: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM, then wait for the running jobs. A second signal ends the command at once."""
    from amends.commands.store import store_failures
    from amends.errors.cli import ValidationError

    runtime, new_token = load_runtime(args)
    context = _tls(args)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def request_stop() -> None:
        stop.set()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, request_stop)
    async with AsyncExitStack() as stack:
        with store_failures("--store"):
            await stack.enter_async_context(runtime)
        if args.stdio:
            await _on_stdio(runtime, stop)
            return 0
        try:
            listening = await stack.enter_async_context(
                runtime.listen(args.host, args.port, ssl=context, insecure=args.insecure)
            )
        except (OSError, OverflowError):
            raise ValidationError(
                f"Cannot listen on port {args.port} of {args.host}",
                suggestions=["--port 0"],
                field="--port",
            ) from None
        _announce(args, listening.url, new_token)
        await stop.wait()
        _say_what_is_awaited(args, runtime)
    return 0


def _say_what_is_awaited(args: argparse.Namespace, runtime: Runtime) -> None:
    """Print to stderr which jobs the command waits for, and for how long."""
    jobs = [] if runtime.node is None else list(runtime.node.jobs)
    if jobs:
        names = ", ".join(f"{job.spec.job_id} of {job.spec.agent}" for job in jobs[:_SHOWN])
        more = f" and {len(jobs) - _SHOWN} more" if len(jobs) > _SHOWN else ""
        sys.stderr.write(
            f"waiting up to {runtime.limits.drain:g} s for {names}{more}; Ctrl-C again ends the command at once\n"
        )


async def _on_stdio(runtime: Runtime, stop: asyncio.Event) -> None:
    from amends.arcp.transports import stdio

    serving = asyncio.ensure_future(stdio.serve(runtime))
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    for task in (serving, stopping):
        task.cancel()
    await asyncio.gather(serving, stopping, return_exceptions=True)


def _tls(args: argparse.Namespace) -> SSLContext | None:
    from amends.errors.cli import ValidationError

    if args.tls_cert:
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(args.tls_cert, args.tls_key)
        except OSError:
            raise ValidationError("The certificate or its key cannot be read", field="--tls-cert") from None
        return context
    from amends.arcp.transports.websocket import is_local

    if not (args.insecure or args.stdio or is_local(args.host)):
        raise ValidationError(
            "Tokens of other machines would be sent unencrypted",
            suggestions=["Use --tls-cert FILE", "Use --insecure behind a proxy that has TLS"],
            field="--host",
        )
    return None


def _announce(args: argparse.Namespace, url: str, new_token: str | None) -> None:
    from amends.commands.console import json_bytes, wants_json
    from amends.commands.view import painter

    if wants_json(args):
        document = {"listening": url, **({"token": new_token} if new_token else {})}
        sys.stdout.write(json_bytes(document).decode() + "\n")
    else:
        paint = painter()
        sys.stdout.write(f"{paint('listening', 'green')} on {paint(url, 'bold')}\n")
        if new_token:
            sys.stdout.write(
                f"token {paint(new_token, 'bold')}  (set {TOKEN} for the server and its clients to choose one)\n"
            )
        sys.stdout.write(paint("Ctrl-C stops it when its jobs have ended\n", "dim"))
    sys.stdout.flush()
