"""
Judges a run by its record: what the stage sent, what the program did next, and how it ended.

Nothing here asks amends what it would have decided. The right reaction is recorded with the failure, with the rule that demands it
(`Incident.reaction` and `because`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from amends.core.meanings import MEANINGS
from amends.rehearse.kinds import CONNECTION, KINDS, Reaction
from amends.rehearse.plan import Failure, Plan
from amends.rehearse.score import Finding, score_of
from amends.rehearse.stage import CallRecord, Incident, Record, effects_of

__all__ = ["End", "Row", "judge"]

_EARLY = 0.05
"""Seconds by which a wait may be shorter: the clocks of a caller and of the stage have their own resolution."""
_DOUBT = re.compile(
    r"unknown|not known|uncertain|doubt|may have|might have|maybe|executed|verify|time[d -]{0,2}out|lost|disconnect|"
    r"no answer|no response|interrupt|incomplete|without sending|connection|could not be read|cut off",
    re.IGNORECASE,
)
"""Terms by which a text shows that an outcome is not known, or why."""
_MESSAGES = re.compile(r'"(?:message|detail|title)"\s*:\s*"((?:[^"\\]|\\.){9,300})"')
_SPOKEN = {
    "quota": ("quota", "billing", "credit", "budget"),
    "expired": ("api key", "credential", "unauthorized", "unauthenticated", "token", "authentication"),
    "permission": ("permission", "forbidden", "not allowed", "denied", "not supported"),
    "not-found": ("not found", "does not exist", "no such"),
    "context-too-long": ("context", "too long"),
    "content-refused": ("content", "policy", "refused"),
    "payment": ("card", "payment", "declined"),
}


class End(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How a run ended."""

    status: int | None = None
    """The exit code; in the process 1 if the block raised an exception, and 0 if not."""
    output: str = ""
    """What the user could read: the output, the exit document, the exception."""
    killed: bool = False
    """Whether the program ran longer than it may."""
    seconds: float = 0.0
    check: bool | None = None
    """Whether the user's own test of the result passed; None: there is none."""


class Row(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The judgement about one planned failure."""

    service: str
    kind: str
    score: int | None = None
    """0 to 3; None: it was not sent, or the run is void."""
    findings: list[Finding] = []
    note: str = ""
    """Why there is no score."""
    calls: int = 0
    """Calls that reached the service for this failure, with the failed one."""
    stuck: float = 0.0
    """Seconds from the failure to the next call, or to the end of the program."""
    sent: Incident | None = None
    """What was sent first."""
    again: int = 0
    """How often the same failure was sent after the first time."""
    end: End | None = None
    timeline: list[CallRecord] = []

    @property
    def id(self) -> str:
        """The service and the kind."""
        return f"{self.service}/{self.kind}"


def judge(
    record: Record,
    failures: Sequence[Failure],
    end: End,
    plan: Plan,
    ordinary: Mapping[str, int] | None = None,
) -> list[Row]:
    """
    Return a row for each planned failure of a run.

    Args:
        record: what the stage recorded.
        failures: the planned failures.
        end: how the run ended.
        plan: the plan.
        ordinary: digest of a request → how often it takes effect in a run without failures.

    """
    rows = [_row(record, failure, end, plan, ordinary or {}) for failure in failures]
    _judge_claim(rows, end)
    for row in rows:
        if row.sent is None:
            continue
        if end.check is None:
            row.findings.append(
                Finding("not-judged", "the end was not judged", "Give a test of the result: --check COMMAND")
            )
        row.score = None if record.violations else score_of(row.findings)
        if record.violations:
            row.note = "void: connections beyond this machine were refused"
    return rows


def _row(record: Record, failure: Failure, end: End, plan: Plan, ordinary: Mapping[str, int]) -> Row:
    row = Row(service=failure.service, kind=failure.kind, end=end, timeline=record.calls)
    incidents = [each for each in record.incidents if each.failure == failure.id]
    if not incidents:
        row.note = "not sent: " + record.unsent.get(failure.id, "it was not due")
        return row
    row.sent, row.again = incidents[0], len(incidents) - 1
    row.findings = list(_Case(record, incidents, end, plan, ordinary, row).findings())
    return row


class _Case:
    """One planned failure with all that was sent for it, and what the program did afterwards."""

    def __init__(
        self,
        record: Record,
        incidents: Sequence[Incident],
        end: End,
        plan: Plan,
        ordinary: Mapping[str, int],
        row: Row,
    ) -> None:
        self.record, self.incidents, self.end, self.plan = record, incidents, end, plan
        self.first = incidents[0]
        self.kind = KINDS[self.first.kind]
        self.call = record.calls[self.first.call - 1]
        self.later = [
            each
            for each in record.calls
            if each.number > self.call.number and each.at >= self.first.at - _EARLY
        ]
        """Calls that the program made when it knew of the failure. Those that were already on their way do not count."""
        self.there = [each for each in self.later if each.service == self.first.service]
        self.same = [each for each in self.there if self._is_same(each)]
        self.duplicates = effects_of(record).get(self.call.digest, 0) - max(
            1, ordinary.get(self.call.digest, 1)
        )
        row.calls = 1 + len(self.same)
        following = min((each.at for each in self.later), default=end.seconds)
        row.stuck = round(max(0.0, following - self.call.at), 2)

    def _is_same(self, call: CallRecord) -> bool:
        """Return whether a call is the failed one again. What a refused connection would have sent is known by its route only."""
        if self.first.kind in CONNECTION:
            return (call.method, call.path) == (self.call.method, self.call.path)
        return call.digest == self.call.digest

    def findings(self) -> Iterator[Finding]:
        """Yield what the program did wrong."""
        if self.duplicates > 0:
            calls = tuple(each.number for each in (self.call, *self.same) if each.effect)
            yield self._finding("duplicate", f"the effect happened {self.duplicates + 1} times", calls)
        yield from self._stuck()
        broken = list(self._waits())
        yield from broken
        if self.first.reaction in {Reaction.STOP, Reaction.FIX}:
            yield from self._refused()
        elif self.first.reaction is Reaction.VERIFY and self.call.acts:
            yield from self._doubtful()
        elif not self._cured() and not broken:  # a wait that is not kept is the cause
            computes = self.first.reaction is Reaction.VERIFY
            change = "Repeat it a few times: the call has no effect beyond its answer." if computes else ""
            yield self._finding("gave-up", "no later call succeeded, and a repeat would have", (), change)
        tries = 1 + len(self.same)
        if tries > self.plan.calls:
            seen = f"{tries} calls reached the service for one failure"
            yield self._finding(
                "multiplied", seen, change="Let one layer repeat, and switch off the retries of the others."
            )
        yield from self._leaks()

    def _finding(
        self, rule: str, seen: str, calls: tuple[int, ...] | None = None, change: str = ""
    ) -> Finding:
        named = tuple(each.number for each in self.same) if calls is None else calls
        return Finding(
            rule,
            seen,
            change or self.kind.advice,
            (self.call.number, *(n for n in named if n != self.call.number)),
        )

    def _stuck(self) -> Iterator[Finding]:
        held = [
            self.record.calls[each.call - 1] for each in self.incidents if each.kind in {"silent", "late"}
        ]
        longest = max((each.held for each in held if not each.abandoned), default=0.0)
        if self.first.kind == "silent" and longest >= self.plan.patience * 0.95:
            yield self._finding("hang", f"a call waited {longest:.0f} s for a silent connection")
        elif self.end.killed:
            yield self._finding("hang", f"the program was still running after {self.end.seconds:.0f} s", ())

    def _waits(self) -> Iterator[Finding]:
        for each in self.incidents:
            if each.wait is None or each.reaction is not Reaction.REPEAT:
                continue
            early = [one for one in self.there if each.at + 0.001 < one.at < each.at + each.wait - _EARLY]
            if early:
                seen = f"{each.wait:g} s were announced, and the next call came after {early[0].at - each.at:.2f} s"
                yield self._finding("wait-broken", seen, tuple(one.number for one in early))
                return

    def _refused(self) -> Iterator[Finding]:
        """Failures that no repeat cures: nothing may be repeated, and the reason has to arrive."""
        repeated = [each for each in self.there if each.failure == self.first.failure and each.again]
        if repeated:
            rule = (
                "exhausted-repeated"
                if self.kind.harmful_repeat or self._meaning() == "quota"
                else "repeated-unchanged"
            )
            seen = f"{len(repeated)} calls met the same refusal again"
            yield self._finding(rule, seen, tuple(each.number for each in repeated))
        if not self._changed() and not self._told():
            seen = "no changed call succeeded, and neither a model nor the output has the reason"
            yield self._finding(
                "not-told", seen, (), "Pass code, field and message to the model, or to the user."
            )

    def _doubtful(self) -> Iterator[Finding]:
        """Calls that act, and whose outcome the program cannot know."""
        looks = [
            each
            for each in self.there
            if not each.acts and each.failure is None and (each.status or 500) < 400
        ]
        repeats = [each for each in self.same if not each.keyed]
        blind = [each for each in repeats if not any(look.number < each.number for look in looks)]
        if blind and self.duplicates <= 0:
            seen = "the call was sent again without a key that the service honours, and without a look"
            yield self._finding("repeated-blindly", seen, tuple(each.number for each in blind))
        settled = looks or [each for each in self.same if each.keyed and each.failure is None]
        settled = settled or [
            each for each in (self.call,) if self.first.kind == "late" and not each.abandoned
        ]
        if not settled and not repeats and not self._told():
            yield self._finding(
                "doubt-dropped", "the program neither looked, nor repeated with a key, nor said so", ()
            )

    def _cured(self) -> bool:
        if self.first.kind == "late" and not self.call.abandoned:
            return True
        if any(each.failure is None and (each.status or 500) < 400 for each in self.same):
            return True
        # Another way to the same result: a later call did the work, by the user's own test and by its exit code.
        done = bool(self.end.check) and self.end.status == 0
        return done and any(each.failure is None and (each.status or 500) < 400 for each in self.later)

    def _changed(self) -> bool:
        """Return whether the call succeeded in another form."""
        return any(
            each.failure is None
            and (each.status or 500) < 400
            and each.path == self.call.path
            and each.acts == self.call.acts
            for each in self.there
        )

    def _meaning(self) -> str:
        return self.first.meaning or ""

    def _told(self) -> bool:
        """
        Return whether a model read of the failure in a later call, or the user in the output.

        A term that a model had read before, such as the name of a field in the description of a tool, is no news.
        """
        before = max(
            (each.text for each in self.record.calls if each.model and each not in self.later),
            key=len,
            default="",
        )
        after = max((each.text for each in self.later if each.model), key=len, default="")
        output = self.end.output
        if self.first.reaction is Reaction.VERIFY:
            for known, text in ((before, after), ("", output)):
                if len(_DOUBT.findall(text)) > len(_DOUBT.findall(known)):
                    return True
        known, text, output = before.lower(), after.lower(), output.lower()
        # The arguments of a tool's call are in the conversation, too.
        asked = "" if self.call.model else self.call.text.lower()
        return any(
            text.count(word) > known.count(word) + asked.count(word) or word in output
            for word in self._words()
        )

    def _words(self) -> Iterator[str]:
        """Yield the terms by which the failure is recognised: its code, field and message, and what its kind is called."""
        first = self.first
        for each in (first.code, first.field, first.kind):
            if each and len(each) > 2:
                yield each.lower()
        meaning = MEANINGS.get(self._meaning())
        if meaning is not None:
            yield meaning.code.lower()
        for message in _MESSAGES.findall(first.body):
            yield message.lower()
        yield from _SPOKEN.get(first.kind, ())
        if first.status is not None and first.status >= 400:
            yield str(first.status)

    def _leaks(self) -> Iterator[Finding]:
        canaries = {each.canary for each in self.incidents if each.canary}
        for word in canaries:
            models = tuple(each.number for each in self.later if each.model and word in each.text)
            if models:
                yield self._finding(
                    "leaked", f"a model read {word!r}, which occurs only inside the service", models, _LEAK
                )
            elif word in self.end.output:
                yield self._finding(
                    "leaked", f"the output has {word!r}, which occurs only inside the service", (), _LEAK
                )


_LEAK = "Pass on code, field and message, and not the whole answer or the traceback."


def _judge_claim(rows: Sequence[Row], end: End) -> None:
    """Add the finding of a program that ends as if it had succeeded, and has not: to what was not cured, else to all."""
    if end.check is not False or end.status != 0:
        return
    sent = [row for row in rows if row.sent is not None and score_of(row.findings) > 0]
    open_rows = [
        row
        for row in sent
        if any(each.rule in {"gave-up", "not-told", "doubt-dropped"} for each in row.findings)
    ]
    for row in open_rows or sent:
        row.findings.insert(
            0,
            Finding(
                "claimed",
                "the program ended with exit code 0, and the check of its result failed",
                "End with another exit code, or say in the result what is missing.",
                (row.sent.call,) if row.sent is not None else (),
            ),
        )
