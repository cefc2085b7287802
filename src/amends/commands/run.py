"""`amends run -- command …`: run somebody else's command, repeated only where that can help and cannot harm."""

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
        help="run a command, repeated where that helps",
        description="Run a command. It is repeated when its answer says that this helps and nothing says that it "
        "harms; an exit code of 0 never is.",
        usage="amends run [options] -- command …",
    )
    parser.add_argument("--max-attempts", type=_whole, default=3, metavar="N", help="runs in all (3)")
    parser.add_argument(
        "--max-wait", type=_seconds, default=300.0, metavar="S", help="seconds of waiting (300)"
    )
    parser.add_argument(
        "--deadline", type=_some_seconds, metavar="S", help="seconds for everything, runs included"
    )
    parser.add_argument("--timeout", type=_some_seconds, metavar="S", help="seconds for one run")
    effect = parser.add_mutually_exclusive_group()
    effect.add_argument(
        "--read-only", action="store_true", help="it changes nothing: unknown failures repeat"
    )
    effect.add_argument("--mutating", action="store_true", help="repeat only what surely did not run")
    parser.add_argument("--profile", choices=PROFILE_NAMES, help="what its exit codes mean")
    parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def _whole(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError("it is a whole number from 1 to 100")
    return int(text)


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e9:
        raise argparse.ArgumentTypeError("it is a number of seconds")
    return number


def _some_seconds(text: str) -> float:
    number = _seconds(text)
    if number == 0:
        raise argparse.ArgumentTypeError("it is more than 0 seconds")
    return number


def run(args: argparse.Namespace) -> int:
    """Run it, and leave as it left."""
    from amends.commands.console import words_after
    from amends.core.policy import Policy
    from amends.errors.base import FaultError
    from amends.process import run as run_command
    from amends.recovery import set_hooks

    command = words_after(args.words, "amends run")
    # Whoever has to choose wants the answer as data; in a plain pipe the command's own output is the answer.
    as_json = args.output == "json" or os.environ.get("AMENDS_OUTPUT") == "json"
    live = args.max_attempts == 1 and not as_json
    history: list[Attempt] = []
    started = time.monotonic()
    set_hooks(_teller(args.max_attempts))
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
            on_output=_streaming(live=live, quiet=as_json),
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
        return _answer({"ok": True, "data": _told(done), "error": None}, history, args.max_attempts, started)
    if not live:
        done.out.pour(sys.stdout.buffer)
    return 0


def _not_started(fault: Fault, program: str) -> FaultError:
    """Why a program cannot be run, as far as a look at it tells; its fault says the rest."""
    from msgspec.structs import replace

    from amends.errors.base import FaultError

    steps: tuple[str, ...] = ()
    if os.path.isdir(program):  # noqa: PTH112 - as the user wrote the name
        steps = (f"{program} is a directory: name a program in it",)
    elif fault.code == "PERMISSION_DENIED":
        steps = (f"Make {program} executable, or name what runs it: sh {program}",)
    elif fault.code == "NOT_FOUND":
        steps = (f"Install {program}, or give its whole path",)
    return FaultError.from_fault(
        replace(fault, message=f"{program} could not be started", suggestions=steps or fault.suggestions)
    )


def _input() -> Feed | None:
    """Our own stdin, recorded for a repeat; a terminal is handed on as it is."""
    from amends.process import Feed

    try:
        return None if os.isatty(0) else Feed(source=os.dup(0))
    except OSError:
        return Feed(b"")


def _streaming(*, live: bool, quiet: bool) -> Callable[[str, bytes], None] | None:
    """What it complains about as it comes; its stdout only where no repeat can make it wrong."""
    if quiet:
        return None

    def pass_on(stream: str, piece: bytes) -> None:
        if stream == "stderr" or live:
            to = sys.stderr if stream == "stderr" else sys.stdout
            to.buffer.write(piece)
            to.buffer.flush()

    return pass_on


def _failed_text(error: Any, last: Finished | None, *, live: bool) -> int:
    from amends.commands.view import sentence
    from amends.core.exits import exit_code

    if last is None:
        raise error
    if not live:
        last.out.pour(sys.stdout.buffer)
        sys.stdout.flush()
    runs = len(error.history)
    what = f"{error.fault.code} after {runs} run{'s' if runs > 1 else ''}"
    sys.stderr.write(f"amends: {what} · {sentence(error.decision)}\n")
    if last.exit:
        return last.exit
    return 128 + last.signal_number if last.signal_number else exit_code(error.fault)


def _failed_json(
    error: Any, last: Finished | None, history: list[Attempt], allowed: int, started: float
) -> int:
    from amends.cli.command_errors import told
    from amends.core.exits import exit_code
    from amends.dialects.envelope import encode_error

    fault = told(error.fault)
    envelope = {
        "ok": False,
        "data": None if last is None else _told(last),
        "error": {**encode_error(fault), "decision": error.decision},
    }
    _answer(envelope, history, allowed, started)
    return exit_code(fault)


def _answer(envelope: dict[str, Any], history: list[Attempt], allowed: int, started: float) -> int:
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
    return 0


def _told(done: Finished) -> dict[str, Any]:
    """The last run as data. Output that is no text is base64."""
    said: dict[str, Any] = {"exit": done.exit, "signal": done.signal, "truncated": done.truncated}
    for name in ("stdout", "stderr"):
        raw: bytes = getattr(done, name)
        try:
            said[name] = raw.decode()
        except UnicodeDecodeError:
            said[f"{name}_base64"] = base64.b64encode(raw).decode()
    return said


def _teller(allowed: int) -> Callable[[Event], Any]:
    """A live line on a terminal, a plain one elsewhere: which run failed, as what, and when the next begins."""

    def tell(event: Event) -> Any:
        if event.kind != "retry":
            return None
        words = f"run {event.attempt} of {allowed}: {event.code}"
        if sys.stderr.isatty():
            return _counting(words, event.delay or 0.0)
        sys.stderr.write(f"amends: {words}, next in {event.delay or 0:.3g} s\n")
        return None

    return tell


@contextmanager
def _counting(words: str, seconds: float) -> Iterator[None]:
    """A line that counts down while recovery waits, and is gone afterwards."""
    over = threading.Event()
    until = time.monotonic() + seconds

    def draw() -> None:
        while True:
            left = max(0.0, until - time.monotonic())
            sys.stderr.write(f"\r\x1b[2Kamends: {words}, next in {left:.1f} s")
            sys.stderr.flush()
            if over.wait(0.1):
                return

    thread = threading.Thread(target=draw, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()
