"""
Computes the CLI agent spec's score from 0 to 3 and four additional scores from the evidence. Pure.

A criterion is met, not met, or unknown if its failure could not be triggered. The score is a number only if it is
certain; otherwise the report has its lower and upper bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec

from amends.audit.evidence import PERMANENT, RETRYABLE, Evidence, Observation
from amends.core.wrong_calls import explains_wrong_calls

__all__ = ["Criterion", "ExtraScore", "ReadingCost", "Report", "score"]

BYTES_PER_TOKEN = 4


class Criterion(msgspec.Struct, frozen=True):
    """One condition of the rubric."""

    level: int
    text: str
    met: bool | None
    """None: unknown, because the failure could not be triggered."""
    because: str


class ExtraScore(msgspec.Struct, frozen=True):
    """A score that is not part of the rubric."""

    name: str
    score: int | None
    because: str


class ReadingCost(msgspec.Struct, frozen=True):
    """What a model reads if it runs the command once: the bytes of both streams, and the tokens they are about."""

    probe: str
    bytes: int
    tokens: int
    """Estimated: one token for four bytes."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """
    The result of an audit.

    `score` makes it. If a failure could not be triggered, `score` is None and the bounds say what is possible.

    >>> report = score(Evidence(command=["tool"], observations=[], network="not enforced", retry_after=2.0))
    >>> report.score, report.at_least, report.at_most
    (None, 0, 3)
    """

    command: list[str]
    score: int | None
    at_least: int
    at_most: int
    because: str
    """The reason for the score, in one line."""
    warnings: list[str]
    """Why the scores may be about something else, for example that even --help failed."""
    reading_costs: list[ReadingCost]
    """One for every run, and their total."""
    criteria: list[Criterion]
    extra_scores: list[ExtraScore]
    evidence: Evidence


@explains_wrong_calls
def score(evidence: Evidence) -> Report:
    """
    Score the evidence.

        report = score(observe(["git"]))
        print(report.score)
    """
    criteria = _criteria(evidence)
    least = _level(criteria, lambda met: met is True)
    most = _level(criteria, lambda met: met is not False)
    return Report(
        command=evidence.command,
        score=least if least == most else None,
        at_least=least,
        at_most=most,
        because=_because(criteria, least, most),
        warnings=_warnings(evidence),
        reading_costs=_reading_costs(evidence),
        criteria=criteria,
        extra_scores=[
            _stdout_purity(evidence),
            _exit_code_meaning(evidence),
            _suggestion_quality(evidence),
            _amplification(evidence),
        ],
        evidence=evidence,
    )


def _level(criteria: Sequence[Criterion], good: Callable[[bool | None], bool]) -> int:
    """Return the highest level for which its criteria and those of all lower levels are good."""
    bad = [one.level for one in criteria if not good(one.met)]
    return min(bad, default=4) - 1


def _because(criteria: Sequence[Criterion], least: int, most: int) -> str:
    """Return the reason for the score: the first condition that is not met, or that is unknown."""
    unmet = next((one for one in criteria if one.met is False and one.level == most + 1), None)
    unknown = next((one for one in criteria if one.met is None and one.level == least + 1), None)
    if least < most and unknown is not None:
        return f"level {unknown.level} is unknown: {unknown.text}? {unknown.because}"
    if unmet is not None:
        return f"level {unmet.level} is not met: {unmet.text}? {unmet.because}"
    return "all conditions are met"


def _warnings(evidence: Evidence) -> list[str]:
    found = next((one for one in evidence.observations if one.probe == "help"), None)
    if found is None or (found.exit == 0 and not found.timed_out):
        return []
    ended = (
        "did not end before the timeout"
        if found.timed_out
        else f"failed with {found.signal or f'exit {found.exit}'}"
    )
    return [f"even --help {ended}: check that the command runs at all, before you read the scores"]


def _reading_costs(evidence: Evidence) -> list[ReadingCost]:
    sizes = [(one.probe, one.output_bytes) for one in evidence.observations]
    return [
        ReadingCost(probe, size, (size + BYTES_PER_TOKEN - 1) // BYTES_PER_TOKEN)
        for probe, size in [*sizes, ("total", sum(size for _, size in sizes))]
    ]


def _failures(evidence: Evidence) -> list[Observation]:
    """Return the failures that the command reported itself, without those where the audit terminated it."""
    return [one for one in evidence.triggered(*PERMANENT, *RETRYABLE, "hang") if not one.timed_out]


def _has_retryable(one: Observation) -> bool:
    value = (one.error or {}).get("retryable", "absent")
    return isinstance(value, bool) or value == "maybe"


def _probe_names(observations: Sequence[Observation]) -> str:
    return ", ".join(one.probe for one in observations) or "none"


def _shown(value: object) -> str:
    return "absent" if value is None else repr(value)


def _criteria(evidence: Evidence) -> list[Criterion]:
    failures = _failures(evidence)
    with_retryable = [one for one in failures if _has_retryable(one)]
    without_retryable = [one for one in failures if not _has_retryable(one)]
    limited = next((one for one in evidence.triggered("429") if not one.timed_out), None)
    error = (limited.error or {}) if limited is not None else {}
    unless_limited = None if limited is None else False
    wait = error.get("retry_after_ms")
    has_wait = isinstance(wait, int | float) and not isinstance(wait, bool) and wait >= 0
    max_retries = error.get("max_retries")
    without_attempts = [one for one in failures if not {"attempt", "max_attempts"} <= set(one.meta)]
    no_limit = _no_rate_limit(evidence)
    return [
        Criterion(
            1,
            "some errors include retryable",
            True if with_retryable else unless_limited,
            f"with it: {_probe_names(with_retryable)}",
        ),
        Criterion(
            2,
            "all errors include retryable",
            False if without_retryable else (True if limited is not None else None),
            f"without it: {_probe_names(without_retryable)}"
            if without_retryable or limited is not None
            else no_limit,
        ),
        Criterion(
            2,
            "a rate limit includes retry_after_ms",
            None if limited is None else has_wait,
            no_limit
            if limited is None
            else f"{_shown(wait)}; the server asked for {evidence.retry_after:g} s",
        ),
        _exit_codes_differ(evidence),
        Criterion(
            3,
            "retry_strategy is present",
            None if limited is None else isinstance(error.get("retry_strategy"), str),
            no_limit if limited is None else _shown(error.get("retry_strategy")),
        ),
        Criterion(
            3,
            "max_retries is present",
            None if limited is None else isinstance(max_retries, int) and not isinstance(max_retries, bool),
            no_limit if limited is None else _shown(max_retries),
        ),
        Criterion(
            3,
            "meta has attempt and max_attempts",
            False if without_attempts else (True if limited is not None else None),
            f"without them: {_probe_names(without_attempts)}"
            if without_attempts or limited is not None
            else no_limit,
        ),
    ]


def _no_rate_limit(evidence: Evidence) -> str:
    if evidence.triggered("429"):
        return "the command did not report the rate limit before the timeout"
    return "no rate limit could be triggered"


def _exits(evidence: Evidence, probes: Sequence[str]) -> dict[str, int | None]:
    return {one.probe: one.exit for one in evidence.triggered(*probes) if not one.timed_out}


def _exit_codes_differ(evidence: Evidence) -> Criterion:
    """Return the criterion that the exit code alone distinguishes retryable from permanent failures."""
    text = "the exit code distinguishes retryable from permanent failures"
    retryable, permanent = _exits(evidence, RETRYABLE), _exits(evidence, PERMANENT)
    if "429" not in retryable or not permanent:
        return Criterion(2, text, None, _no_rate_limit(evidence))
    shared = set(retryable.values()) & set(permanent.values())
    distinct = not shared and 0 not in {*retryable.values(), *permanent.values()}
    return Criterion(2, text, distinct, f"retryable {_listed(retryable)} · permanent {_listed(permanent)}")


def _listed(exits: dict[str, int | None]) -> str:
    return ", ".join(f"{probe} → {number}" for probe, number in exits.items())


# Additional scores ----------------------------------------------------------------------------------------------


def _stdout_purity(evidence: Evidence) -> ExtraScore:
    """Score what failures write to stdout: one envelope, nothing or JSON, or text."""
    failures = _failures(evidence)
    envelopes = [one for one in failures if isinstance(one.document, dict) and one.error is not None]
    clean = [one for one in failures if not one.stdout.strip() or one.document is not None]
    because = f"{len(envelopes)} of {len(failures)} failures are one envelope and nothing else"
    if not failures:
        return ExtraScore("stdout purity", None, "nothing failed")
    if len(envelopes) == len(failures):
        return ExtraScore("stdout purity", 3, because)
    if len(clean) == len(failures):
        return ExtraScore("stdout purity", 2, f"{because}; for the others stdout is empty or JSON")
    return ExtraScore(
        "stdout purity", 1 if clean else 0, f"{because}; text on stdout: {len(failures) - len(clean)}"
    )


# The exit codes of each probe's failure in the two published tables; several if a table allows several.
_TABLES: dict[str, dict[str, set[int]]] = {
    "v1": {
        "unknown-command": {2, 3},
        "unknown-flag": {2, 3},
        "near-miss": {2, 3},
        "401": {8},
        "404": {4},
        "422": {2},
        "429": {9},
        "503": {12},
        "drop": {7, 12},
    },
    "v2": {
        "unknown-command": {2, 13},
        "unknown-flag": {2, 13},
        "near-miss": {2, 13},
        "401": {8},
        "404": {5},
        "422": {2},
        "429": {11},
        "503": {12},
        "drop": {10, 12},
    },
}


def _exit_code_meaning(evidence: Evidence) -> ExtraScore:
    """Score how much an exit code distinguishes."""
    exits = _exits(evidence, (*PERMANENT, *RETRYABLE))
    listed = _listed(exits)
    if 0 in exits.values():
        return ExtraScore("exit-code meaning", 0, f"a failure exits 0: {listed}")
    if "429" not in exits:
        return ExtraScore("exit-code meaning", None, f"{_no_rate_limit(evidence)}: {listed}")
    for name, table in _TABLES.items():
        if all(number in table[probe] for probe, number in exits.items()):
            return ExtraScore("exit-code meaning", 3, f"as in the table {name}: {listed}")
    if _exit_codes_differ(evidence).met:
        return ExtraScore("exit-code meaning", 2, f"retryable and permanent failures differ: {listed}")
    usage = {number for probe, number in exits.items() if probe in {"unknown-command", "unknown-flag"}}
    others = {number for probe, number in exits.items() if probe.isdecimal()}
    if usage and not usage & others:
        return ExtraScore(
            "exit-code meaning", 1, f"usage errors differ from failures of the service: {listed}"
        )
    return ExtraScore("exit-code meaning", 0, f"the same for different failures: {listed}")


def _suggestion_quality(evidence: Evidence) -> ExtraScore:
    """Score whether the command suggests the right flag for a misspelt one: `--help` for `--hlep`."""
    name = "suggestion quality"
    observations = evidence.triggered("near-miss")
    if not observations or observations[0].timed_out:
        return ExtraScore(name, None, "the run with a misspelt flag did not finish")
    one = observations[0]
    error = one.error or {}
    steps = [error.get("fix_required"), error.get("suggestion"), *_list(error.get("suggestions"))]
    suggested = [step for step in steps if isinstance(step, str) and step]
    if any("--help" in step for step in suggested):
        return ExtraScore(name, 3, f"for --hlep it suggests {suggested[0]!r}")
    if suggested:
        return ExtraScore(name, 2, f"it suggests a step, but not the right flag: {suggested[0]!r}")
    if "--help" in one.stdout + one.stderr:
        return ExtraScore(name, 1, "the text mentions --help")
    return ExtraScore(name, 0, "it suggests nothing")


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _amplification(evidence: Evidence) -> ExtraScore:
    """Score how many requests the command sends for one call that is rate limited."""
    name = "amplification"
    observations = evidence.triggered("429")
    if not observations:
        return ExtraScore(name, None, _no_rate_limit(evidence))
    times = [request.at for request in observations[0].requests]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    because = f"{len(times)} request{'s' if len(times) > 1 else ''} for one call"
    if gaps and min(gaps) >= evidence.retry_after * 0.95:
        return ExtraScore(name, 3, f"{because}, never sooner than the server asked")
    if gaps:
        because += (
            f"; the shortest pause was {min(gaps):.2f} s, the server asked for {evidence.retry_after:g} s"
        )
    bounds = ((1, 3), (3, 2), (5, 1))
    return ExtraScore(name, next((points for most, points in bounds if len(times) <= most), 0), because)
