"""What an audit of a service sent, and what was answered. Answers are redacted and cut before they are kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import msgspec

from amends.core.redaction import URL_MEMBERS, find, redact, redact_value
from amends.core.text import strip

__all__ = ["SURFACES", "Answer", "Evidence", "answered", "not_probed"]

SURFACES = ("http", "mcp", "a2a", "arcp")
MAX_TEXT = 2000
"""Characters of an answer that are kept for people."""
_MAX_DEPTH = 12
_LEAKS = frozenset({"trace", "sql", "path", "token"})
"""The kinds that are leaks in any answer. Addresses and host names may be the service's own."""
_INTERNAL = (".internal", ".local", ".svc", ".cluster", ".corp", ".lan", ".intra")


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to one probe."""

    probe: str
    sent: str
    """What was sent, for people: "GET /amends-audit-unknown"."""
    outcome: str
    """failure · success (the service reported none) · no-answer · not-probed"""
    because: str = ""
    """Why there is no answer."""
    response: Any = None
    """What `extract` reads."""
    text: str = ""
    size: int = 0
    """Bytes that a model reads."""
    leaks: list[str] = []
    """Kinds and redacted surroundings of what should not have left the service."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All answers of one service. `score` needs nothing else, so stored evidence can be scored again."""

    surface: str
    target: str
    answers: list[Answer]
    version: str = ""
    """What the service says about itself: name and version."""


def not_probed(probe: str, because: str) -> Answer:
    """Return the entry of a probe that could not be sent."""
    return Answer(probe=probe, sent="", outcome="not-probed", because=because)


def answered(
    probe: str, sent: str, response: Any, *, failed: bool, body: str, target: str = "", because: str = ""
) -> Answer:
    """
    Return the entry of an answer. Leaks are looked for before the text is redacted.

    Args:
        probe: the name of the probe.
        sent: what was sent.
        response: what `extract` reads.
        failed: whether the service reported a failure.
        body: the text that a model reads.
        target: the service's own address, which is no leak.
        because: a remark, for example what was expected instead.

    """
    return Answer(
        probe=probe,
        sent=sent[:200],
        outcome="failure" if failed else "success",
        because=because,
        response=redact_value(response),
        text=strip(redact(body[: MAX_TEXT * 2]).replace("\n", "\\n"))[:MAX_TEXT],
        size=len(body.encode("utf-8", "replace")),
        leaks=_leaks(response, body, sent, target) if failed else [],
    )


def _leaks(response: Any, body: str, sent: str, target: str) -> list[str]:
    own = urlsplit(target).hostname or ""
    found: dict[str, None] = {}
    texts = list(_texts(response)) or [body]
    for text in texts[:200]:
        shown = text[:20_000]
        for leak in find(shown):
            span = shown[leak.start : leak.end]
            if leak.kind in _LEAKS:
                harmless = span in sent  # the service repeats what was sent
            else:
                harmless = own in span or not any(suffix in span.lower() for suffix in _INTERNAL)
            if not harmless:
                before = shown[max(0, leak.start - 30) : leak.start]
                found[f"{leak.kind}: {strip(redact(before))}[{leak.end - leak.start} characters]"] = None
    return list(found)[:5]


def _texts(value: Any, name: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the text in an answer, without members that hold URLs and without headers."""
    if depth > _MAX_DEPTH or name in URL_MEMBERS or name == "headers":
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _texts(each, str(key), depth + 1)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each, name, depth + 1)
