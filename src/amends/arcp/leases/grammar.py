"""
Parse and compare the patterns of each capability (section 9.2).

Each capability has a row with the kind of its patterns (paths, URLs, names, amounts). Unknown capabilities are rejected,
because a misspelt grant would silently grant nothing; those of vendors begin with `x-`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import msgspec

from amends.arcp.leases.globs import MANY, Segment, glob_covers, parse_segment
from amends.arcp.leases.targets import (
    Refused,
    host_of,
    name_segments,
    path_segments,
    split_url,
    url_path,
)

__all__ = ["CAPABILITIES", "MAX_PATTERN", "covers", "is_known", "parse_pattern", "parse_target"]

MAX_PATTERN = 2048
_CAPABILITY = re.compile(r"x-[a-z0-9-]+(?:\.[a-z0-9_-]+)*", re.ASCII)


class Pattern(msgspec.Struct, frozen=True):
    """A parsed pattern or target: `exact` parts must be equal, `globs` must be covered."""

    exact: tuple[str, ...] = ()
    globs: tuple[tuple[Segment, ...], ...] = ()


def _glob(parts: tuple[str, ...]) -> tuple[Segment, ...]:
    segments = tuple(parse_segment(part) for part in parts)
    if None in segments:
        raise Refused("`**` as a part of a segment")
    return segments


def _letters(parts: tuple[str, ...]) -> tuple[Segment, ...]:
    return tuple(tuple(part) for part in parts)


def _path(text: object, *, pattern: bool) -> Pattern:
    return Pattern(globs=((_glob if pattern else _letters)(path_segments(text)),))


def _name(text: object, *, pattern: bool) -> Pattern:
    return Pattern(globs=((_glob if pattern else _letters)(name_segments(text)),))


def _agent(text: object, *, pattern: bool) -> Pattern:
    """`name` covers every version of the agent, `name@version` only that one."""
    parts = name_segments(text)
    name, at, version = parts[-1].partition("@")
    parse = _glob if pattern else _letters
    anything: tuple[Segment, ...] = (MANY,)
    return Pattern(
        globs=(parse((*parts[:-1], name)), parse((version,)) if at else anything if pattern else ())
    )


def _url(text: object, *, pattern: bool) -> Pattern:
    scheme, host, port, path = split_url(text)
    if not pattern:
        address, host = host_of(host)
        return Pattern((scheme, host if address else ""), _url_globs(_letters, host, address, port, path))
    if isinstance(text, str) and ("?" in text or "#" in text):
        raise Refused("a query or fragment in a pattern")
    address = "*" not in host
    if address:
        address, host = host_of(host)
    else:
        # A wildcard matches plain names, so the rest of the host must be plain too.
        host_of(host.replace("**", "a").replace("*", "a"))
    return Pattern((scheme, host if address else ""), _url_globs(_glob, host, address, port, path))


def _url_globs(
    parse: Callable[[tuple[str, ...]], tuple[Segment, ...]], host: str, address: bool, port: str, path: str
) -> tuple[tuple[Segment, ...], ...]:
    labels = () if address else tuple(host.split("."))
    segments = url_path(path) if path else ("",)
    return parse(labels), parse((port,)), parse(segments)


Reader = Callable[..., Pattern]
"""Parses a `text` of one kind, as a `pattern` or as a target, or raises Refused."""


CAPABILITIES: dict[str, Reader | None] = {
    "fs.read": _path,
    "fs.write": _path,
    "net.fetch": _url,
    "tool.call": _name,
    "agent.delegate": _agent,
    "model.use": _name,
    "cost.budget": None,
}
"""The reserved capabilities and the parsers of their patterns; `budget` parses amounts."""


def is_known(capability: object) -> bool:
    """Whether a capability is reserved or a vendor's."""
    return isinstance(capability, str) and (
        capability in CAPABILITIES or (len(capability) <= 64 and bool(_CAPABILITY.fullmatch(capability)))
    )


@lru_cache(maxsize=4096)
def parse_pattern(capability: str, pattern: str) -> Pattern:
    """
    Parse a pattern of a grant.

    Raises:
        Refused: it is ambiguous or invalid.

    """
    if len(pattern) > MAX_PATTERN:
        raise Refused("too long")
    reader: Reader | None = CAPABILITIES.get(capability, _name)
    if reader is None:
        raise Refused("an amount is not a pattern")
    return reader(pattern, pattern=True)


def parse_target(capability: str, target: object) -> Pattern:
    """
    Parse the target of an operation.

    Raises:
        Refused: it is ambiguous or invalid.

    """
    reader: Reader | None = CAPABILITIES.get(capability, _name)
    if reader is None:
        raise Refused("an amount is not a target")
    return reader(target, pattern=False)


def covers(pattern: Pattern, other: Pattern) -> bool:
    """
    Whether a pattern covers a target, or everything that another pattern covers.

    >>> reports = parse_pattern("fs.read", "/reports/**")
    >>> covers(reports, parse_target("fs.read", "/reports/2025/may.csv"))
    True
    >>> covers(reports, parse_pattern("fs.read", "/**"))
    False
    """
    return (
        pattern.exact == other.exact
        and len(pattern.globs) == len(other.globs)
        and all(glob_covers(mine, theirs) for mine, theirs in zip(pattern.globs, other.globs, strict=True))
    )
