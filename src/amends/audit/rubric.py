"""
S2's rubric from 0 to 3, and four scores beside it, read off the evidence. Pure.

Every criterion is met, not met, or not known: what could not be triggered is never guessed. A score is a number only
where it is certain; otherwise it is the least and the most it can be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec

from amends.audit.evidence import PERMANENT, RETRYABLE, Evidence, Observation

__all__ = ["Criterion", "Report", "Side", "score"]


class Criterion(msgspec.Struct, frozen=True):
    """One condition of the rubric."""

    level: int
    text: str
    met: bool | None
    """None: it could not be triggered."""
    because: str


class Side(msgspec.Struct, frozen=True):
    """A score beside the rubric."""

    name: str
    score: int | None
    because: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What an audit found."""

    command: list[str]
    score: int | None
    at_least: int
    at_most: int
    criteria: list[Criterion]
    sides: list[Side]
    evidence: Evidence


def score(evidence: Evidence) -> Report:
    """Score what was seen."""
    criteria = _criteria(evidence)
    least = _level(criteria, lambda met: met is True)
    most = _level(criteria, lambda met: met is not False)
    return Report(
        command=evidence.command,
        score=least if least == most else None,
        at_least=least,
        at_most=most,
        criteria=criteria,
        sides=[_purity(evidence), _meaning(evidence), _suggestions(evidence), _amplification(evidence)],
        evidence=evidence,
    )


def _level(criteria: Sequence[Criterion], good: Callable[[bool | None], bool]) -> int:
    """The highest level whose conditions, and those of the levels below, are all good."""
    bad = [one.level for one in criteria if not good(one.met)]
    return min(bad, default=4) - 1


def _failures(evidence: Evidence) -> list[Observation]:
    """Failures the command answered itself: one that the audit had to end said nothing."""
    return [one for one in evidence.seen(*PERMANENT, *RETRYABLE, "hang") if not one.timed_out]


def _says(one: Observation) -> bool:
    value = (one.error or {}).get("retryable", "absent")
    return isinstance(value, bool) or value == "maybe"


def _names(found: Sequence[Observation]) -> str:
    return ", ".join(one.probe for one in found) or "none"


def _shown(value: object) -> str:
    return "absent" if value is None else repr(value)


def _criteria(evidence: Evidence) -> list[Criterion]:
    failures = _failures(evidence)
    saying = [one for one in failures if _says(one)]
    silent = [one for one in failures if not _says(one)]
    limited = next((one for one in evidence.seen("429") if not one.timed_out), None)
    error = (limited.error or {}) if limited is not None else {}
    unknown = None if limited is None else False
    wait = error.get("retry_after_ms")
    waits = isinstance(wait, int | float) and not isinstance(wait, bool) and wait >= 0
    counted = [one for one in failures if not {"attempt", "max_attempts"} <= set(one.meta)]
    not_seen = _not_seen(evidence)
    return [
        Criterion(1, "some errors include retryable", True if saying else unknown, _names(saying)),
        Criterion(
            2,
            "all errors include retryable",
            False if silent else (True if limited is not None else None),
            f"without it: {_names(silent)}" if silent or limited is not None else not_seen,
        ),
        Criterion(
            2,
            "a rate limit includes retry_after_ms",
            None if limited is None else waits,
            not_seen
            if limited is None
            else f"{_shown(wait)}; the server asked for {evidence.retry_after:g} s",
        ),
        _encodes(evidence),
        Criterion(
            3,
            "retry_strategy is present",
            None if limited is None else isinstance(error.get("retry_strategy"), str),
            not_seen if limited is None else _shown(error.get("retry_strategy")),
        ),
        Criterion(
            3,
            "max_retries is present",
            None if limited is None else type(error.get("max_retries")) is int,
            not_seen if limited is None else _shown(error.get("max_retries")),
        ),
        Criterion(
            3,
            "meta has attempt and max_attempts",
            False if counted else (True if limited is not None else None),
            f"without them: {_names(counted)}" if counted or limited is not None else not_seen,
        ),
    ]


def _not_seen(evidence: Evidence) -> str:
    if evidence.seen("429"):
        return "the rate limit was not answered within the time for one run"
    return "no rate limit could be triggered"


def _exits(evidence: Evidence, probes: Sequence[str]) -> dict[str, int | None]:
    return {one.probe: one.exit for one in evidence.seen(*probes) if not one.timed_out}


def _encodes(evidence: Evidence) -> Criterion:
    """Whether retryable and permanent failures can be told apart by the exit code alone."""
    text = "the exit code tells retryable failures from permanent ones"
    again, never = _exits(evidence, RETRYABLE), _exits(evidence, PERMANENT)
    if "429" not in again or not never:
        return Criterion(2, text, None, _not_seen(evidence))
    shared = set(again.values()) & set(never.values())
    apart = not shared and 0 not in {*again.values(), *never.values()}
    return Criterion(2, text, apart, f"retryable {_listed(again)} · permanent {_listed(never)}")


def _listed(exits: dict[str, int | None]) -> str:
    return ", ".join(f"{probe} → {number}" for probe, number in exits.items())


# Beside the rubric ----------------------------------------------------------------------------------------------


def _purity(evidence: Evidence) -> Side:
    """What a failure leaves on stdout."""
    failures = _failures(evidence)
    envelopes = [one for one in failures if isinstance(one.document, dict) and one.error is not None]
    clean = [one for one in failures if not one.stdout.strip() or one.document is not None]
    because = f"{len(envelopes)} of {len(failures)} failures are one envelope and nothing else"
    if not failures:
        return Side("stdout purity", None, "nothing failed")
    if len(envelopes) == len(failures):
        return Side("stdout purity", 3, because)
    if len(clean) == len(failures):
        return Side("stdout purity", 2, f"{because}; the others leave it empty or JSON")
    return Side(
        "stdout purity", 1 if clean else 0, f"{because}; text on stdout: {len(failures) - len(clean)}"
    )


# What each failure exits with, in either published table; several where a table leaves the choice.
_TABLES: dict[str, dict[str, set[int]]] = {
    "s2": {
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


def _meaning(evidence: Evidence) -> Side:
    """How much an exit code says."""
    exits = _exits(evidence, (*PERMANENT, *RETRYABLE))
    listed = _listed(exits)
    if 0 in exits.values():
        return Side("exit-code meaning", 0, f"a failure exits 0: {listed}")
    if "429" not in exits:
        return Side("exit-code meaning", None, f"{_not_seen(evidence)}: {listed}")
    for name, table in _TABLES.items():
        if all(number in table[probe] for probe, number in exits.items()):
            return Side("exit-code meaning", 3, f"as the table {name} says: {listed}")
    if _encodes(evidence).met:
        return Side("exit-code meaning", 2, f"retryable and permanent failures differ: {listed}")
    usage = {number for probe, number in exits.items() if probe in {"unknown-command", "unknown-flag"}}
    others = {number for probe, number in exits.items() if probe.isdecimal()}
    if usage and not usage & others:
        return Side(
            "exit-code meaning", 1, f"mistakes in usage differ from what a service answered: {listed}"
        )
    return Side("exit-code meaning", 0, f"the same for different failures: {listed}")


def _suggestions(evidence: Evidence) -> Side:
    """Whether a mistake is answered with what would have been right: `--hlep` with `--help`."""
    name = "suggestion quality"
    seen = evidence.seen("near-miss")
    if not seen or seen[0].timed_out:
        return Side(name, None, "it did not answer a misspelt flag")
    one = seen[0]
    error = one.error or {}
    steps = [error.get("fix_required"), error.get("suggestion"), *_list(error.get("suggestions"))]
    said = [step for step in steps if isinstance(step, str) and step]
    if any("--help" in step for step in said):
        return Side(name, 3, f"--hlep is answered with {said[0]!r}")
    if said:
        return Side(name, 2, f"a step is named, not the right flag: {said[0]!r}")
    if "--help" in one.stdout + one.stderr:
        return Side(name, 1, "--help is named in the text")
    return Side(name, 0, "nothing is suggested")


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _amplification(evidence: Evidence) -> Side:
    """How many requests one rate limit turns into."""
    name = "amplification"
    seen = evidence.seen("429")
    if not seen:
        return Side(name, None, _not_seen(evidence))
    times = [request.at for request in seen[0].requests]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    because = f"{len(times)} request{'s' if len(times) > 1 else ''} for one call"
    if gaps and min(gaps) >= evidence.retry_after * 0.95:
        return Side(name, 3, f"{because}, never sooner than asked")
    if gaps:
        because += f"; the shortest pause was {min(gaps):.2f} s, asked for {evidence.retry_after:g} s"
    bounds = ((1, 3), (3, 2), (5, 1))
    return Side(name, next((points for most, points in bounds if len(times) <= most), 0), because)
