"""Finding leaks in a text, and replacing them."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from amends.core.redaction.gate import suspicious
from amends.core.redaction.rule import KINDS, MARKER, Leak, Rule

__all__ = ["find", "hits", "redact"]


def find(text: str, *, kinds: AbstractSet[str] = KINDS) -> tuple[Leak, ...]:
    """
    Return every leak of `kinds` in the text, in order; none overlaps another.

    >>> find("could not reach 10.0.0.5:5432")
    (Leak(kind='address', start=16, end=29),)
    """
    if not suspicious(text):
        return ()
    # The table is loaded when a text first needs it.
    from amends.core.redaction.rules import rules

    found = hits(text, text.lower(), tuple(rule for rule in rules() if rule.kind in kinds))
    return tuple(_merged(text, sorted(found, key=lambda leak: (leak.start, -leak.end))))


def hits(text: str, lower: str, rules: tuple[Rule, ...]) -> Iterator[Leak]:
    """Yield what these rules find in a text, in the order of the rules. `lower` is the text in lower case."""
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
    """Join leaks that overlap, touch or have only white space between them; the first one gives the kind."""
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


# Replacing one leak can make another one match. Two passes are the most seen so far.
_PASSES = 4


def redact(text: str, *, kinds: AbstractSet[str] = KINDS) -> str:
    """
    Return the text with every leak of `kinds` replaced by `[redacted]` (A19); most texts come back unchanged.

    The result contains no leak that `find` knows, so redacting twice changes nothing. A text that still has one after
    a few passes is replaced as a whole.

    >>> redact("could not reach 10.0.0.5:5432, try again later")
    'could not reach [redacted], try again later'
    """
    if not suspicious(text):
        return text
    for _ in range(_PASSES):
        leaks = find(text, kinds=kinds)
        if not leaks:
            return text
        pieces, at = [], 0
        for leak in leaks:
            pieces += [text[at : leak.start], MARKER]
            at = leak.end
        text = "".join([*pieces, text[at:]])
    return MARKER if find(text, kinds=kinds) else text
