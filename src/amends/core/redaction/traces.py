"""Exception class names, and the repr of objects."""

from __future__ import annotations

import re

__all__ = ["judge_class", "judge_repr"]


def judge_class(match: re.Match[str]) -> tuple[int, int] | None:
    """`java.lang.IllegalStateException`, `psycopg.errors.UniqueViolation`: the class of an exception."""
    labels = match[0].split(".")
    if not labels[-1][:1].isupper() or labels[-1].isupper():
        return None
    ends = labels[-1].endswith(("Exception", "Error", "Failure", "Throwable", "Fault", "Violation"))
    return (
        match.span() if ends or not {"errors", "exceptions", "exc", "err"}.isdisjoint(labels[:-1]) else None
    )


def judge_repr(match: re.Match[str]) -> tuple[int, int] | None:
    """`<bound method ...>`, `<Order at 0x7f...>`."""
    said = match[0]
    telling = " at 0x" in said or said.startswith(
        ("<bound method ", "<function ", "<coroutine ", "<Task ", "<Future ")
    )
    return match.span() if telling else None
