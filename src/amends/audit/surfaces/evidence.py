"""What an audit of a service sent, and what was answered. Answers are redacted and cut before they are kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

import msgspec

from amends.core.redaction import SECRETS, URL_MEMBERS, find, redact, redact_value
from amends.core.text import strip
from amends.core.wire import compact

__all__ = [
    "ABOUT_INPUT",
    "NO_INPUT",
    "REPEATS",
    "SURFACES",
    "UNKNOWN_CODE",
    "Answer",
    "Evidence",
    "answered",
    "as_text",
    "conceal",
    "not_probed",
    "texts",
]

REPEATS = frozenset({"recovered", "stuck"})
"""Outcomes of requests that were sent again after the proxy disturbed them."""
ABOUT_INPUT = frozenset({"wrong-type", "missing-value", "wrong-argument", "missing-argument"})
"""Probes whose failure is about one value of the request."""
UNKNOWN_CODE = "unknown-code"
"""The probe that asks for the page of an error that does not exist."""
NO_INPUT = "nothing takes a value that could be wrong"
SURFACES = ("http", "mcp", "a2a", "arcp")
MAX_TEXT = 2000
"""Characters of an answer that are kept for people."""
SHORTEST_SECRET = 6
_MAX_DEPTH = 12
_LEAKS = frozenset({"trace", "sql", "path", "token"})
"""The kinds that are leaks in any answer. Addresses and host names may be the service's own."""
_SENT = re.compile("amends[-_ ]audit")
"""Every value that the audits send has this in it."""
_TYPE = re.compile(r"(?i)[\w ]*(string|number|integer|boolean|object|array|null|undefined|str|int|bool)\W*")
_INTERNAL = (".internal", ".local", ".svc", ".cluster", ".corp", ".lan", ".intra")


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to one probe."""

    probe: str
    sent: str
    """What was sent, for people: "GET /amends-audit-unknown"."""
    outcome: str
    """failure · success (the service reported none) · no-answer · not-probed; of a request that was sent again, recovered · stuck"""
    because: str = ""
    """Why there is no answer."""
    response: object = None
    """What `extract` reads."""
    text: str = ""
    size: int = 0
    """Bytes that a model reads."""
    fields: list[str] = []
    """The names of the values that were wrong or missing."""
    leaks: list[str] = []
    """Kinds and redacted surroundings of what should not have left the service."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All answers of one service. `score` needs nothing else, so stored evidence can be scored again."""

    surface: str
    target: str
    answers: list[Answer]
    version: str = ""
    """What the service says about itself: name and version."""


def conceal(evidence: Evidence, secrets: Sequence[str]) -> Evidence:
    """
    Return the evidence without the values of credentials that were sent, which a service may repeat in any member.

    Lone surrogates, which no encoder accepts, are replaced, too.
    """
    text = as_text(msgspec.to_builtins(evidence))
    for secret in secrets:
        for part in (secret, secret.rpartition(" ")[2]):
            if len(part) >= SHORTEST_SECRET:
                text = text.replace(msgspec.json.encode(part).decode()[1:-1], "[redacted]")
    return msgspec.json.decode(text, type=Evidence)


def as_text(value: object) -> str:
    """Return a value as compact JSON; a text as it is."""
    return value if isinstance(value, str) else (compact(value) or b"").decode("utf-8", "replace")


def not_probed(probe: str, because: str, sent: str = "") -> Answer:
    """Return the entry of a probe that could not be sent, or whose answer says nothing."""
    return Answer(probe=probe, sent=redact(sent, kinds=SECRETS), outcome="not-probed", because=because)


def answered(
    probe: str,
    sent: str,
    response: object,
    *,
    failed: bool,
    body: str,
    target: str = "",
    because: str = "",
    fields: Sequence[str] = (),
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
        fields: the names of the values that were wrong or missing.

    """
    return Answer(
        probe=probe,
        sent=redact(sent, kinds=SECRETS)[:200],
        outcome="failure" if failed else "success",
        because=because,
        response=redact_value(response),
        text=strip(redact(body[: MAX_TEXT * 2]).replace("\n", "\\n"))[:MAX_TEXT],
        size=len(body.encode("utf-8", "replace")),
        fields=list(fields),
        leaks=_leaks(response, body, sent, target) if failed else [],
    )


def _leaks(response: object, body: str, sent: str, target: str) -> list[str]:
    own = urlsplit(target).hostname or ""
    found: dict[str, None] = {}
    for text in (list(texts(response)) or [body])[:200]:
        shown = text[:20_000]
        for leak in find(shown):
            span = shown[leak.start : leak.end]
            if leak.kind in _LEAKS:
                # The service repeats what was sent, or describes a type.
                harmless = span in sent or bool(_SENT.search(span) or _TYPE.fullmatch(span))
            else:
                harmless = own in span or not any(suffix in span.lower() for suffix in _INTERNAL)
            if not harmless:
                before = shown[max(0, leak.start - 30) : leak.start]
                found[f"{leak.kind}: {strip(redact(before))}[{leak.end - leak.start} characters]"] = None
    return list(found)[:5]


def texts(value: object, name: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the text in an answer, without members that hold URLs and without headers."""
    if depth > _MAX_DEPTH or name in URL_MEMBERS or name == "headers":
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from texts(each, str(key), depth + 1)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts(each, name, depth + 1)
