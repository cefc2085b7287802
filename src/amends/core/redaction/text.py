"""Leaks in a text: found, and taken out."""

from __future__ import annotations

from collections.abc import Iterator

from amends.core.redaction.gate import suspicious
from amends.core.redaction.rule import MARKER, Leak, Rule

__all__ = ["find", "hits", "redact"]


def find(text: str) -> tuple[Leak, ...]:
    """
    Every leak in the text, in order, none overlapping another; for logging and warnings.

    >>> find("could not reach 10.0.0.5:5432")
    (Leak(kind='address', start=16, end=29),)
    """
    if not suspicious(text):
        return ()
    # The table and its words are loaded when a text first needs them.
    from amends.core.redaction.rules import rules

    return tuple(
        _merged(text, sorted(hits(text, text.lower(), rules()), key=lambda leak: (leak.start, -leak.end)))
    )


def hits(text: str, lower: str, rules: tuple[Rule, ...]) -> Iterator[Leak]:
    """Whatever these rules find in a text, which is given in lower case too; in the order of the rules."""
    for rule in rules:
        if not any(map(lower.__contains__, rule.needs)):
            continue
        pattern = rule.pattern
        group = "leak" if "leak" in pattern.groupindex else 0
        for match in pattern.finditer(text):
            span = match.span(group) if rule.judge is None else rule.judge(match)
            if span is not None and span[0] < span[1]:
                yield Leak(rule.kind, *span)


def _merged(text: str, leaks: list[Leak]) -> Iterator[Leak]:
    """Leaks that overlap, touch or have only white space between them become one, of the kind that began first."""
    if not leaks:
        return
    open_ = leaks[0]
    for leak in leaks[1:]:
        if leak.start <= open_.end or text[open_.end : leak.start].isspace():
            open_ = open_._replace(end=max(open_.end, leak.end))
        else:
            yield open_
            open_ = leak
    yield open_


# Taking something out can bring to light what its neighbour hid; seldom, and never often.
_PASSES = 4


def redact(text: str) -> str:
    """
    The text with every leak replaced by `[redacted]` (A19); most texts come back unchanged.

    What is returned contains no leak that `find` knows, so doing it twice changes nothing. A text that does not come to
    rest is replaced as a whole.

    >>> redact("could not reach 10.0.0.5:5432, try again later")
    'could not reach [redacted], try again later'
    """
    if not suspicious(text):
        return text
    for _ in range(_PASSES):
        leaks = find(text)
        if not leaks:
            return text
        pieces, at = [], 0
        for leak in leaks:
            pieces += [text[at : leak.start], MARKER]
            at = leak.end
        text = "".join([*pieces, text[at:]])
    return MARKER if find(text) else text
