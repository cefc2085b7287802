"""
One run of a command: in a process group of its own, with bounded output, ended whole.

A command that ended well is left alone with whatever it started; of one that failed, timed out or is no longer wanted,
the whole group is ended, so that nothing of it works on while it is repeated.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from amends.process.feed import Feed
from amends.process.spool import MAX_OUTPUT, Spool

__all__ = ["Finished", "OnOutput", "Stop", "run_once"]

GRACE = 2.0
"""Seconds between asking a group to end and ending it."""
AFTERMATH = 0.5
"""Seconds in which what the command started may still write after it has ended."""
_TICK = 0.05
_PIECE = 65536

OnOutput = Callable[[str, bytes], Any]
"""Gets "stdout" or "stderr" and the bytes, as they come."""


class Finished:
    """A command that has ended."""

    def __init__(self, argv: Sequence[str], limit: int = MAX_OUTPUT) -> None:
        self.argv = tuple(argv)
        self.exit: int | None = None
        """Its exit code; None when a signal or a time-out ended it, or when it could not be started."""
        self.signal: str | None = None
        """The signal that ended it."""
        self.timed_out = False
        self.not_started: int | None = None
        """The error number, where it could not be started at all."""
        self.duration = 0.0
        self.out, self.err = Spool(limit), Spool(limit)

    @property
    def stdout(self) -> bytes:
        """What it wrote, as far as it was kept."""
        return self.out.read()

    @property
    def stderr(self) -> bytes:
        """What it complained about, as far as it was kept."""
        return self.err.read()

    @property
    def truncated(self) -> bool:
        """Whether something was dropped from what it wrote."""
        return self.out.truncated or self.err.truncated

    def close(self) -> None:
        """Let go of what it wrote."""
        self.out.close()
        self.err.close()


class Stop:
    """Lets another thread end a run."""

    def __init__(self) -> None:
        self.wakes, self._wake = os.pipe()

    def set(self) -> None:
        """End it now."""
        os.write(self._wake, b"x")

    def close(self) -> None:
        """Let go of the descriptors."""
        os.close(self.wakes)
        os.close(self._wake)


def run_once(
    argv: Sequence[str],
    *,
    feed: Feed | None = None,
    timeout: float | None = None,
    limit: int = MAX_OUTPUT,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    on_output: OnOutput | None = None,
    stop: Stop | None = None,
    failed: Callable[[Finished], bool] | None = None,
) -> Finished:
    """
    Run a command once.

    Args:
        argv: the command and its arguments; no shell.
        feed: its input; without one it inherits ours.
        timeout: seconds after which it is ended.
        limit: bytes of each stream that are kept.
        env: its environment; ours without one.
        cwd: its directory; ours without one.
        on_output: gets what it writes as it comes.
        stop: ends it from another thread.
        failed: says whether a command that has ended failed; without it, by the exit code.

    """
    done = Finished(argv, limit)
    started = time.monotonic()
    held = _Held()
    try:
        process = subprocess.Popen(  # noqa: S603 - running what the caller names is the point
            list(argv),
            stdin=subprocess.PIPE if feed is not None else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=cwd,
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        done.not_started = error.errno or 0
        held.release()
        return done
    run = _Run(process, done, feed, on_output)
    try:
        held.release()
        if feed is not None:
            feed.rewind()
        run.pump(None if timeout is None else started + timeout, stop)
    except BaseException:
        run.end_group()
        raise
    else:
        done.duration = time.monotonic() - started
        if done.timed_out or (failed or _by_exit)(done):
            run.end_group()
    finally:
        run.close()
    return done


def _by_exit(done: Finished) -> bool:
    return done.exit != 0


class _Held:
    """
    Signals that arrive while the command is being started wait until somebody is there to end it.

    They are not blocked, because the command would inherit that.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._came: list[int] = []
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if callable(handler):
                    self._before[number] = handler
                    signal.signal(number, lambda came, _: self._came.append(came))

    def release(self) -> None:
        """Let those through that came meanwhile."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        for number in self._came:
            signal.raise_signal(number)


class _Run:
    """A running command and the pipes to it."""

    def __init__(
        self, process: subprocess.Popen[bytes], done: Finished, feed: Feed | None, on_output: OnOutput | None
    ) -> None:
        self.process, self.done, self.feed, self.on_output = process, done, feed, on_output
        self.selector = selectors.PollSelector()
        for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            self.selector.register(pipe, selectors.EVENT_READ, name)
        self.input: int | None = None
        if process.stdin is not None:
            self.input = process.stdin.fileno()
            os.set_blocking(self.input, False)
        self.watched: int | None = None

    def pump(self, until: float | None, stop: Stop | None) -> None:
        """Carry bytes until it has ended, and for a moment longer where something it started still writes."""
        if stop is not None:
            self.selector.register(stop.wakes, selectors.EVENT_READ, "stop")
        left: float | None = None
        while True:
            now = time.monotonic()
            if left is None and self._ended():
                left = now + AFTERMATH
            if left is not None and (now >= left or not self._writers()):
                break
            if until is not None and now >= until and left is None:
                self.done.timed_out = True
                return
            self._feed()
            if self._wait(min(_TICK, (until or now + _TICK) - now)):
                self.done.signal = "SIGTERM"
                return
        self._drain()

    def _ended(self) -> bool:
        """Whether the command itself has ended; it stays unreaped, so that its group keeps its number."""
        found = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if found is None:
            return False
        if found.si_code == os.CLD_EXITED:
            self.done.exit = found.si_status
        else:
            self.done.signal = signal.Signals(found.si_status).name
        return True

    def _writers(self) -> bool:
        return any(key.data in {"stdout", "stderr"} for key in self.selector.get_map().values())

    def _wait(self, seconds: float) -> bool:
        """Carry what is there; whether somebody said stop."""
        for key, _ in self.selector.select(max(0.0, seconds)):
            if key.data == "stop":
                self.selector.unregister(key.fileobj)
                return True
            if key.data == "source":
                assert self.feed is not None
                self.feed.take()
            elif key.data == "input":
                self._give()
            else:
                self._carry(key.fileobj, key.data)
        return False

    def _carry(self, pipe: Any, name: str) -> None:
        try:
            piece = os.read(pipe.fileno(), _PIECE)
        except BlockingIOError:
            return
        if not piece:
            self.selector.unregister(pipe)
            return
        (self.done.out if name == "stdout" else self.done.err).write(piece)
        if self.on_output is not None:
            self.on_output(name, piece)

    def _drain(self) -> None:
        """What is in the pipes by now still counts."""
        for key in list(self.selector.get_map().values()):
            if key.data in {"stdout", "stderr"}:
                while key.fd in self.selector.get_map() and select_ready(key.fd):
                    self._carry(key.fileobj, key.data)

    def _feed(self) -> None:
        """Watch the source or the command's input, whichever has to move next; close the input at the end."""
        feed = self.feed
        if feed is None or self.input is None:
            return
        if feed.pending:
            self._watch(self.input, selectors.EVENT_WRITE, "input")
        elif feed.source is not None:
            self._watch(feed.source, selectors.EVENT_READ, "source")
        else:
            self._close_input()

    def _watch(self, fd: int, event: int, name: str) -> None:
        if self.watched == fd:
            return
        self._unwatch()
        self.selector.register(fd, event, name)
        self.watched = fd

    def _unwatch(self) -> None:
        if self.watched is not None:
            self.selector.unregister(self.watched)
            self.watched = None

    def _give(self) -> None:
        assert self.feed is not None
        assert self.input is not None
        try:
            self.feed.give(self.input)
        except BlockingIOError:
            pass
        except OSError:  # it reads no more
            self._close_input()

    def _close_input(self) -> None:
        self._unwatch()
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.input = None

    def end_group(self) -> None:
        """Ask the whole group to end, give it a moment, and end it."""
        self._unwatch()
        self._signal(signal.SIGTERM)
        until = time.monotonic() + GRACE
        while time.monotonic() < until:
            try:
                self._wait(_TICK)
                if os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
                    break
            except OSError:  # pragma: no cover - somebody else waited for it
                break
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self.process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def close(self) -> None:
        self.selector.close()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        self.process.wait()


def select_ready(fd: int) -> bool:
    """Whether something can be read at once."""
    import select

    return bool(select.select([fd], [], [], 0)[0])
