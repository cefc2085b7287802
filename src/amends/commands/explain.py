"""`amends explain`: print what a code means, which vocabulary it belongs to, and what to do about it."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from amends.cli.arguments import close_matches
from amends.commands.console import TEXT_HELP, emit, wants_json
from amends.commands.explain_view import code_text, word_text
from amends.commands.view import columns, painter
from amends.core.explanation import facts
from amends.core.vocabulary import Row, names, vocabulary
from amends.errors.cli import NotFoundError

__all__ = ["add", "run"]


def add(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "explain",
        help="explain a code and what to do about it",
        description="Look up a code (or an HTTP status) in every vocabulary, or in one.",
        completes=["codes"],
        output_help=TEXT_HELP,
    )
    parser.add_argument(
        "code", metavar="CODE", help="RATE_LIMITED, BUDGET_TOO_LOW, 429, openai:insufficient_quota, …"
    )
    parser.add_argument("--vocabulary", choices=names(), help="search only this vocabulary (default: all)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Explain a code."""
    vendor, colon, word = args.code.partition(":")
    if colon and vendor and args.vocabulary is None:
        return _explain_word(args, vendor, word)
    found = _look_up(args.code, args.vocabulary)
    if not found:
        raise _unknown(args.code, args.vocabulary)
    entries = [facts(name, row) for name, row in found]
    if wants_json(args):
        emit({"code": args.code, "entries": entries})
    else:
        sys.stdout.write(code_text(entries, painter(), columns()))
    return 0


def _explain_word(args: argparse.Namespace, vendor: str, word: str) -> int:
    """Explain a vendor's code word, or list its words if none is given."""
    from amends.vendors.explanation import facts as word_facts
    from amends.vendors.registry import NAMES, check
    from amends.vendors.registry import vendor as vendor_of

    try:
        name = check(vendor)
    except LookupError:
        raise NotFoundError(
            f"no vendor {vendor!r}",
            suggestions=[f"Did you mean {match}?" for match in close_matches(vendor.lower(), sorted(NAMES))]
            or ["See the page 'What each vendor's failures mean' for the names"],
        ) from None
    known = sorted({*vendor_of(name).words, *vendor_of(name).unless})
    if not word:
        if wants_json(args):
            emit({"vendor": name, "words": known})
        else:
            sys.stdout.write(
                "".join(f"{each}\n" for each in (vendor_of(name).title, *(f"  {w}" for w in known)))
            )
        return 0
    found = word_facts(name, word)
    if not found:
        raise NotFoundError(
            f"no word {word!r} of {name}",
            suggestions=[f"Did you mean {name}:{match}?" for match in close_matches(word, known)]
            or [f"The status decides. Words of {name}: {', '.join(known[:10])} …"],
        )
    if wants_json(args):
        emit({"code": args.code, "entries": found})
    else:
        title = vendor_of(name).title
        sys.stdout.write("\n".join(word_text(each, title, painter(), columns()) for each in found))
    return 0


def _look_up(code: str, name: str | None) -> list[tuple[str, Row]]:
    if code.isascii() and code.isdigit() and len(code) == 3 and 400 <= int(code) <= 599:
        return [("http", vocabulary("http").status_row(int(code)))] if name in {None, "http"} else []
    found = []
    for each in (name,) if name else names():
        row = vocabulary(each).rows.get(code.upper())
        if row is not None:
            found.append((each, row))
    return found


def _unknown(code: str, name: str | None) -> NotFoundError:
    known = {row for each in ((name,) if name else names()) for row in vocabulary(each).rows}
    where = f"the vocabulary {name}" if name else "any vocabulary"
    return NotFoundError(
        f"no code {code!r} in {where}",
        suggestions=[f"Did you mean {match}?" for match in close_matches(code.upper(), sorted(known))]
        or ["See amends explain --help for the vocabularies"],
    )
