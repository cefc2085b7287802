"""
One invocation from its first argument to its exit code.

In JSON, stdout is the answer's alone from the beginning; in text it is the command's, and a failure is a few lines on
stderr. Signals end the command through Python, so that `finally` blocks run and the answer is still written.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from amends.cli.command_retry import Tries
from amends.cli.documents import tell
from amends.cli.options import Asked
from amends.cli.stdout import Answer, flush, reader_left, silence

if TYPE_CHECKING:
    from amends.cli.command_errors import Verdict
    from amends.core.fault import Fault

__all__ = ["Terminated", "conduct"]

BROKEN_PIPE = 141
_INTERRUPTED, _TERMINATED = 130, 143
_INFORMING = frozenset({"--help", "--version"})


class Terminated(SystemExit):
    """SIGTERM arrived. Whoever lets it pass exits as the shell expects."""

    def __init__(self) -> None:
        super().__init__(143)


Reading = Callable[[BaseException, str], "Verdict | None"]
"""What a framework's own exceptions mean (profile given); None for those that are not its own."""


def conduct(
    work: Callable[[Tries], Any],
    asked: Asked,
    *,
    reading: Reading | None = None,
    profile: str = "s2",
    success: str = "envelope",
) -> int:
    """
    Run `work`, say how it went, and return the exit code.

    Args:
        work: parses what is left of the arguments and runs the command; returns its data.
        asked: what the caller wants.
        reading: what the framework's own exceptions mean.
        profile: the exit table.
        success: "envelope", or "own" where the command writes its results to stdout itself; a number it returns is
            the exit code then, and an interrupt adds nothing to what is there.

    """
    started = time.monotonic()
    tries = Tries(asked.retries)
    answer = None
    if asked.for_program and success == "envelope":
        answer = Answer(keep_words=_informs(asked.rest))
    with _signals():
        data = None
        ended: BaseException | None = None
        try:
            if asked.mistakes:
                raise _own_mistakes(asked)  # noqa: TRY301
            data = work(tries)
            if answer is None and sys.stdout is not None:
                sys.stdout.flush()
        except BaseException as exc:  # noqa: BLE001 - the last line of defence: every end gets its answer
            ended = exc
        _ignore()
        if isinstance(ended, BrokenPipeError) and answer is None and reader_left():
            silence()
            return BROKEN_PIPE
        fault, code = (None, 0) if ended is None else _verdict(ended, reading, profile)
        if ended is not None and (asked.debug and fault is not None):
            _trace(ended)
        words = answer.words() if answer is not None else ""
        if fault is None:
            if success == "own":
                return data if isinstance(data, int) else 0
            if data is None and words:
                data = {"text": words}
            return _succeed(answer, data, _meta(tries, started, None))
        if words:
            tell(words)
        if success == "own" and code in {_INTERRUPTED, _TERMINATED}:
            return code
        return _fail(answer, fault, code, asked, tries, started)


def _verdict(ended: BaseException, reading: Reading | None, profile: str) -> Verdict:
    from amends.cli import command_errors

    try:
        found = reading(ended, profile) if reading is not None else None
        return found or command_errors.verdict(ended, profile)
    except Exception:  # noqa: BLE001 - an exception that cannot be looked at is still a failure
        return command_errors.verdict(RuntimeError(), profile)


def _succeed(answer: Answer | None, data: Any, meta: dict[str, Any]) -> int:
    if answer is None:
        return 0
    from amends.cli.documents import success

    return _deliver(answer, success(data, meta), 0, BROKEN_PIPE)


def _fail(answer: Answer | None, fault: Fault, code: int, asked: Asked, tries: Tries, started: float) -> int:
    from amends.cli.documents import failure, failure_text
    from amends.dialects.outgoing import outgoing

    fault = outgoing(fault, "envelope")
    if not asked.for_program:
        failure_text(fault)
        return code
    if answer is None:
        flush()  # what the command wrote itself stays where it is
        answer = Answer()
    # The answer may be lost with its reader; what failed still decides the exit code.
    return _deliver(answer, failure(fault, _meta(tries, started, fault), asked.output), code, code)


def _deliver(answer: Answer, document: bytes, code: int, unread: int) -> int:
    try:
        answer.write(document)
    except BrokenPipeError:
        return unread
    except OSError:
        tell("the answer could not be written to stdout\n")
        return code or 1
    return code


def _meta(tries: Tries, started: float, fault: Fault | None) -> dict[str, Any]:
    """C10, and how long it took. Tries that the command itself made count."""
    made = max(tries.made, (fault.attempt if fault is not None else None) or 1)
    allowed = max(made, tries.allowed, (fault.max_attempts if fault is not None else None) or 1)
    return {
        "attempt": made,
        "max_attempts": allowed,
        "duration_ms": round((time.monotonic() - started) * 1000),
        "trace_id": (fault.trace_id if fault is not None else None) or _trace_id(),
    }


def _trace_id() -> str:
    """The caller's trace (W3C traceparent in the environment), or one of our own."""
    parts = os.environ.get("TRACEPARENT", "").split("-")
    if (
        len(parts) >= 4
        and len(parts[1]) == 32
        and set(parts[1]) <= set("0123456789abcdef")
        and int(parts[1], 16)
    ):
        return parts[1]
    return os.urandom(16).hex()


def _own_mistakes(asked: Asked) -> BaseException:
    from amends.cli.arguments import Mistake, mistaken

    return mistaken([Mistake("VALIDATION_ERROR", flag, what, [fix]) for flag, what, fix in asked.mistakes])


def _informs(words: Sequence[str]) -> bool:
    """Whether what is printed is the answer: -h is help only where nothing follows, elsewhere it may be a flag's name."""
    own = words[: words.index("--") if "--" in words else None]
    return any(word in _INFORMING for word in own) or list(own[-1:]) == ["-h"]


def _trace(exc: BaseException) -> None:
    import traceback

    traceback.print_exception(exc)


@contextmanager
def _signals() -> Iterator[None]:
    """
    Have SIGTERM end the command the way SIGINT does, unless the application listens itself.

    Afterwards everything is as before: a program that calls a command of its own goes on, and can be interrupted.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    if before[signal.SIGTERM] == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None and signal.getsignal(number) in {_terminate, signal.SIG_IGN}:
                signal.signal(number, handler)


def _terminate(number: int, frame: Any) -> None:
    raise Terminated


def _ignore() -> None:
    """From here on the answer is being written: half of one would be worse than a late end."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) in {_terminate, signal.default_int_handler}:
                signal.signal(number, signal.SIG_IGN)
