"""`amends run -- command …`: run an external command, and retry it where a retry can help and is safe."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from amends.commands.console import Subparsers
    from amends.core.fault import Fault
    from amends.errors.base import FaultError
    from amends.process import Feed, Finished, Passthrough
    from amends.recovery import Attempt, Event

__all__ = ["add", "run"]

GRACE = 2.0
"""Seconds that a run which was interrupted or timed out waits for a reader that does not read."""


def add(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    from amends.commands.numbers import positive_seconds, seconds
    from amends.process import PROFILE_NAMES

    parser = subparsers.add_parser(
        "run",
        help="run a command, and retry it where that is safe",
        description="Run a command, and retry it if its failure is temporary and a retry is safe. Exit code 0 is "
        "never retried.",
        usage="amends run [options] -- command …",
        output_help="json or problem: one document about the run; without it the command's own output passes through",
    )
    parser.add_argument("--max-attempts", type=_attempts, default=3, metavar="N", help="runs in total (3)")
    parser.add_argument(
        "--max-wait", type=seconds, default=300.0, metavar="S", help="seconds of waiting in total (300)"
    )
    parser.add_argument(
        "--deadline", type=positive_seconds, metavar="S", help="seconds for all runs and waits together"
    )
    parser.add_argument("--timeout", type=positive_seconds, metavar="S", help="seconds for one run")
    effect = parser.add_mutually_exclusive_group()
    effect.add_argument(
        "--read-only", action="store_true", help="it changes nothing: retry unknown failures, too"
    )
    effect.add_argument("--mutating", action="store_true", help="retry only if it certainly did not run")
    parser.add_argument(
        "--once", metavar="KEY", help="run it once per key; the ledger of effects is in --store"
    )
    parser.add_argument(
        "--store",
        metavar="URL",
        default=os.environ.get("AMENDS_STORE"),
        help="the ledger's store (AMENDS_STORE)",
    )
    parser.add_argument("--profile", choices=PROFILE_NAMES, help="the meaning of its exit codes")
    parser.add_argument("argv", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def _attempts(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError("must be a whole number from 1 to 100")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from amends.cli.command_errors import INTERRUPTED
    from amends.cli.invocation import Terminated
    from amends.commands.console import command_after_dashes, emit
    from amends.commands.run_documents import RunDocument
    from amends.core.policy import Policy
    from amends.errors.base import FaultError
    from amends.process import run as run_command
    from amends.process.spool import IN_MEMORY, MAX_OUTPUT
    from amends.recovery import CLI
    from amends.recovery.events import only_hooks

    command = command_after_dashes(args.argv, "amends run")
    # A document must be chosen: by default the command's own output passes through, in a pipe too.
    output = args.output or os.environ.get("AMENDS_OUTPUT")
    document = RunDocument(output, args.max_attempts) if output in {"json", "problem"} else None
    passthrough = None if document is not None else _passthrough()
    history: list[Attempt] = []
    started: list[Finished] = []

    def work() -> Finished:
        return run_command(
            command,
            read_only=args.read_only,
            mutating=args.mutating,
            profile=args.profile,
            policy=Policy(
                attempts=args.max_attempts,
                max_wait=args.max_wait,
                deadline=args.deadline,
                uncertain=CLI.uncertain,
                rules={},
            ),
            timeout=args.timeout,
            stdin=_input(),
            max_output=IN_MEMORY if document is None else MAX_OUTPUT,
            on_start=lambda each: started.__setitem__(slice(None), [each]),
            passthrough=passthrough,
            history=history,
        )

    try:
        with only_hooks(_retry_reporter(args.max_attempts, passthrough)):
            done = work() if args.once is None else _run_once(args, command, work)
        if done is None:
            if document is not None:
                emit({"ok": True, "data": {"once": args.once, "ran": False}})
            return 0
    except FaultError as error:
        if args.once is not None and _is_of_ledger(error):
            if passthrough is not None:
                _finish(passthrough)
            raise
        last = error.history[-1].result if error.history else None
        if last is not None and last.not_started is not None:
            raise _not_started(error.fault, command[0]) from None
        _report_to_run_around(error, last)
        if document is not None:
            return document.failed(error, last, history)
        assert passthrough is not None
        return _failed_text(error, last, passthrough, args.max_attempts)
    except (KeyboardInterrupt, Terminated) as interrupt:
        code = int(interrupt.code or 0) if isinstance(interrupt, Terminated) else INTERRUPTED
        if document is not None:
            return document.interrupted(code, started[0] if started else None, history)
        assert passthrough is not None
        return _finish(passthrough, seconds=GRACE) or code
    if document is not None:
        return document.succeeded(done, history)
    assert passthrough is not None
    return _finish(passthrough)


def _run_once(args: argparse.Namespace, command: list[str], work: Callable[[], Finished]) -> Finished | None:
    """Run the command under its key; return None if it succeeded before."""
    from amends.cli.documents import write_stderr
    from amends.effects import Effects
    from amends.errors.cli import ValidationError as BadValueError

    if not args.store:
        raise BadValueError("--once needs a ledger: add --store sqlite:///effects.db, or set AMENDS_STORE")
    finished: list[Finished] = []

    def call() -> dict[str, int]:
        finished.append(work())
        return {"exit": 0}

    try:
        ledger = Effects(args.store)
    except ValueError as error:
        raise BadValueError(str(error)) from None
    with ledger as effects:
        effects.call("run", call, {"command": command}, key=args.once, direct=True)
    if not finished:
        write_stderr(f"{args.once} succeeded before; the command was not run\n")
        return None
    return finished[-1]


def _is_of_ledger(error: FaultError) -> bool:
    """Return whether the ledger of effects raised an error, and not the command."""
    from amends.effects.errors import InDoubtError

    return isinstance(error, InDoubtError) or not error.history


def _report_to_run_around(error: FaultError, last: Finished | None) -> None:
    """
    Tell an `amends run` around this one how the command failed, and after how many tries.

    It would read the command's own output otherwise, which knows of one try only, and every layer would repeat all of them.
    """
    if "AMENDS_FAILURE_FD" not in os.environ or last is None:
        return
    from amends.cli.command_errors import as_cli_fault
    from amends.cli.documents import to_json
    from amends.cli.failure_pipe import write_failure
    from amends.dialects.envelope import encode_error
    from amends.process.evidence import read_output

    fault = error.fault
    reading = read_output(last)
    received = reading.error if reading.path == "envelope" else None
    document = dict(received) if isinstance(received, dict) else encode_error(as_cli_fault(fault))
    document["executed"] = fault.executed.value
    meta: dict[str, object] = {"attempt": max(fault.attempt or 1, 1)}
    if fault.trace_id is not None:
        meta["trace_id"] = fault.trace_id
    write_failure(to_json({"ok": False, "error": document, "meta": meta}))


def _passthrough() -> Passthrough:
    """Return the way out for the command's output; a standard stream that was closed has no descriptor."""
    from amends.process import Passthrough

    return Passthrough(1 if sys.stdout is not None else None, 2 if sys.stderr is not None else None)


def _finish(passthrough: Passthrough, seconds: float | None = None) -> int:
    """
    Pass on what is held and pending; wait for the readers, at most `seconds`.

    Returns:
        0, 141 if stdout was closed, or 1 if it could not be written for another reason.

    """
    from amends.cli.documents import write_stderr
    from amends.cli.invocation import BROKEN_PIPE

    passthrough.release()
    passthrough.flush(seconds)
    if passthrough.reader_closed:
        return BROKEN_PIPE
    if passthrough.error is not None:
        write_stderr("The output could not be written to stdout\n")
        return 1
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
        replace(
            fault,
            message=f"{program} could not be started",
            suggestions=steps or fault.suggestions,
            origin=None,  # it is our own text, not that of the program
        )
    )


def _input() -> Feed | None:
    """Return stdin as a feed that records it for a retry; None for a terminal, which the command inherits."""
    from amends.process import Feed

    try:
        return None if os.isatty(0) else Feed(source=os.dup(0))
    except OSError:
        return Feed(b"")


def _failed_text(
    error: FaultError, last: Finished | None, passthrough: Passthrough, max_attempts: int
) -> int:
    from amends.cli.documents import fit, write_stderr
    from amends.commands.run_documents import told
    from amends.commands.view import sentence
    from amends.core.exits import exit_code

    if last is None:
        raise error
    # Only a run before the last one is held, so only that can have been passed on too early.
    passed_on = passthrough.irrevocable and error.fault.retryable and len(error.history) < max_attempts
    unwritten = _finish(passthrough, seconds=GRACE if last.timed_out else None)
    if unwritten:
        return unwritten
    tries = len(error.history)
    failure = f"({_how_it_ended(last)}): {error.fault.code}, {tries} {'try' if tries == 1 else 'tries'}"
    why = "; its output was passed on already, so it is not repeated" if passed_on else ""
    headline = fit(f"amends: the command failed {failure}{why}", 2)
    step = f"  {fit(sentence(error.decision), 4)}\n" if error.decision is not None else ""
    write_stderr(f"{headline}\n{step}")
    if last.exit:
        return last.exit
    return 128 + last.signal_number if last.signal_number else exit_code(told(error))


def _how_it_ended(last: Finished) -> str:
    if last.timed_out:
        return "timed out"
    return f"exit {last.exit}" if last.exit is not None else last.signal or "exit unknown"


def _retry_reporter(
    allowed: int, passthrough: Passthrough | None
) -> Callable[[Event], AbstractContextManager[None] | None]:
    """Return a recovery hook that reports each retry on stderr: the run, its code, and a countdown on a terminal."""
    from amends.cli.documents import write_stderr

    def report(event: Event) -> AbstractContextManager[None] | None:
        if event.kind != "retry":
            return None
        if passthrough is not None:
            passthrough.flush(GRACE)  # the command's own stderr comes first
        failed_run = f"run {event.attempt} of {allowed}: {event.code}"
        if sys.stderr is not None and sys.stderr.isatty():
            return _countdown(failed_run, event.delay or 0.0)
        write_stderr(f"amends: {failed_run}, next in {event.delay or 0:.3g} s\n")
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
