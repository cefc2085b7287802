"""`amends explain` without a code: an overview, the codes of one vocabulary, or those that contain a text."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import NamedTuple

from amends.cli.colour import Painter
from amends.commands.console import emit, wants_json
from amends.commands.view import columns, counted, painter
from amends.core.vocabulary import EVERYDAY, names, vocabulary
from amends.core.wrapping import wrapped
from amends.errors.cli import NotFoundError

__all__ = ["run"]

_EXAMPLES = {
    "amends explain RATE_LIMITED": "a code: what it means and what to do",
    "amends explain 429": "an HTTP status",
    "amends explain openai:insufficient_quota": "a code of a vendor",
    "amends explain openai:": "all codes of a vendor",
    "amends explain --search quota": "codes that contain a text",
}


class _Found(NamedTuple):
    """A code, and where it is defined."""

    code: str
    message: str
    sources: list[str]


def run(args: argparse.Namespace) -> int:
    """List what the arguments ask for."""
    if args.search is not None:
        return _search(args)
    if args.code == ":":
        return _vendors(args)
    return _overview(args) if args.vocabulary is None else _one_vocabulary(args)


def _overview(args: argparse.Namespace) -> int:
    from amends.vendors.registry import names as service_names

    if wants_json(args):
        emit(
            {
                "vocabularies": {name: sorted(vocabulary(name).rows) for name in names()},
                "vendors": sorted(service_names()),
            }
        )
        return 0
    paint, width = painter(), columns()
    room = max(map(len, _EXAMPLES))
    lines = [f"{each:<{room}}  {paint(what, 'dim')}" for each, what in _EXAMPLES.items()]
    everyday = ", ".join(vocabulary(EVERYDAY).rows)
    lines += ["", paint("everyday codes", "bold"), f"  {wrapped(everyday, width, 2)}"]
    lines += ["", paint("vocabularies", "bold") + " (--vocabulary NAME lists the codes of one)"]
    for name in names():
        rows = vocabulary(name).rows
        if rows:
            lines.append(
                f"  {name:<9} {counted(len(rows), 'code'):<9}  {paint(vocabulary(name).title, 'dim')}"
            )
    lines += ["", paint("vendors", "bold") + f" ({len(service_names())}; amends explain : lists them)", ""]
    sys.stdout.write("\n".join(lines))
    return 0


def _vendors(args: argparse.Namespace) -> int:
    from amends.vendors.registry import names as service_names
    from amends.vendors.registry import vendor

    if wants_json(args):
        emit({"vendors": sorted(service_names())})
        return 0
    room = max(map(len, service_names()))
    sys.stdout.write("".join(f"{name:<{room}}  {vendor(name).title}\n" for name in sorted(service_names())))
    return 0


def _one_vocabulary(args: argparse.Namespace) -> int:
    rows = vocabulary(args.vocabulary).rows
    if wants_json(args):
        emit({"vocabulary": args.vocabulary, "codes": sorted(rows)})
        return 0
    title = f"{vocabulary(args.vocabulary).title}: {counted(len(rows), 'code')}"
    found = [_Found(code, row.message, []) for code, row in sorted(rows.items())]
    sys.stdout.write("\n".join([title, *_lines(found, painter(), columns()), ""]))
    return 0


def _search(args: argparse.Namespace) -> int:
    found = [*_codes(args.search, args.vocabulary), *(_words(args.search) if args.vocabulary is None else ())]
    if not found:
        raise NotFoundError(
            f"no code contains {args.search!r}", suggestions=["See the codes with amends explain"]
        )
    if wants_json(args):
        entries = [{"code": each.code, "message": each.message, "in": each.sources} for each in found]
        emit({"search": args.search, "entries": entries})
    else:
        sys.stdout.write("\n".join([*_lines(found, painter(), columns()), ""]))
    return 0


def _codes(text: str, name: str | None) -> Iterator[_Found]:
    """Yield the codes of the vocabularies that contain the text in their name or message."""
    merged: dict[str, _Found] = {}
    for each in (name,) if name else names():
        for code, row in vocabulary(each).rows.items():
            if text.upper() in code or text.lower() in row.message.lower():
                merged.setdefault(code, _Found(code, row.message, [])).sources.append(each)
    yield from sorted(merged.values())


def _words(text: str) -> Iterator[_Found]:
    """Yield the codes of vendors that contain the text."""
    from amends.vendors.explanation import facts
    from amends.vendors.registry import names as service_names
    from amends.vendors.registry import vendor

    for name in sorted(service_names()):
        for word in sorted({*vendor(name).words, *vendor(name).broad}):
            if text.lower() in word.lower():
                means = dict.fromkeys(str(entry["means"]) for entry in facts(name, word))
                yield _Found(f"{name}:{word}", " or ".join(means), [name])


def _lines(found: list[_Found], paint: Painter, width: int) -> Iterator[str]:
    room = min(max(len(each.code) for each in found), 40)
    for each in found:
        # A code that is longer than the column has its message on the next line.
        gap = " " * (room - len(each.code)) if len(each.code) <= room else "\n" + " " * (room + 2)
        yield f"  {paint(each.code, 'bold')}{gap}  {wrapped(each.message, width, room + 4)}"
