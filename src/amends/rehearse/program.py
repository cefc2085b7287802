"""Runs a command again and again: once without failures, then once for each act, with the user's check after each."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from amends.rehearse.acts import Act, make_acts
from amends.rehearse.environment import child_environment
from amends.rehearse.judge import End, Row, judge
from amends.rehearse.plan import Plan, ServiceOptions
from amends.rehearse.report import Report
from amends.rehearse.server import StageServer
from amends.rehearse.services import environment_of
from amends.rehearse.stage import Record, Stage, effects_of

__all__ = ["Progress", "RehearsalError", "rehearse"]

_OUTPUT = 4 * 1024 * 1024
"""Bytes of the output that are kept and searched."""
_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""
_USUAL = ("openai", "anthropic", "orders", "mcp", "a2a")
"""The services whose addresses are in the environment if none are named."""


class RehearsalError(Exception):
    """A rehearsal that cannot begin: the program fails without failures."""

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.output = output


class Progress:
    """What a rehearsal reports while it runs; does nothing."""

    def ordinary(self) -> None:
        """The run without failures begins."""

    def act(self, number: int, of: int, act: Act) -> None:
        """An act begins."""

    def judged(self, rows: Sequence[Row]) -> None:
        """An act was judged."""


def rehearse(
    command: Sequence[str],
    plan: Plan,
    *,
    services: Sequence[ServiceOptions] = (),
    check: str | None = None,
    timeout: float = 300.0,
    real: bool = False,
    exit_document: Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """
    Rehearse a command and return the report.

    Args:
        command: the program with its arguments.
        plan: the plan.
        services: further services.
        check: a command that tests the result: exit code 0 if the program has done its work.
        timeout: seconds that one run may take.
        real: whether services that are not named are the real ones, to which calls are forwarded.
        exit_document: a file that the program writes and the user reads.
        progress: receives what happens.

    Raises:
        RehearsalError: the program, or its check, fails in the run without failures.

    """
    progress = progress or Progress()
    named = [*plan.service, *services]
    usual = [] if named else [ServiceOptions(each) for each in _USUAL]
    stage = Stage(plan, [*services, *usual], discover=True, forward_unknown=real)
    server = StageServer(stage)
    try:
        return _rehearsed(_Runs(command, stage, server, check, timeout, exit_document), plan, progress)
    finally:
        server.close()


def _rehearsed(runs: _Runs, plan: Plan, progress: Progress) -> Report:
    stage = runs.stage
    progress.ordinary()
    ordinary, end = runs.run(None)
    connections = runs.server.joined > 0
    mode = "in the process" if connections else "through the addresses in the environment"
    report = Report(
        command=shlex.join(runs.command), seed=plan.seed, checked=runs.check is not None, mode=mode
    )
    report.violations = list(ordinary.violations)
    if not ordinary.violations:
        _insist(end, runs)
    acts, unsent = make_acts(plan, ordinary, stage.services, connections=connections)
    if not ordinary.calls and not ordinary.violations:
        raise RehearsalError("the program called no service of the rehearsal", end.output)
    effects = effects_of(ordinary)
    for number, act in enumerate(acts, 1):
        progress.act(number, len(acts), act)
        record, end = runs.run(act)
        rows = judge(record, act.failures, end, plan, effects)
        report.rows += rows
        report.violations += [each for each in record.violations if each not in report.violations]
        progress.judged(rows)
    for failure, why in unsent.items():
        service, _, kind = failure.rpartition("/")
        report.rows.append(Row(service=service, kind=kind, note=f"not sent: {why}"))
    if report.violations:
        for row in report.rows:
            row.score = None
    return report


def _insist(end: End, runs: _Runs) -> None:
    if end.killed:
        raise RehearsalError(
            f"without failures the program is still running after {runs.timeout:g} s", end.output
        )
    if end.status != 0:
        raise RehearsalError(f"without failures the program ends with exit code {end.status}", end.output)
    if end.check is False:
        raise RehearsalError("without failures the check of the result fails", end.output)


class _Runs:
    """Runs the program on a stage."""

    def __init__(
        self,
        command: Sequence[str],
        stage: Stage,
        server: StageServer,
        check: str | None,
        timeout: float,
        exit_document: Path | None,
    ) -> None:
        self.command, self.stage, self.server = list(command), stage, server
        self.check, self.timeout, self.exit_document = check, timeout, exit_document

    def run(self, act: Act | None) -> tuple[Record, End]:
        """Run the program once and return what happened."""
        self.stage.begin(
            act.failures if act is not None else (), acting=act.acting if act is not None else None
        )
        if self.exit_document is not None:
            self.exit_document.unlink(missing_ok=True)
        addresses = {name: self.server.address(name) for name in self.stage.services}
        variables = environment_of(self.stage.services, addresses)
        environment = child_environment(os.environ, self.server.address(), variables)
        started = time.monotonic()
        status, output, killed = _run(self.command, environment, self.timeout)
        end = End(status=status, killed=killed, seconds=round(time.monotonic() - started, 3))
        record = self.stage.end()
        if self.exit_document is not None and self.exit_document.exists():
            output += self.exit_document.read_text(encoding="utf-8", errors="replace")[:_OUTPUT]
        end.output = output
        if self.check is not None:
            self.stage.paused = True
            checked, _, late = _run(shlex.split(self.check), {**os.environ, **variables}, self.timeout)
            end.check = checked == 0 and not late
        return record, end


def _run(
    command: Sequence[str], environment: Mapping[str, str], timeout: float
) -> tuple[int | None, str, bool]:
    """Run a command; return its exit code, its output, and whether it was killed."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(  # noqa: S603 - the command that the user gave
            list(command),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        killed = False
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            killed = True
        finally:
            _end_group(process)
        output.seek(0)
        text = output.read(_OUTPUT).decode("utf-8", "replace")
    return process.returncode, text, killed


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End the program and all that it started."""
    for number, seconds in ((signal.SIGTERM, _GRACE), (signal.SIGKILL, _GRACE)):
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            break
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
        if process.poll() is not None and number is signal.SIGTERM:
            continue  # what it started may still run
    process.wait()
