"""The score and the findings of a service, from its evidence. Pure: the same evidence gives the same report."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from amends.audit.surfaces.evidence import Answer, Evidence
from amends.audit.surfaces.questions import QUESTIONS, Question
from amends.audit.surfaces.reading import Reading, read

__all__ = ["Asked", "Finding", "SurfaceReport", "score"]

BYTES_PER_TOKEN = 4
_ABOUT_INPUT = frozenset({"wrong-type", "missing-value", "wrong-argument", "missing-argument"})
"""Probes whose failure is about one value of the request."""
_OF_PROTOCOL = frozenset(
    {
        "unknown-method",
        "malformed-call",
        "unknown-session",
        "unknown-task",
        "broken-json",
        "unsupported-version",
    }
)
"""Probes of MCP and A2A that the protocol itself answers, with its own error objects."""

Pair = tuple[Answer, Reading]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A question that some failures answer with no."""

    id: str
    weight: int
    asks: str
    fix: str
    clause: str
    probes: list[str]
    """The probes with this finding."""
    sent: str
    evidence: str
    """What was sent and answered, redacted."""

    @property
    def key(self) -> str:
        """What a baseline file lists."""
        return f"{self.id} {','.join(self.probes)}"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One question with its answer: yes, no, or unknown if no probe could ask it."""

    id: str
    level: int
    asks: str
    met: bool | None
    because: str


class SurfaceReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an audit of a service."""

    surface: str
    target: str
    version: str
    score: int | None
    """0 to 3; None if it is a range."""
    at_least: int
    at_most: int
    because: str
    findings: list[Finding]
    """The worst first."""
    questions: list[Asked]
    not_probed: list[str]
    bytes: int
    """What a model reads for all failures together."""
    tokens: int
    """Estimated: one token for four bytes."""
    largest: int
    """Bytes of the largest failure."""
    accepted: list[str] = []
    """Findings that the baseline accepts."""
    evidence: Evidence


def score(evidence: Evidence, accepted: Sequence[str] = ()) -> SurfaceReport:
    """
    Score the evidence.

    Args:
        evidence: the answers of a service.
        accepted: keys of findings that do not count (the baseline).

    """
    pairs = [(one, read(one, evidence.surface)) for one in evidence.answers if one.outcome == "failure"]
    asked: list[Asked] = []
    findings: list[Finding] = []
    for question in QUESTIONS:
        if evidence.surface not in question.surfaces:
            continue
        met, because, guilty = _CHECKS[question.id](evidence, pairs)
        if met is False:
            finding = _finding(question, guilty)
            findings.append(finding)
            if finding.key in accepted:
                met, because = True, "accepted in the baseline"
        asked.append(
            Asked(id=question.id, level=question.level, asks=question.asks, met=met, because=because)
        )
    counted = [one for one in findings if one.key not in accepted]
    leaked = any(one.id == "leak" for one in counted)
    least = 0 if leaked or not pairs else _level(asked, lambda met: met is True)
    most = 0 if leaked else _level(asked, lambda met: met is not False)
    sizes = [one.size for one, _ in pairs]
    return SurfaceReport(
        surface=evidence.surface,
        target=evidence.target,
        version=evidence.version,
        score=least if least == most else None,
        at_least=least,
        at_most=most,
        because=_because(asked, counted, least, most, pairs),
        findings=sorted(counted, key=lambda one: (-one.weight, one.id)),
        questions=asked,
        not_probed=[f"{one.probe}: {one.because}" for one in evidence.answers if one.outcome in _UNPROBED],
        bytes=sum(sizes),
        tokens=(sum(sizes) + BYTES_PER_TOKEN - 1) // BYTES_PER_TOKEN,
        largest=max(sizes, default=0),
        accepted=[one.key for one in findings if one.key in accepted],
        evidence=evidence,
    )


_UNPROBED = frozenset({"not-probed", "no-answer"})


def _level(asked: Sequence[Asked], good: Callable[[bool | None], bool]) -> int:
    """Return the highest level for which its questions and those of all lower levels are good."""
    return min((one.level for one in asked if not good(one.met)), default=4) - 1


def _because(
    asked: Sequence[Asked], findings: Sequence[Finding], least: int, most: int, pairs: Sequence[Pair]
) -> str:
    if not pairs:
        return "no failure could be provoked"
    worst = max(findings, key=lambda one: one.weight, default=None)
    if worst is not None:
        return f"{worst.asks} no: {', '.join(worst.probes)}"
    unknown = next((one for one in asked if one.met is None), None)
    if least < most and unknown is not None:
        return f"unknown: {unknown.asks} {unknown.because}"
    return "all questions are answered"


def _finding(question: Question, guilty: Sequence[Answer]) -> Finding:
    first = guilty[0]
    shown = "; ".join(first.leaks) if question.id == "leak" else first.text[:400]
    return Finding(
        id=question.id,
        weight=question.weight,
        asks=question.asks,
        fix=question.fix,
        clause=question.clause,
        probes=sorted({one.probe for one in guilty}),
        sent=first.sent,
        evidence=f"{first.sent} → {shown or '(empty)'}",
    )


# Each check returns whether the question is met, why, and the answers that do not meet it.
Checked = tuple[bool | None, str, list[Answer]]


def _every(pairs: Sequence[Pair], good: Callable[[Reading], bool], nothing: str) -> Checked:
    if not pairs:
        return None, nothing, []
    bad = [one for one, reading in pairs if not good(reading)]
    return not bad, f"{len(pairs) - len(bad)} of {len(pairs)} failures", bad


def _leak(evidence: Evidence, pairs: Sequence[Pair]) -> Checked:
    bad = [one for one, _ in pairs if one.leaks]
    return not bad, "; ".join(bad[0].leaks[:2]) if bad else f"{len(pairs)} failures", bad


def _failure(evidence: Evidence, pairs: Sequence[Pair]) -> Checked:
    bad = [one for one in evidence.answers if one.outcome == "success" and one.because]
    return not bad, f"{len(bad)} reported as success", bad


def _retry_some(evidence: Evidence, pairs: Sequence[Pair]) -> Checked:
    if not pairs:
        return None, "no failure was provoked", []
    said = [one for one, reading in pairs if reading.verdict]
    return bool(said), f"{len(said)} of {len(pairs)} failures", [] if said else [one for one, _ in pairs]


def _when(evidence: Evidence, pairs: Sequence[Pair]) -> Checked:
    """Answers that may be retried need a wait. If there was none, the question does not come up."""
    retriable = [pair for pair in pairs if pair[1].retriable]
    if not retriable:
        return True, "no failure may be retried", []
    return _every(retriable, lambda reading: reading.wait, "")


def _field(evidence: Evidence, pairs: Sequence[Pair]) -> Checked:
    about_input = [pair for pair in pairs if pair[0].probe in _ABOUT_INPUT]
    return _every(about_input, lambda reading: reading.field, "no invalid value could be sent")


def _consistent(evidence: Evidence, pairs: Sequence[Pair]) -> Checked:
    if not pairs:
        return None, "no failure was provoked", []
    shapes: dict[str, list[Answer]] = {}
    for one, reading in pairs:
        if evidence.surface in {"mcp", "a2a"} and one.probe in _OF_PROTOCOL:
            continue
        shapes.setdefault(reading.shape, []).append(one)
    usual = max(shapes.values(), key=len, default=[])
    bad = [one for answers in shapes.values() if answers is not usual for one in answers]
    return not bad, " · ".join(sorted(shapes)), bad


_CHECKS: dict[str, Callable[[Evidence, Sequence[Pair]], Checked]] = {
    "leak": _leak,
    "failure": _failure,
    "retry-some": _retry_some,
    "retry-all": lambda _, pairs: _every(pairs, lambda one: one.verdict, "no failure was provoked"),
    "when": _when,
    "field": _field,
    "executed": lambda _, pairs: _every(pairs, lambda one: one.effect, "no failure was provoked"),
    "consistent": _consistent,
    "docs": lambda _, pairs: _every(pairs, lambda one: one.link, "no failure was provoked"),
    "trace": lambda _, pairs: _every(pairs, lambda one: one.identity, "no failure was provoked"),
}
