"""`amends runtime serve`: agents from your modules, behind a WebSocket or on stdin and stdout."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from ipaddress import ip_address
from typing import TYPE_CHECKING

from amends.commands.runtime import TOKEN
from amends.commands.runtime.load_runtime import AGENT_WORDS, loaded, with_bounds

if TYPE_CHECKING:
    from ssl import SSLContext

    from amends.arcp import Runtime

__all__ = ["options", "work"]


def options(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    parser.usage = "%(prog)s [options] [AGENT …]"
    parser.description = f"{parser.description} {AGENT_WORDS}"
    parser.add_argument("agents", nargs="*", metavar="AGENT", help=argparse.SUPPRESS)
    parser.add_argument("--store", metavar="URL", help="sqlite:///file or nats://host:port/name (memory)")
    with_bounds(parser)
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (127.0.0.1)")
    parser.add_argument("--port", type=int, default=7777, help="0 takes a free one (7777)")
    parser.add_argument(
        "--token",
        action="append",
        metavar="T",
        help=f"who may connect: TOKEN or PRINCIPAL=TOKEN, better in {TOKEN}; none: one is made and shown",
    )
    parser.add_argument("--stdio", action="store_true", help="serve one client on stdin and stdout instead")
    parser.add_argument("--tls-cert", metavar="FILE", help="the certificate, for wss:")
    parser.add_argument("--tls-key", metavar="FILE", help="its key, where it is not in the same file")
    parser.add_argument("--insecure", action="store_true", help="listen for other machines without TLS")


async def work(args: argparse.Namespace) -> int:
    """Serve until told to stop; then let running jobs end."""
    from amends.commands.store import store_failures
    from amends.errors.cli import ValidationError

    runtime, made = loaded(args)
    context = _tls(args)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def asked() -> None:
        stop.set()
        # Jobs get their time to end; whoever asks again does not want to wait for them.
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked)
    async with AsyncExitStack() as stack:
        with store_failures("--store"):
            await stack.enter_async_context(runtime)
        if args.stdio:
            await _on_stdio(runtime, stop)
            return 0
        try:
            listening = await stack.enter_async_context(runtime.listen(args.host, args.port, ssl=context))
        except (OSError, OverflowError):
            raise ValidationError(
                f"Port {args.port} of {args.host} cannot be listened on",
                suggestions=["--port 0"],
                field="--port",
            ) from None
        _announce(args, listening.url, made)
        await stop.wait()
    return 0


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
    try:
        local = args.host == "localhost" or ip_address(args.host).is_loopback
    except ValueError:
        local = False
    if not (local or args.insecure or args.stdio):
        raise ValidationError(
            "Tokens are not taken from other machines in the clear",
            suggestions=["--tls-cert FILE", "--insecure, where something in front has TLS"],
            field="--host",
        )
    return None


def _announce(args: argparse.Namespace, url: str, made: str | None) -> None:
    from amends.commands.console import json_bytes, wants_json
    from amends.commands.view import painter

    if wants_json(args):
        told = {"listening": url, **({"token": made} if made else {})}
        sys.stdout.write(json_bytes(told).decode() + "\n")
    else:
        paint = painter()
        sys.stdout.write(f"{paint('listening', 'green')} on {paint(url, 'bold')}\n")
        if made:
            sys.stdout.write(f"token {paint(made, 'bold')}  (or set {TOKEN} here and there)\n")
        sys.stdout.write(paint("Ctrl-C stops it, after its jobs have ended\n", "dim"))
    sys.stdout.flush()
