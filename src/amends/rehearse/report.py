"""The report of a rehearsal: rows, totals, and the comparison with an earlier one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from amends._version import __version__
from amends.rehearse.judge import Row
from amends.rehearse.stage import Violation

__all__ = ["Change", "Report", "compare", "document"]


class Report(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a rehearsal found."""

    command: str
    seed: int
    rows: list[Row] = []
    violations: list[Violation] = []
    checked: bool = False
    """Whether the end of the runs was judged."""
    mode: str = ""
    """How calls reached the stage."""
    version: str = __version__

    @property
    def score(self) -> int | None:
        """The lowest score; None if nothing was judged or the rehearsal is void."""
        scores = [row.score for row in self.rows if row.score is not None]
        return min(scores) if scores and not self.violations else None

    @property
    def sent(self) -> list[Row]:
        """The rows whose failure was sent."""
        return [row for row in self.rows if row.sent is not None]

    def count(self, rule: str) -> int:
        """Return how many rows have a finding of a rule."""
        return sum(any(each.rule == rule for each in row.findings) for row in self.rows)


class Change(msgspec.Struct, frozen=True):
    """A row whose score is not what it was."""

    row: str
    before: int | None
    after: int | None


def document(report: Report) -> dict[str, Any]:
    """Return the report as JSON values; timelines are without what models read."""
    built: dict[str, Any] = msgspec.to_builtins(report)
    for row in built.get("rows", ()):
        for call in row.get("timeline", ()):
            call.pop("-text", None)
        for name in ("at",):
            for call in row.get("timeline", ()):
                call[name] = round(call[name], 3)
    return {"format": 1, "score": report.score, **built}


def compare(before: Mapping[str, Any], report: Report) -> list[Change]:
    """
    Return the rows that changed since an earlier report.

    >>> compare({"rows": [{"service": "a", "kind": "rate", "score": 1}]}, Report(command="x", seed=0))
    [Change(row='a/rate', before=1, after=None)]

    Raises:
        ValueError: the document is no report.

    """
    rows = before.get("rows")
    if not isinstance(rows, Sequence):
        raise ValueError("it is no report of a rehearsal: it has no rows")  # noqa: TRY004 - it is the content of a file
    old = {
        f"{row.get('service')}/{row.get('kind')}": row.get("score")
        for row in rows
        if isinstance(row, Mapping)
    }
    new = {row.id: row.score for row in report.rows}
    return [
        Change(name, old.get(name), new.get(name))
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
    ]
