"""The baseline: a text file of accepted findings, one per line, so that an audit in CI fails only for new ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from amends.audit.surfaces.score import Finding

__all__ = ["read_baseline", "write_baseline"]

_HEAD = "# Accepted findings of `amends audit`, one per line: the question, then the probes.\n"


def read_baseline(path: Path) -> list[str]:
    """Return the accepted findings; a file that does not exist accepts none."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def write_baseline(path: Path, findings: Sequence[Finding]) -> None:
    """Write a file that accepts all of these findings."""
    path.write_text(_HEAD + "".join(f"{one.key}\n" for one in findings), encoding="utf-8")
