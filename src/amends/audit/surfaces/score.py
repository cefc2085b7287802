"""The score and the findings of a service, from its evidence. Pure: the same evidence gives the same report."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from amends.audit.surfaces.evidence import ABOUT_INPUT, NO_INPUT, REPEATS, UNKNOWN_CODE, Answer, Evidence
from amends.audit.surfaces.questions import QUESTIONS, Question
from amends.audit.surfaces.reading import Reading, read

__all__ = ["ACCEPTED", "Asked", "Finding", "SurfaceReport", "score"]

BYTES_PER_TOKEN = 4
ACCEPTED = "accepted in the baseline"
"""Why a question with a finding does not lower the score."""
_OF_PROTOCOL = "JSON-RPC error"
_OF_HTTP = frozenset({"unknown-session", "unsupported-version", "no-credentials", "expired-credentials"})
"""Probes of MCP and A2A that HTTP answers, below the protocol."""
_NO_PATH = 404
_OTHER_REASONS = frozenset({401, 403, 404, 405, 406, 413, 415, 429, 501, 503})
"""Statuses of refusals for another reason than the value that was wrong."""
_WRITE = "repeated-write"

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
    came_up: bool = True
    """False if nothing was seen that the question is about; then it does not lower the score."""


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
    unanswered = sorted({one.probe for one in evidence.answers if one.outcome == "no-answer"})
    asked: list[Asked] = []
    findings: list[Finding] = []
    for question in QUESTIONS:
        if evidence.surface not in question.surfaces:
            continue
        met, because, guilty = _CHECKS[question.id](evidence, pairs)
        if met and question.id in _OF_EVERY_FAILURE and unanswered:
            met, because = None, f"{because}; no answer to {', '.join(unanswered)}"
        if met is False:
            finding = _finding(question, guilty, because)
            findings.append(finding)
            if finding.key in accepted:
                met, because = True, ACCEPTED
        asked.append(
            Asked(
                id=question.id,
                level=question.level,
                asks=question.asks,
                met=met,
                because=because,
                came_up=because not in _DID_NOT_COME_UP,
            )
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


_NO_RETRY = "no failure may be retried"
_NO_WRITE = "no write with a key was sent"
_DID_NOT_COME_UP = frozenset({_NO_RETRY, _NO_WRITE, NO_INPUT})
_OF_EVERY_FAILURE = frozenset({"retry-all", "executed", "consistent", "docs", "trace"})
"""Questions whose yes needs an answer to every probe."""
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


def _finding(question: Question, guilty: Sequence[Answer], because: str) -> Finding:
    first = guilty[0]
    status = _status(first)
    shown = "; ".join(first.leaks) if question.id == "leak" else first.text[:400] or "(empty)"
    if isinstance(status, int):
        shown = f"{status} {shown}"
    if question.id == "consistent":
        shown = f"{shown} (shapes: {because})"
    elif first.outcome == "success":
        shown = f"{shown} ({first.because})"
    return Finding(
        id=question.id,
        weight=question.weight,
        asks=question.asks,
        fix=question.fix,
        clause=question.clause,
        probes=sorted({one.probe for one in guilty}),
        sent=first.sent,
        evidence=f"{first.sent} → {shown}",
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
        return True, _NO_RETRY, []
    return _every(retriable, lambda reading: reading.wait, "")


def _field(evidence: Evidence, pairs: Sequence[Pair]) -> Checked:
    """
    A refusal for another reason, such as missing credentials, cannot name the value; an unknown path names itself.

    The name of a value in the path of an example, or of the code of an error page, is not known. Its refusal counts as
    a yes if a member names it, and else as nothing, because a text such as "id must be a number" may name it.
    """
    invalid = [pair for pair in pairs if pair[0].probe in ABOUT_INPUT]
    codes = [pair for pair in pairs if pair[0].probe == UNKNOWN_CODE]
    about_input = [pair for pair in [*invalid, *codes] if _shows_field(*pair)]
    if not about_input:
        if invalid and all(_status(one) == _NO_PATH for one, _ in invalid):
            return True, "invalid values were refused as unknown paths", []
        if any(_status(one) not in _OTHER_REASONS for one, _ in invalid):
            return None, "the name of the value that was wrong is not known: give --openapi FILE", []
        if any(one.probe in ABOUT_INPUT and one.because == NO_INPUT for one in evidence.answers):
            return True, NO_INPUT, []
    return _every(about_input, lambda reading: reading.field, "no invalid value could be sent")


def _shows_field(answer: Answer, reading: Reading) -> bool:
    """Return whether the answer to an invalid value shows that it is named, or that it is not."""
    status = _status(answer)
    if not answer.fields and (reading.field or (isinstance(status, int) and status < 500)):
        return reading.field
    return status not in _OTHER_REASONS


def _status(answer: Answer) -> object:
    return answer.response.get("status") if isinstance(answer.response, dict) else None


def _again(evidence: Evidence, pairs: Sequence[Pair]) -> Checked:
    """What was sent again after a disturbance has to be answered as before."""
    repeats = [one for one in evidence.answers if one.outcome in REPEATS and one.probe != _WRITE]
    if not repeats:
        return None, "nothing was sent again", []
    bad = [one for one in repeats if one.outcome == "stuck"]
    return not bad, f"{len(repeats) - len(bad)} of {len(repeats)} requests", bad


def _once(evidence: Evidence, pairs: Sequence[Pair]) -> Checked:
    """Needs --writes. If no write takes a key, the question does not come up."""
    repeats = [one for one in evidence.answers if one.outcome in REPEATS and one.probe == _WRITE]
    bad = [one for one in repeats if one.outcome == "stuck"]
    return not bad, "executed once" if repeats else _NO_WRITE, bad


def _extends(shape: str, smaller: str) -> bool:
    """Return whether a JSON object has all members of another shape and some more: they are optional."""
    if not shape.startswith("JSON {") or not smaller.startswith("JSON {") or smaller == "JSON {}":
        return False
    return set(smaller[6:-1].split(", ")) < set(shape[6:-1].split(", "))


def _consistent(evidence: Evidence, pairs: Sequence[Pair]) -> Checked:
    if not pairs:
        return None, "no failure was provoked", []
    shapes: dict[str, list[Answer]] = {}
    for one, reading in pairs:
        # MCP and A2A prescribe JSON-RPC errors for some failures and results for others, and HTTP for lost sessions.
        if evidence.surface in {"mcp", "a2a"} and (reading.shape == _OF_PROTOCOL or one.probe in _OF_HTTP):
            continue
        shapes.setdefault(reading.shape, []).append(one)
    for shape in sorted(shapes, key=len, reverse=True):
        smaller = next((one for one in sorted(shapes, key=len) if _extends(shape, one)), None)
        if smaller is not None:
            shapes[smaller] += shapes.pop(shape)
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
    "again": _again,
    "once": _once,
    "executed": lambda _, pairs: _every(
        [pair for pair in pairs if pair[0].probe != "lost-session"],  # resuming has no effect
        lambda one: one.effect,
        "no failure was provoked",
    ),
    "consistent": _consistent,
    "docs": lambda _, pairs: _every(pairs, lambda one: one.link, "no failure was provoked"),
    "trace": lambda _, pairs: _every(pairs, lambda one: one.identity, "no failure was provoked"),
}
