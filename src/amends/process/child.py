"""
One run of a command: in a process group of its own, with bounded output, ended whole.

A command that ended well is left alone with whatever it started; of one that failed, timed out or is no longer wanted,
the whole group is ended, so that nothing of it works on while it is repeated.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

from amends.process.feed import Feed
from amends.process.finished import Finished
from amends.process.pipes import OnOutput, Pipes
from amends.process.spool import MAX_OUTPUT
from amends.process.termination import HeldSignals, end_group, ended

__all__ = ["Stop", "run_once"]

AFTERMATH = 0.5
"""Seconds in which what the command started may still write after it has ended."""
_TICK = 0.05


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
    held = HeldSignals()
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
    pipes = Pipes(process, done, feed, on_output, None if stop is None else stop.wakes)

    def end() -> None:
        pipes.starve()
        end_group(process.pid, pipes.carry)

    try:
        held.release()
        if feed is not None:
            feed.rewind()
        _follow(process.pid, done, pipes, None if timeout is None else started + timeout)
    except BaseException:
        end()
        raise
    else:
        done.duration = time.monotonic() - started
        if done.timed_out or (failed or _by_exit)(done):
            end()
    finally:
        pipes.close()
        process.wait()
    return done


def _by_exit(done: Finished) -> bool:
    return done.exit != 0


def _follow(pid: int, done: Finished, pipes: Pipes, until: float | None) -> None:
    """Carry bytes until it has ended, and for a moment longer where something it started still writes."""
    left: float | None = None
    while True:
        now = time.monotonic()
        if left is None and _note_end(pid, done):
            left = now + AFTERMATH
        if left is not None and (now >= left or not pipes.open):
            break
        if until is not None and now >= until and left is None:
            done.timed_out = True
            return
        pipes.feed()
        if pipes.carry(_TICK if until is None or left is not None else min(_TICK, until - now)):
            done.signal_number = signal.SIGTERM
            return
    pipes.drain()


def _note_end(pid: int, done: Finished) -> bool:
    """Whether the command itself has ended; what it left with is noted."""
    try:
        found = ended(pid)
    except ChildProcessError:
        done.lost = True
        return True
    if found is None:
        return False
    if found.si_code == os.CLD_EXITED:
        done.exit = found.si_status
    else:
        done.signal_number = found.si_status
    return True
