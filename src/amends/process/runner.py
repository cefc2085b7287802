"""Running other people's commands, repeated only where that can help and cannot harm."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.policy import Policy
from amends.core.validate import in_seconds
from amends.process.child import Stop, run_once
from amends.process.evidence import PROFILE_NAMES, fault_of
from amends.process.feed import Feed
from amends.process.finished import Finished
from amends.process.pipes import OnOutput
from amends.process.spool import MAX_OUTPUT
from amends.recovery import CLI, Attempt, arecover, recover, time_left

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = ["arun", "run"]


def run(
    argv: Sequence[str],
    *,
    read_only: bool = False,
    mutating: bool = False,
    profile: str | None = None,
    policy: Policy = CLI,
    timeout: float | timedelta | None = None,
    stdin: bytes | Feed | None = b"",
    max_output: int = MAX_OUTPUT,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    on_output: OnOutput | None = None,
    history: list[Attempt] | None = None,
) -> Finished:
    """
    Run a command until it succeeds or there is no point in going on.

    Without `read_only` or `mutating` it is repeated when it says itself that it may be (`retryable: true`), or when it
    surely did not run. An exit code of 0 is never repeated; with an envelope that reports a failure it is one.

    Args:
        argv: the command and its arguments; no shell.
        read_only: it changes nothing: also failures of which nobody knows may be repeated.
        mutating: it changes something: repeated only when it surely did not run, whatever it says.
        profile: s2 or v2 for a tool that keeps to such a table; gh, aws, kubectl, curl or git for these tools.
        policy: how far to go; three runs by default.
        timeout: seconds for one run.
        stdin: its input, given to every run; None: it inherits ours.
        max_output: bytes of each stream that are kept.
        env: its environment; ours without one.
        cwd: its directory; ours without one.
        on_output: gets what it writes ("stdout" or "stderr", bytes) as it comes.
        history: a list that gets every run.

    Raises:
        FaultError: with `.fault`, `.decision` and `.history`; the last run is `.history[-1].result`.

    """
    job = _Job(argv, read_only, mutating, profile, timeout, stdin, max_output, env, cwd, on_output)
    return recover(job.once, policy=policy, operation=job.operation, examine=job.judge, history=history)


async def arun(
    argv: Sequence[str],
    *,
    read_only: bool = False,
    mutating: bool = False,
    profile: str | None = None,
    policy: Policy = CLI,
    timeout: float | timedelta | None = None,  # noqa: ASYNC109 - of one run, not of the whole
    stdin: bytes | Feed | None = b"",
    max_output: int = MAX_OUTPUT,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    on_output: OnOutput | None = None,
    history: list[Attempt] | None = None,
) -> Finished:
    """
    The same as `run`, on an event loop. `on_output` is called from another thread.

    Cancelling the task ends the command's whole process group before the cancellation goes on.
    """
    job = _Job(argv, read_only, mutating, profile, timeout, stdin, max_output, env, cwd, on_output)

    async def once() -> Finished:
        stop = Stop()
        work = asyncio.ensure_future(asyncio.to_thread(job.once, stop))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            stop.set()
            await asyncio.wait([work])
            raise
        finally:
            stop.close()

    return await arecover(once, policy=policy, operation=job.operation, examine=job.judge, history=history)


class _Job:
    """One command, however often it runs."""

    def __init__(
        self,
        argv: Sequence[str],
        read_only: bool,
        mutating: bool,
        profile: str | None,
        timeout: float | timedelta | None,
        stdin: bytes | Feed | None,
        max_output: int,
        env: Mapping[str, str] | None,
        cwd: str | None,
        on_output: OnOutput | None,
    ) -> None:
        if isinstance(argv, str | bytes):
            raise TypeError(
                f"argv is a list of words, and no shell splits it: write {shlex.split(os.fsdecode(argv))}"
            )
        if not argv:
            raise ValueError("there is no command to run")
        if read_only and mutating:
            raise ValueError("a command is read-only or mutating, not both")
        if profile is not None and profile not in PROFILE_NAMES:
            raise LookupError(f"no profile {profile!r}; there are {', '.join(PROFILE_NAMES)}")
        self.operation = Operation(name=PurePath(argv[0]).name, read_only=read_only)
        self.profile, self.mutating = profile, mutating
        self.timeout = None if timeout is None else in_seconds("timeout", timeout)
        if isinstance(stdin, str):
            raise TypeError("stdin is bytes: encode the text")
        self.feed = Feed(stdin) if isinstance(stdin, bytes) else stdin
        self.keywords: dict[str, Any] = {
            "limit": max_output,
            "env": env,
            "cwd": cwd,
            "on_output": on_output,
            "feed": self.feed,
        }
        self.argv = argv

    def once(self, stop: Stop | None = None) -> Finished:
        """One run, within its own time and that of the operation around it."""
        limits = [seconds for seconds in (self.timeout, time_left()) if seconds is not None]
        failed: Callable[[Finished], bool] = lambda done: self.judge(done) is not None  # noqa: E731
        return run_once(
            self.argv, timeout=min(limits, default=None), stop=stop, failed=failed, **self.keywords
        )

    def judge(self, done: Finished) -> Fault | None:
        """The failure of one run, or None."""
        fault = fault_of(done, self.profile, believing=not self.mutating)
        if fault is not None and self.feed is not None and not self.feed.replayable:
            # Its input is gone, so there is nothing to repeat it with.
            return replace(fault, max_retries=0)
        return fault
