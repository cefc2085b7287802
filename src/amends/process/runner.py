"""Runs external commands, and retries them where a retry can help and is safe."""

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
from amends.core.wrong_calls import explains_wrong_calls
from amends.foreign.trust import believed, is_own_command
from amends.process.child import Stop, run_once
from amends.process.evidence import PROFILE_NAMES, fault_of
from amends.process.feed import Feed
from amends.process.finished import Finished
from amends.process.passthrough import Passthrough
from amends.process.pipes import OnOutput
from amends.process.spool import MAX_OUTPUT
from amends.recovery import CLI, Attempt, arecover, recover, time_left
from amends.recovery.effect_context import check_time_limit
from amends.recovery.incoming import new_left
from amends.recovery.scope import tries_left

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = ["arun", "run"]


@explains_wrong_calls
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
    own: bool = False,
    on_output: OnOutput | None = None,
    on_start: Callable[[Finished], object] | None = None,
    passthrough: Passthrough | None = None,
    history: list[Attempt] | None = None,
) -> Finished:
    """
    Run a command, and retry it until it succeeds or a retry cannot help.

    Without `read_only` or `mutating` a command is retried if its envelope has `retryable: true` and does not say that it
    may have run, if a tool that conforms to the v1 table exits with 7, or if it certainly did not run. Exit code 0 is never retried; it counts as a failure if the envelope reports one.

    >>> run(["echo", "hello"], read_only=True).stdout.strip()
    b'hello'

    Args:
        argv: the command and its arguments; no shell is involved.
        read_only: the command changes nothing, so unknown failures may be retried too.
        mutating: the command changes something: retry only if it certainly did not run, whatever its envelope says.
        profile: v1 or v2 for a tool that conforms to such an exit table, or the name of a known tool; default: the
            profile of the program's name, if it has one.
        policy: the limits of retrying; default: three runs.
        timeout: seconds for one run.
        stdin: its input, the same for every run; None: it inherits stdin.
        max_output: bytes of each stream to keep.
        env: its environment; default: that of this process.
        cwd: its working directory; default: that of this process.
        own: the command is part of our own system: its failures are passed on as they were raised. See `amends.own`.
        on_output: called with "stdout" or "stderr" and the bytes of every run, as they arrive.
        on_start: called with the result of every run before it starts; the result fills while the command runs.
        passthrough: passes the output on to this process's stdout and stderr, as `amends run` does. Call its `release`
            and `flush` afterwards.
        history: a list to which every run is appended.

    Raises:
        FaultError: with `.fault`, `.decision` and `.history`; the last run is `.history[-1].result`.

    """
    job = _Job(argv, read_only, mutating, profile, timeout, stdin, max_output, env, cwd, on_output, own)
    job.on_start, job.passthrough, job.max_runs = on_start, passthrough, policy.attempts
    return recover(job.once, policy=policy, operation=job.operation, examine=job.examine, history=history)


@explains_wrong_calls
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
    own: bool = False,
    on_output: OnOutput | None = None,
    history: list[Attempt] | None = None,
) -> Finished:
    """
    Run a command like `run`, on an event loop. `on_output` is called from another thread.

    When the task is cancelled, the command's process group is terminated before the cancellation propagates.

        done = await arun(["gh", "api", "/user"], read_only=True, timeout=30)
    """
    job = _Job(argv, read_only, mutating, profile, timeout, stdin, max_output, env, cwd, on_output, own)

    job.max_runs = policy.attempts

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

    return await arecover(once, policy=policy, operation=job.operation, examine=job.examine, history=history)


class _Job:
    """One command with its options; it may run several times."""

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
        own: bool = False,
    ) -> None:
        if isinstance(argv, str | bytes):
            raise TypeError(
                f"argv is a list of arguments, because no shell is involved: write {shlex.split(os.fsdecode(argv))}"
            )
        if not argv:
            raise ValueError("argv is empty: name a command to run")
        if read_only and mutating:
            raise ValueError("a command is read-only or mutating, not both")
        if profile is not None and profile not in PROFILE_NAMES:
            raise LookupError(f"unknown profile {profile!r}: use one of {', '.join(PROFILE_NAMES)}")
        self.operation = Operation(name=PurePath(argv[0]).name, read_only=read_only, binding="run")
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
        self.own = own or is_own_command(list(argv))
        self.on_start: Callable[[Finished], object] | None = None
        self.passthrough: Passthrough | None = None
        self.runs = 0
        self.max_runs: int | None = None
        self.call: str | None = None
        """The id that the last run was given."""

    def once(self, stop: Stop | None = None) -> Finished:
        """Run the command once, within its timeout and the time left of the surrounding operation."""
        check_time_limit()
        limits = [seconds for seconds in (self.timeout, time_left()) if seconds is not None]
        failed: Callable[[Finished], bool] = lambda done: self.examine(done) is not None  # noqa: E731
        self.runs += 1
        seconds = min(limits, default=None)
        stated, self.call = new_left(tries_left(self.max_runs), seconds)
        if self.passthrough is not None:
            self.passthrough.begin(repeatable=not self.is_last_run)
        return run_once(
            self.argv,
            timeout=seconds,
            stop=stop,
            left=stated,
            failed=failed,
            on_start=self.on_start,
            passthrough=self.passthrough,
            **self.keywords,
        )

    @property
    def is_last_run(self) -> bool:
        """Whether the policy allows no run after this one."""
        return self.max_runs is not None and self.runs >= self.max_runs

    def examine(self, done: Finished) -> Fault | None:
        """Return the fault of one run, or None."""
        fault = fault_of(done, self.profile, trust_retryable=not self.mutating)
        if fault is not None:
            fault = believed(fault, own=self.own, call=self.call)
        # A retry needs the same input, and the record may not have all of it.
        no_input = self.feed is not None and not self.feed.replayable
        # Output that was passed on cannot be taken back.
        passed_on = self.passthrough is not None and (
            self.passthrough.stopped or (self.passthrough.irrevocable and not self.is_last_run)
        )
        return replace(fault, max_retries=0) if fault is not None and (no_input or passed_on) else fault
