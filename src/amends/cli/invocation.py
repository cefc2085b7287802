"""
Runs one invocation of a command, writes its result or failure, and returns the exit code.

With JSON output stdout is reserved for the document from the start. With text output the command writes to stdout
itself, and a failure is a few lines on stderr. Signals are raised as exceptions, so that `finally` blocks run and the
document is still written.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from amends.cli.command_retry import CommandRetry
from amends.cli.documents import write_stderr
from amends.cli.options import CommonOptions
from amends.cli.stdout import ReservedStdout, discard_stdout, flush_stdout, reader_closed
from amends.core.validate import shown

if TYPE_CHECKING:
    from amends.cli.command_errors import Outcome
    from amends.core.fault import Fault
    from amends.core.operation import Operation
    from amends.foreign.registry import Known

__all__ = ["BROKEN_PIPE", "Terminated", "run_command", "write_document"]

FAILURE_FD = "AMENDS_FAILURE_FD"
"""The variable by which `run` asks for a failure document; see `amends.cli.failure_pipe`."""
BROKEN_PIPE = 141
"""The exit code if stdout was closed before everything was written, as a shell reports SIGPIPE."""
PROFILES = ("v1", "v2")
"""The exit tables of `amends.core.exits`, which a success does not import."""
_INTERRUPTIONS = frozenset({129, 130, 143})
_INFORMATION_FLAGS = frozenset({"--help", "--version"})


_ENDING = (signal.SIGTERM, *((signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ()))
"""Signals that end a command: SIGTERM, and the end of its terminal, which Windows does not report."""


class Terminated(SystemExit):
    """SIGTERM or SIGHUP arrived. If nothing catches it, the process exits with 128 + its number, as a shell expects."""

    def __init__(self, number: int = signal.SIGTERM) -> None:
        super().__init__(128 + number)


FrameworkOutcome = Callable[[BaseException, str], "Outcome | None"]
"""Returns the outcome of a framework's own exception under a profile, or None for any other exception."""


def run_command(
    work: Callable[[CommandRetry], object],
    options: CommonOptions,
    *,
    framework_outcome: FrameworkOutcome | None = None,
    profile: str = "v1",
    success: str = "envelope",
    errors: Mapping[type[BaseException], str] | None = None,
    docs: str | None = None,
) -> int:
    """
    Run `work`, write its result or failure, and return the exit code.

    Args:
        work: parses the remaining arguments, runs the command and returns its data.
        options: the common options of this invocation.
        framework_outcome: maps the framework's own exceptions.
        profile: the exit table.
        success: "envelope", or "own" if the command writes its results to stdout itself. With "own", a number that
            it returns is the exit code, and an interrupt writes nothing more.
        errors: the codes of exception classes of the application.
        docs: the URL below which each code has a page, for `type` and `doc_uri`.

    Raises:
        TypeError, ValueError: an option has a wrong value: a key of `errors` is no exception class, a code or a
            profile does not exist.

    """
    if profile not in PROFILES:
        raise ValueError(f"profile is one of {', '.join(PROFILES)}, not {shown(profile)}")
    if success not in {"envelope", "own"}:
        raise ValueError(f'success is "envelope" or "own", not {shown(success)}')
    started = time.monotonic()
    known = _known_errors(errors) if errors else None
    retry = CommandRetry(options.retries, known)
    stdout = None
    if options.machine_readable and success == "envelope":
        stdout = ReservedStdout(keep_printed=_prints_information(options.rest))
    with _signals():
        data = None
        ended: BaseException | None = None
        try:
            if options.mistakes:
                raise _option_error(options)  # noqa: TRY301
            with _caller():
                data = work(retry)
            if stdout is None:
                flush_stdout()
        except BaseException as exc:  # noqa: BLE001 - every exception is reported as an outcome
            ended = exc
        _ignore_signals()
        if stdout is None and _output_lost(ended, options):
            discard_stdout()
            return BROKEN_PIPE
        fault, code = (
            (None, 0)
            if ended is None
            else _outcome(ended, framework_outcome, profile, options.rest, known, retry.declared)
        )
        if ended is not None and options.debug and fault is not None:
            _print_traceback(ended)
        printed = stdout.printed() if stdout is not None else ""
        if fault is None:
            if success == "own":
                return data if isinstance(data, int) else 0
            if data is None and printed:
                data = {"text": printed}
            return _succeed(stdout, data, _meta(retry, started, None))
        if printed:
            write_stderr(printed)
        if success == "own" and code in _INTERRUPTIONS:
            return code
        fault = _outgoing(fault)
        meta = _meta(retry, started, fault)
        _record(fault, code, meta)
        return _fail(stdout, fault, code, options, meta, docs)


def _known_errors(errors: Mapping[type[BaseException], str]) -> dict[type[BaseException], Known]:
    from amends.foreign.registry import known_errors

    return known_errors(errors)


def _outcome(
    ended: BaseException,
    framework_outcome: FrameworkOutcome | None,
    profile: str,
    arguments: Sequence[str],
    errors: Mapping[type[BaseException], Known] | None,
    declared: Operation | None,
) -> Outcome:
    from amends.cli import command_errors

    try:
        if isinstance(ended, BaseExceptionGroup):
            from amends.foreign.groups import parts_of

            parts = parts_of(ended)
        else:
            parts = (ended,)
        outcomes = [
            (None if framework_outcome is None else framework_outcome(part, profile))
            or command_errors.outcome_of(part, profile, arguments, errors, declared)
            for part in parts
        ]
        return outcomes[0] if len(outcomes) == 1 else command_errors.joined_outcome(outcomes, profile)
    except Exception:  # noqa: BLE001 - an exception whose attributes raise is still reported as a failure
        return command_errors.outcome_of(RuntimeError(), profile)


def _succeed(stdout: ReservedStdout | None, data: object, meta: dict[str, object]) -> int:
    if stdout is None:
        return 0
    from amends.cli.documents import success

    return write_document(stdout, success(data, meta), 0)


def _outgoing(fault: Fault) -> Fault:
    """Remove credentials before the fault is written in any form, also as text for a person."""
    from amends.dialects.outgoing import outgoing

    return outgoing(fault, "envelope")


def _record(fault: Fault, code: int, meta: dict[str, object]) -> None:
    """Report the failure of the command to the recorder."""
    import sys
    from pathlib import PurePath

    from amends.core import recording

    name = PurePath(sys.argv[0] if sys.argv else "").name
    facts = {"exit": code}
    recording.emit(
        "command line",
        "sent",
        fault,
        name=name,
        trace_id=meta["trace_id"],
        attempt=meta["attempt"],
        facts=facts,
    )


def _fail(
    stdout: ReservedStdout | None,
    fault: Fault,
    code: int,
    options: CommonOptions,
    meta: dict[str, object],
    docs: str | None,
) -> int:
    from amends.cli.documents import failure

    if FAILURE_FD in os.environ:
        from amends.cli.failure_pipe import write_failure

        write_failure(failure(fault, meta, "json", docs))
    document = failure(fault, meta, options.output, docs)
    if not options.machine_readable:
        write_stderr(document.decode())
        return code
    # The command's own output was flushed, so it comes before the document.
    return write_document(stdout or ReservedStdout(), document, code)


def _output_lost(ended: BaseException | None, options: CommonOptions) -> bool:
    """Return whether text for stdout could not be written because its reader closed it."""
    if isinstance(ended, SystemExit) and isinstance(ended.__context__, BrokenPipeError):
        return True  # Rich redirected stdout to the null device and left
    lost = isinstance(ended, BrokenPipeError)
    try:
        flush_stdout()
    except BrokenPipeError:
        lost = True
    except (OSError, ValueError):
        pass
    # argparse ignores an error when it prints help or the version.
    lost = lost or (isinstance(ended, SystemExit) and not ended.code and _prints_information(options.rest))
    return lost and reader_closed()


def write_document(stdout: ReservedStdout, document: bytes, code: int) -> int:
    """Write a document and return the exit code: `code`, or 141 if stdout is closed, for a failure too."""
    try:
        stdout.write(document)
    except BrokenPipeError:
        return BROKEN_PIPE
    except OSError:
        write_stderr("The result could not be written to stdout\n")
        return code or 1
    return code


def _meta(retry: CommandRetry, started: float, fault: Fault | None) -> dict[str, object]:
    """Return the envelope's `meta` (C10) with the duration. Attempts that the command itself made count."""
    made = max(retry.attempts, (fault.attempt if fault is not None else None) or 1)
    allowed = max(made, retry.max_attempts, (fault.max_attempts if fault is not None else None) or 1)
    return {
        "attempt": made,
        "max_attempts": allowed,
        "duration_ms": round((time.monotonic() - started) * 1000),
        "trace_id": _callers_trace()
        or (fault.trace_id if fault is not None else None)
        or os.urandom(16).hex(),
    }


def _caller() -> AbstractContextManager[object]:
    """Return the context of the caller's trace and limits, which are in the environment."""
    if "TRACEPARENT" not in os.environ and "AMENDS_LEFT" not in os.environ:
        return nullcontext()
    from amends.recovery.incoming import from_environment

    return from_environment(os.environ)


def _callers_trace() -> str | None:
    """Return the caller's trace id (W3C traceparent in the environment), or None."""
    parts = os.environ.get("TRACEPARENT", "").split("-")
    if (
        len(parts) >= 4
        and len(parts[1]) == 32
        and set(parts[1]) <= set("0123456789abcdef")
        and int(parts[1], 16)
    ):
        return parts[1]
    return None


def _option_error(options: CommonOptions) -> BaseException:
    from amends.cli.arguments import Mistake, argument_error

    return argument_error(
        [Mistake("VALIDATION_ERROR", flag, what, [fix]) for flag, what, fix in options.mistakes]
    )


def _prints_information(arguments: Sequence[str]) -> bool:
    """
    Return whether the arguments ask for help or the version, so that the printed text is the result.

    -h counts only as the last argument; elsewhere an application may use it for something else.
    """
    own = arguments[: arguments.index("--") if "--" in arguments else None]
    return any(argument in _INFORMATION_FLAGS for argument in own) or list(own[-1:]) == ["-h"]


def _print_traceback(exc: BaseException) -> None:
    import traceback

    traceback.print_exception(exc)


@contextmanager
def _signals() -> Iterator[None]:
    """
    Raise `Terminated` on SIGTERM and SIGHUP, unless the application handles or ignores them.

    On exit the previous handlers are restored, so that a program that ran a command goes on and can be interrupted.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *_ENDING)}
    for number in _ENDING:
        if before[number] == signal.SIG_DFL:
            signal.signal(number, _terminate)
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None and signal.getsignal(number) in {_terminate, signal.SIG_IGN}:
                signal.signal(number, handler)


def _terminate(number: int, frame: object) -> None:
    raise Terminated(number)


def _ignore_signals() -> None:
    """Ignore SIGINT, SIGTERM and SIGHUP while the document is being written, so that it is not cut off."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, *_ENDING):
            if signal.getsignal(number) in {_terminate, signal.default_int_handler}:
                signal.signal(number, signal.SIG_IGN)
