"""The documents of `amends run --output json|problem`: how the command ended, its output, and the decision."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amends.core.decision import Decision
    from amends.core.fault import Fault
    from amends.errors.base import FaultError
    from amends.process import Finished
    from amends.recovery import Attempt

__all__ = ["RunDocument", "told"]


class RunDocument:
    """
    Writes the one document of a run and returns the exit code.

    Args:
        output: json (the CLI agent spec's envelope) or problem (a problem document for a failure).
        max_attempts: the runs that are allowed.

    """

    def __init__(self, output: str, max_attempts: int) -> None:
        self._output, self._max_attempts = output, max_attempts
        self._started = time.monotonic()

    def succeeded(self, done: Finished, history: list[Attempt]) -> int:
        """Write the result of a success."""
        return self._write({"ok": True, "data": _run_data(done), "error": None}, history, 0)

    def failed(self, error: FaultError, last: Finished | None, history: list[Attempt]) -> int:
        """Write the failure that recovery ended with."""
        from amends.cli.command_errors import as_cli_fault
        from amends.core.exits import exit_code

        fault = as_cli_fault(told(error))
        return self._failure(fault, exit_code(fault), last, history, decision=error.decision)

    def interrupted(self, code: int, last: Finished | None, history: list[Attempt]) -> int:
        """Write that a signal ended the run, with the output that the command wrote before."""
        from amends.cli.command_errors import interrupted

        fault = interrupted(code).fault
        assert fault is not None
        unfinished = last is not None and all(attempt.result is not last for attempt in history)
        return self._failure(fault, code, last, history, runs=len(history) + unfinished)

    def _failure(
        self,
        fault: Fault,
        code: int,
        last: Finished | None,
        history: list[Attempt],
        runs: int | None = None,
        **more: Decision | None,
    ) -> int:
        data = None if last is None else _run_data(last)
        if self._output == "problem":
            from amends.dialects import problem

            return self._write({**problem.encode(fault), **more, "data": data}, history, code, runs)
        from amends.dialects.envelope import encode_error
        from amends.dialects.record import MEMBER

        error = {**encode_error(fault), **more}
        if MEMBER not in error and fault.origin is not None and fault.origin.record is not None:
            # The record is written once and copied.
            error[MEMBER] = fault.origin.record
        document: dict[str, object] = {"ok": False, "data": data, "error": error}
        return self._write(document, history, code, runs, fault)

    def _write(
        self,
        document: Mapping[str, object],
        history: list[Attempt],
        code: int,
        runs: int | None = None,
        fault: Fault | None = None,
    ) -> int:
        """Write the document. `runs` is the number of runs, if `history` does not hold all of them."""
        from amends.cli.documents import to_json
        from amends.cli.invocation import write_document
        from amends.cli.stdout import ReservedStdout

        made = max(1, len(history) if runs is None else runs, (fault and fault.attempt) or 1)
        meta: dict[str, object] = {
            "attempt": made,
            "max_attempts": max(made, self._max_attempts),
            "duration_ms": round((time.monotonic() - self._started) * 1000),
            "runs": [_run_meta(attempt) for attempt in history],
        }
        if fault is not None and fault.trace_id is not None:
            meta["trace_id"] = fault.trace_id
        return write_document(ReservedStdout(), to_json({**document, "meta": meta}), code)


def told(error: FaultError) -> Fault:
    """
    Return the fault that is written and that decides the exit code: in doubt (M2) if the decision is to verify.

    A program that reads only `retryable` or exit 7 would run the command again, which may have had its effect.
    """
    from msgspec.structs import replace

    from amends.core.enums import Action
    from amends.core.vocabulary import row_for
    from amends.foreign.in_doubt import IN_DOUBT, in_doubt

    fault, decision = error.fault, error.decision
    if decision is None or decision.action is not Action.VERIFY or fault.in_doubt:
        return fault
    doubt = in_doubt(fault, "cli")
    # What the command itself said stays.
    standard = fault.message in {"", row_for(fault.vocabulary, fault.code, fault.status).message}
    suggestions = (IN_DOUBT, *(each for each in fault.suggestions if each != IN_DOUBT))
    return replace(
        doubt,
        message=doubt.message if standard else fault.message,
        suggestions=suggestions,
        details=fault.details,
    )


def _run_meta(attempt: Attempt) -> dict[str, object]:
    return {
        "exit": attempt.result.exit if attempt.result is not None else 0,
        "code": attempt.fault.code if attempt.fault is not None else None,
        "duration_ms": round(attempt.duration * 1000),
        "waited_ms": round(attempt.wait * 1000),
    }


def _run_data(done: Finished) -> dict[str, object]:
    """Return one run as the document's data. Output that is not UTF-8 is written as base64."""
    data: dict[str, object] = {"exit": done.exit, "signal": done.signal, "truncated": done.truncated}
    for name, kept in (("stdout", done.out), ("stderr", done.err)):
        raw = kept.read()
        try:
            data[name] = raw.decode()
        except UnicodeDecodeError:
            data[f"{name}_base64"] = base64.b64encode(raw).decode()
        if kept.truncated:
            data[f"{name}_bytes"] = kept.size
    return data
