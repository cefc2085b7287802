"""
Runs a command once, in its own process group and with limited output.

If the command succeeds, the processes it started are left running. If it fails, times out or is stopped, the whole
process group is terminated, so that no part of it still works while the command is retried.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

from amends.foreign.trust import child_environment
from amends.process.feed import Feed
from amends.process.finished import Finished
from amends.process.passthrough import Passthrough
from amends.process.pipes import OnOutput, Pipes
from amends.process.report import Report
from amends.process.spool import MAX_OUTPUT
from amends.process.termination import DeferredSignals, exit_status, terminate_group
from amends.recovery.incoming import (
    ENVIRONMENT,
    TRACEPARENT,
    continued_trace,
    current_span,
    id_of,
    incoming,
    traceparent,
)

__all__ = ["Stop", "run_once"]

OUTPUT_GRACE = 0.5
"""Seconds after the command's exit in which output of the processes it started is still read."""
_TICK = 0.05


class Stop:
    """Lets another thread stop a run."""

    def __init__(self) -> None:
        self.fd, self._write_fd = os.pipe()

    def set(self) -> None:
        """Stop the run."""
        os.write(self._write_fd, b"x")

    def close(self) -> None:
        """Close the descriptors."""
        os.close(self.fd)
        os.close(self._write_fd)


def run_once(
    argv: Sequence[str],
    *,
    feed: Feed | None = None,
    timeout: float | None = None,
    limit: int = MAX_OUTPUT,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    on_output: OnOutput | None = None,
    on_start: Callable[[Finished], object] | None = None,
    passthrough: Passthrough | None = None,
    stop: Stop | None = None,
    failed: Callable[[Finished], bool] | None = None,
    left: str | None = None,
) -> Finished:
    """
    Run a command once.

    Args:
        argv: the command and its arguments; no shell is involved.
        feed: its input; default: it inherits stdin.
        timeout: seconds after which it is terminated.
        limit: bytes of each stream to keep.
        env: its environment; default: that of this process.
        cwd: its working directory; default: that of this process.
        on_output: called with its output as it arrives.
        on_start: called with the result before the command starts; the result fills while it runs.
        passthrough: passes its output on to this process's stdout and stderr.
        stop: stops it from another thread.
        failed: returns whether a finished command failed; default: its exit code is not 0.
        left: the tries and the time that it may use, for AMENDS_LEFT in its environment.

    """
    done = Finished(argv, limit)
    if on_start is not None:
        on_start(done)
    started = time.monotonic()
    deferred = DeferredSignals()
    report = Report()
    try:
        process = subprocess.Popen(  # noqa: S603 - the caller chooses the command
            list(argv),
            stdin=subprocess.PIPE if feed is not None else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**_environment(env, argv, left), **report.environment()},
            cwd=cwd,
            start_new_session=True,
            pass_fds=[report.fd],
            bufsize=0,
        )
    except OSError as error:
        done.not_started = error.errno or 0
        report.close()
        deferred.release()
        return done
    except BaseException:  # an argument that no command can have
        report.close()
        deferred.release()
        raise
    done.pid = process.pid
    report.started()
    pipes = Pipes(process, done, feed, on_output, passthrough, None if stop is None else stop.fd)

    def terminate() -> None:
        pipes.pause_input()
        terminate_group(process.pid, pipes.transfer)

    try:
        deferred.release()
        if feed is not None:
            feed.rewind()
        _wait(process.pid, done, pipes, None if timeout is None else started + timeout)
        done.duration = time.monotonic() - started
        done.reported = report.last()
        ended = done.timed_out or done.signal_number is not None
        if ended or (failed or _exit_not_zero)(done):
            terminate()
        if ended:
            pipes.drain()
    except BaseException:
        terminate()
        pipes.drain()
        raise
    finally:
        pipes.close()
        report.close()
        process.wait()
    return done


def _environment(env: Mapping[str, str] | None, argv: Sequence[str], stated: str | None) -> dict[str, str]:
    """
    Return the environment of a child: with the trace and what is left; without the secret of the system for a foreign command.

    A trace that the caller put into `env` is kept.
    """
    trace = incoming()
    found = child_environment(os.environ if env is None else env, argv)
    chosen = env is not None and env.get(TRACEPARENT) != os.environ.get(TRACEPARENT)
    if not chosen and ((id := id_of(trace)) is not None or current_span() is not None):
        found[TRACEPARENT] = traceparent(id or continued_trace())
    found.pop(ENVIRONMENT, None)
    if stated is not None:
        found[ENVIRONMENT] = stated
    return found


def _exit_not_zero(done: Finished) -> bool:
    return done.exit != 0


def _wait(pid: int, done: Finished, pipes: Pipes, deadline: float | None) -> None:
    """Transfer input and output until the command exits, and up to OUTPUT_GRACE longer while its pipes are open."""
    output_until: float | None = None
    while True:
        now = time.monotonic()
        if output_until is None and _record_exit(pid, done):
            output_until = now + OUTPUT_GRACE
        if output_until is not None and (now >= output_until or not pipes.open):
            break
        if deadline is not None and now >= deadline and output_until is None:
            done.timed_out = True
            return
        pipes.watch_input()
        wait = _TICK if deadline is None or output_until is not None else min(_TICK, deadline - now)
        if pipes.transfer(wait):
            done.signal_number = signal.SIGTERM
            return
    pipes.drain()


def _record_exit(pid: int, done: Finished) -> bool:
    """Return whether the command has exited, and record its exit code or signal."""
    try:
        status = exit_status(pid)
    except ChildProcessError:
        done.lost = True
        return True
    if status is None:
        return False
    if status.si_code == os.CLD_EXITED:
        done.exit = status.si_status
    else:
        done.signal_number = status.si_status
    return True
