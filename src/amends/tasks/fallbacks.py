"""
Fallbacks in prose (T9): the section "Fallback Behaviors" of a CLAUDE.md or AGENTS.md.

Both forms of the agent error contract are read, in any mixture, under any heading level, with `-`, `*`, `+` or numbers:

    If Google Calendar MCP is not connected:          **Calendar Agent without Google Calendar:**
    1. Inform user that …                             - Report …
    2. Offer to help …                                - Offer …

Fenced code inside the section is read as if it were not fenced, because copied examples are often fenced. Prose between the
lists is ignored. A line that looks like a fallback and cannot be parsed is an error that names the file and the line, because a
fallback that was silently ignored would only be noticed when it is needed.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from amends.core.wrong_calls import explains_wrong_calls

__all__ = ["Fallback", "FallbackError", "parse_fallbacks", "read_fallbacks"]

_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.*?)[ \t#]*$")
_SECTION = re.compile(r"^fallback\s+behaviou?rs?$", re.IGNORECASE)
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_ITEM = re.compile(r"^\s{0,8}(?:[-*+]|\d{1,3}[.)])\s+(.*\S)\s*$")
_WHEN = re.compile(
    r"^(?:if|when|whenever)\s+(?:the\s+)?(?P<mcp>.+?)(?:\s+(?:mcp|connection))?(?:\s+server)?\s+"
    r"(?:is\s+not|isn['’]t|is)\s+(?:connected|available|configured|reachable|set\s+up|missing|unavailable|down)$",
    re.IGNORECASE,
)
_WITHOUT = re.compile(
    r"^(?P<agent>.+?)\s+without\s+(?:the\s+)?(?P<mcp>.+?)(?:\s+mcp)?(?:\s+server)?$", re.IGNORECASE
)
_LOOKS_LIKE_FALLBACK = re.compile(r"^(?:if|when|whenever)\s|\swithout\s", re.IGNORECASE)


class FallbackError(ValueError):
    """
    A fallback that cannot be parsed. The message names the file and the line.

    >>> try:
    ...     parse_fallbacks('''## Fallback Behaviors
    ... If Google Calendar MCP is not connected:''', "AGENTS.md")
    ... except FallbackError as error:
    ...     error.path, error.line
    ('AGENTS.md', 2)
    """

    def __init__(self, path: str, line: int, problem: str) -> None:
        super().__init__(path, line, problem)
        self.path, self.line, self.problem = path, line, problem

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.problem}"


class Fallback(msgspec.Struct, frozen=True, kw_only=True):
    """
    What to do instead when an MCP server is missing. `Agent(fallbacks=...)` takes them.

    >>> (fallback,) = parse_fallbacks('''
    ... ## Fallback Behaviors
    ... If Google Calendar MCP is not connected:
    ... - Offer a reminder instead
    ... ''')
    >>> fallback.applies("google-calendar", "calendar-agent")
    True
    """

    mcp: str
    """The name of the missing server, as written in the file."""
    steps: tuple[str, ...]
    agent: str | None = None
    """The agent that the fallback is for; None: every agent that reads the file."""

    def applies(self, mcp: str, agent: str) -> bool:
        """Whether the fallback is for this agent and this server. Case and punctuation of the names do not matter."""
        if self.agent is not None and _normalize(self.agent, "agent") != _normalize(agent, "agent"):
            return False
        return _normalize(self.mcp, "mcp") == _normalize(mcp, "mcp")


def _normalize(name: str, noise: str) -> str:
    """A name in lower case, without punctuation and without suffixes such as "agent" or "server"."""
    parts = re.findall(r"[^\W_]+", name.casefold())
    return "".join(part for part in parts if part not in {noise, "server", "the"}) or "".join(parts)


@explains_wrong_calls
def read_fallbacks(path: str | Path) -> tuple[Fallback, ...]:
    """
    Read the fallbacks of a file; none if it has no such section.

        calendar = Agent("calendar-agent", mcp={"google-calendar": url}, fallbacks=read_fallbacks("AGENTS.md"))

    Raises:
        FallbackError: the section cannot be parsed, or the file is not UTF-8 text.
        OSError: the file cannot be read.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise FallbackError(str(path), 1, "the file is not UTF-8 text") from None
    return parse_fallbacks(text, str(path))


@explains_wrong_calls
def parse_fallbacks(text: str, path: str = "text") -> tuple[Fallback, ...]:
    """
    Parse the fallbacks of a text.

    >>> (fallback,) = parse_fallbacks('''
    ... ## Fallback Behaviors
    ... If Google Calendar MCP is not connected:
    ... - Offer a reminder instead
    ... ''')
    >>> fallback.mcp, fallback.steps
    ('Google Calendar', ('Offer a reminder instead',))

    Raises:
        FallbackError: the section cannot be parsed.
    """
    found: list[Fallback] = []
    current: tuple[int, str, str | None] | None = None
    steps: list[str] = []

    def close() -> None:
        if current is None:
            return
        line, mcp, agent = current
        if not steps:
            raise FallbackError(
                path, line, f"the fallback for {mcp!r} has no list items: list what to do instead"
            )
        found.append(Fallback(mcp=mcp, agent=agent, steps=tuple(steps)))

    for number, line in _section(text):
        item = _ITEM.match(line)
        if item is not None and current is not None:
            steps.append(_strip_emphasis(item[1]))
            continue
        if item is not None and _condition(item[1]) is None:
            raise FallbackError(
                path, number, "a list item without a line “If … is not connected:” or “… without …:” above it"
            )
        title = item[1] if item is not None else line.strip()
        opened = _condition(title)
        if opened is not None:
            close()
            current, steps = (number, *opened), []
        elif steps and line.startswith((" ", "\t")) and line.strip():
            steps[-1] += " " + _strip_emphasis(line)  # the item continues on this line
        elif title.rstrip("*_ ").endswith(":") and _LOOKS_LIKE_FALLBACK.search(title.strip("*_ ")):
            raise FallbackError(
                path,
                number,
                "cannot be parsed: write “If NAME MCP is not connected:” or “AGENT without NAME:”, then a list",
            )
    close()
    return tuple(found)


def _section(text: str) -> list[tuple[int, str]]:
    """The lines of the section with their numbers, without the fences."""
    inside, level, fenced = False, 0, False
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
            continue
        heading = None if fenced and not inside else _HEADING.match(line)
        if heading is not None:
            title = heading[2].strip("*_: ")
            if _SECTION.match(title):
                inside, level = True, len(heading[1])
            elif inside and len(heading[1]) <= level and not fenced:
                inside = False
            elif inside:
                lines.append((number, heading[2]))
            continue
        if inside:
            lines.append((number, line))
    return lines


def _condition(title: str) -> tuple[str, str | None] | None:
    """(missing server, agent) if the line starts a fallback."""
    plain = _strip_emphasis(title).strip("*_ ")
    if not plain.endswith(":"):
        return None
    plain = plain.rstrip(": ").strip("*_ ")
    when = _WHEN.match(plain)
    if when is not None:
        return when["mcp"].strip(), None
    without = _WITHOUT.match(plain)
    return (without["mcp"].strip(), without["agent"].strip()) if without is not None else None


def _strip_emphasis(text: str) -> str:
    """The text of a line without the emphasis marks around it."""
    text = text.strip()
    for mark in ("**", "__"):
        if text.startswith(mark) and text.endswith((mark, f"{mark}:")) and len(text) > 2 * len(mark):
            text = text.removesuffix(":").strip(mark[0]) + (":" if text.endswith(":") else "")
    return text
