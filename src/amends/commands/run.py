"""`amends run -- command …`: run an external command, and retry it where a retry can help and is safe."""

from __future__ import annotations

import argparse
import base64
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amends.core.fault import Fault
    from amends.errors.base import FaultError
    from amends.process import Feed, Finished
    from amends.recovery import Attempt, Event

__all__ = ["add", "run"]


def add(subparsers: Any) -> None:
    """Add the subcommand."""
    from amends.process import PROFILE_NAMES

    parser = subparsers.add_parser(
        "run",
        help="run a command, and retry it where that is safe",
        description="Run a command, and retry it if its failure is temporary and a retry is safe. Exit code 0 is "
        "never retried.",
        usage="amends run [options] -- command …",
    )
    parser.add_argument("--max-attempts", type=_attempts, default=3, metavar="N", help="runs in total (3)")
    parser.add_argument(
        "--max-wait", type=_seconds, default=300.0, metavar="S", help="seconds of waiting in total (300)"
    )
    parser.add_argument(
        "--deadline", type=_positive_seconds, metavar="S", help="seconds for all runs and waits together"
    )
    parser.add_argument("--timeout", type=_positive_seconds, metavar="S", help="seconds for one run")
    effect = parser.add_mutually_exclusive_group()
    effect.add_argument(
        "--read-only", action="store_true", help="it changes nothing: retry unknown failures, too"
    )
    effect.add_argument("--mutating", action="store_true", help="retry only if it certainly did not run")
    parser.add_argument("--profile", choices=PROFILE_NAMES, help="the meaning of its exit codes")
    parser.add_argument("argv", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def _attempts(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError("must be a whole number from 1 to 100")
    return int(text)


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e9:
        raise argparse.ArgumentTypeError("must be a number of seconds")
    return number


def _positive_seconds(text: str) -> float:
    number = _seconds(text)
    if number == 0:
        raise argparse.ArgumentTypeError("must be more than 0 seconds")
    return number


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from amends.commands.console import command_after_dashes
    from amends.core.policy import Policy
    from amends.errors.base import FaultError
    from amends.process import run as run_command
    from amends.recovery import set_hooks

    command = command_after_dashes(args.argv, "amends run")
    # JSON must be chosen: by default the command's own output passes through, in a pipe too.
    as_json = args.output == "json" or os.environ.get("AMENDS_OUTPUT") == "json"
    live = args.max_attempts == 1 and not as_json
    history: list[Attempt] = []
    started = time.monotonic()
    set_hooks(_retry_reporter(args.max_attempts))
    try:
        done = run_command(
            command,
            read_only=args.read_only,
            mutating=args.mutating,
            profile=args.profile,
            policy=Policy(
                attempts=args.max_attempts, max_wait=args.max_wait, deadline=args.deadline, rules={}
            ),
            timeout=args.timeout,
            stdin=_input(),
            on_output=_pass_on(live=live, quiet=as_json),
            history=history,
        )
    except FaultError as error:
        last = error.history[-1].result if error.history else None
        if last is not None and last.not_started is not None:
            raise _not_started(error.fault, command[0]) from None
        if as_json:
            return _failed_json(error, last, history, args.max_attempts, started)
        return _failed_text(error, last, live=live)
    if as_json:
        _write_envelope(
            {"ok": True, "data": _run_data(done), "error": None}, history, args.max_attempts, started
        )
        return 0
    if not live:
        done.out.copy_to(sys.stdout.buffer)
    return 0


def _not_started(fault: Fault, program: str) -> FaultError:
    """Return the error for a program that could not be started, with a suggestion for the common causes."""
    from msgspec.structs import replace

    from amends.errors.base import FaultError

    steps: tuple[str, ...] = ()
    if os.path.isdir(program):  # noqa: PTH112 - pathlib would normalise the user's name
        steps = (f"{program} is a directory: name a program in it",)
    elif fault.code == "PERMISSION_DENIED":
        steps = (f"Make {program} executable, or run it with its interpreter: sh {program}",)
    elif fault.code == "NOT_FOUND":
        steps = (f"Install {program}, or give its full path",)
    return FaultError.from_fault(
        replace(fault, message=f"{program} could not be started", suggestions=steps or fault.suggestions)
    )


def _input() -> Feed | None:
    """Return stdin as a feed that records it for a retry; None for a terminal, which the command inherits."""
    from amends.process import Feed

    try:
        return None if os.isatty(0) else Feed(source=os.dup(0))
    except OSError:
        return Feed(b"")


def _pass_on(*, live: bool, quiet: bool) -> Callable[[str, bytes], None] | None:
    """Return a callback that passes stderr on at once, and stdout only if no retry can follow (`live`)."""
    if quiet:
        return None

    def write(stream: str, piece: bytes) -> None:
        if stream == "stderr" or live:
            to = sys.stderr if stream == "stderr" else sys.stdout
            to.buffer.write(piece)
            to.buffer.flush()

    return write


def _failed_text(error: Any, last: Finished | None, *, live: bool) -> int:
    from amends.commands.view import sentence
    from amends.core.exits import exit_code

    if last is None:
        raise error
    if not live:
        last.out.copy_to(sys.stdout.buffer)
        sys.stdout.flush()
    runs = len(error.history)
    failure = f"{error.fault.code} after {runs} run{'s' if runs > 1 else ''}"
    sys.stderr.write(f"amends: {failure} · {sentence(error.decision)}\n")
    if last.exit:
        return last.exit
    return 128 + last.signal_number if last.signal_number else exit_code(error.fault)


def _failed_json(
    error: Any, last: Finished | None, history: list[Attempt], allowed: int, started: float
) -> int:
    from amends.cli.command_errors import as_cli_fault
    from amends.core.exits import exit_code
    from amends.dialects.envelope import encode_error

    fault = as_cli_fault(error.fault)
    envelope = {
        "ok": False,
        "data": None if last is None else _run_data(last),
        "error": {**encode_error(fault), "decision": error.decision},
    }
    _write_envelope(envelope, history, allowed, started)
    return exit_code(fault)


def _write_envelope(envelope: dict[str, Any], history: list[Attempt], allowed: int, started: float) -> None:
    from amends.cli.documents import to_json

    meta = {
        "attempt": max(1, len(history)),
        "max_attempts": allowed,
        "duration_ms": round((time.monotonic() - started) * 1000),
        "runs": [
            {
                "exit": attempt.result.exit if attempt.result is not None else 0,
                "code": attempt.fault.code if attempt.fault is not None else None,
                "duration_ms": round(attempt.duration * 1000),
                "waited_ms": round(attempt.wait * 1000),
            }
            for attempt in history
        ],
    }
    sys.stdout.buffer.write(to_json({**envelope, "meta": meta}))


def _run_data(done: Finished) -> dict[str, Any]:
    """Return the last run as the envelope's data. Output that is not UTF-8 is written as base64."""
    data: dict[str, Any] = {"exit": done.exit, "signal": done.signal, "truncated": done.truncated}
    for name in ("stdout", "stderr"):
        raw: bytes = getattr(done, name)
        try:
            data[name] = raw.decode()
        except UnicodeDecodeError:
            data[f"{name}_base64"] = base64.b64encode(raw).decode()
    return data


def _retry_reporter(allowed: int) -> Callable[[Event], Any]:
    """Return a recovery hook that reports each retry on stderr: the run, its code, and a countdown on a terminal."""

    def report(event: Event) -> Any:
        if event.kind != "retry":
            return None
        failed_run = f"run {event.attempt} of {allowed}: {event.code}"
        if sys.stderr.isatty():
            return _countdown(failed_run, event.delay or 0.0)
        sys.stderr.write(f"amends: {failed_run}, next in {event.delay or 0:.3g} s\n")
        return None

    return report


@contextmanager
def _countdown(failed_run: str, seconds: float) -> Iterator[None]:
    """Show a line that counts down while recovery waits, and clear it afterwards."""
    stopped = threading.Event()
    deadline = time.monotonic() + seconds

    def draw() -> None:
        while True:
            left = max(0.0, deadline - time.monotonic())
            sys.stderr.write(f"\r\x1b[2Kamends: {failed_run}, next in {left:.1f} s")
            sys.stderr.flush()
            if stopped.wait(0.1):
                return

    thread = threading.Thread(target=draw, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()
