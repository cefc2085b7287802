"""`amends explain`: print what a code means, which vocabulary it belongs to, and what to do about it."""

from __future__ import annotations

import argparse
import sys

from amends.cli.arguments import close_matches
from amends.commands.console import Subparsers, emit, wants_json
from amends.commands.explain_view import code_text, word_text
from amends.commands.view import columns, painter
from amends.core.explanation import facts
from amends.core.vocabulary import Row, names, vocabulary
from amends.errors.cli import NotFoundError

__all__ = ["add", "run"]

_STATUSES = range(400, 600)


def add(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "explain",
        help="explain a code and what to do about it",
        description="Look up a code (or an HTTP status) in every vocabulary, or in one. Without CODE it lists the codes.",
        completes=["codes"],
    )
    parser.add_argument(
        "code",
        metavar="CODE",
        nargs="?",
        help="RATE_LIMITED, BUDGET_TOO_LOW, 429, openai:insufficient_quota, …",
    )
    parser.add_argument(
        "--search", metavar="TEXT", help="list the codes that contain a text, also those of vendors"
    )
    parser.add_argument("--vocabulary", choices=names(), help="search only this vocabulary (default: all)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Explain a code; without one, list the codes."""
    if args.code in {None, ":"} or args.search is not None:
        from amends.commands import explain_list

        return explain_list.run(args)
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
    """Explain a vendor's code, or list its codes if none is given."""
    from amends.vendors.explanation import facts as word_facts
    from amends.vendors.registry import check
    from amends.vendors.registry import names as service_names
    from amends.vendors.registry import vendor as vendor_of

    try:
        name = check(vendor)
    except LookupError:
        raise NotFoundError(
            f"no vendor {vendor!r}",
            suggestions=[
                f"Did you mean {match}?" for match in close_matches(vendor.lower(), sorted(service_names()))
            ]
            or ["See the names with amends explain :"],
        ) from None
    title = vendor_of(name).title
    known = sorted({*vendor_of(name).words, *vendor_of(name).broad})
    if not word:
        if wants_json(args):
            emit({"vendor": name, "words": known})
        else:
            sys.stdout.write("".join(f"{each}\n" for each in (title, *(f"  {code}" for code in known))))
        return 0
    found = word_facts(name, word)
    if not found:
        raise NotFoundError(
            f"{title} has no code {word!r}",
            suggestions=[f"Did you mean {name}:{match}?" for match in _similar(word, known)]
            or [f"See its codes with amends explain {name}:"],
        )
    if wants_json(args):
        emit({"code": args.code, "entries": found})
    else:
        sys.stdout.write("\n".join(word_text(each, title, painter(), columns()) for each in found))
    return 0


def _look_up(code: str, name: str | None) -> list[tuple[str, Row]]:
    if code.isascii() and code.isdigit() and int(code) in _STATUSES:
        return [("http", vocabulary("http").status_row(int(code)))] if name in {None, "http"} else []
    found = []
    for each in (name,) if name else names():
        row = vocabulary(each).rows.get(code.upper())
        if row is not None:
            found.append((each, row))
    return found


def _similar(given: str, known: list[str]) -> list[str]:
    """Return up to three names that contain what was given, or else resemble it."""
    return [name for name in known if given and given in name][:3] or close_matches(given, known)


def _unknown(code: str, name: str | None) -> NotFoundError:
    if code.isascii() and code.isdigit():
        if int(code) not in _STATUSES:
            return NotFoundError(
                f"{code} is not an HTTP status of a failure", suggestions=["Give one from 400 to 599"]
            )
        return NotFoundError(
            f"the vocabulary {name} has no HTTP statuses", suggestions=[f"amends explain {code}"]
        )
    known = sorted({row for each in ((name,) if name else names()) for row in vocabulary(each).rows})
    found = _similar(code.upper(), known) if name else _with_vendors(code, known)
    where = f"the vocabulary {name}" if name else "any vocabulary"
    see = (
        f"See its codes with amends explain --vocabulary {name}"
        if name
        else "See the codes with amends explain"
    )
    return NotFoundError(
        f"no code {code!r} in {where}", suggestions=[f"Did you mean {match}?" for match in found] or [see]
    )


def _with_vendors(code: str, known: list[str]) -> list[str]:
    """Return similar codes: one of a vendor if it is the same, else those that contain or resemble what was given."""
    from amends.vendors.registry import names as service_names
    from amends.vendors.registry import vendor

    word = code.lower()
    same = [
        f"{each}:{word}"
        for each in sorted(service_names())
        if word in vendor(each).words or word in vendor(each).broad
    ]
    return same[:3] or _similar(code.upper(), known)
