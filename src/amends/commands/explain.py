"""`amends explain`: what a code means, whose word it is, and what to do about it."""

from __future__ import annotations

import argparse
import sys
from difflib import get_close_matches
from typing import Any

from amends.commands.console import emit, wants_json
from amends.core.crosswalk import TARGETS, transfer
from amends.core.exits import exit_code
from amends.core.fault import Fault
from amends.core.terms import Executed, Recovery
from amends.core.vocabulary import Row, names, row_for, vocabulary
from amends.errors.cli import NotFoundError

__all__ = ["add", "facts", "markdown", "run"]

_MEANING = {
    Recovery.TRANSIENT: "the same request may succeed later",
    Recovery.CORRECTABLE: "the request has to change first",
    Recovery.TERMINAL: "no program can help; a person has to act",
    Recovery.UNCERTAIN: "nobody knows; one more try where a repeat is safe",
}
_EFFECT = {
    Executed.NO: "it did not happen",
    Executed.MAYBE: "it may have happened",
    Executed.YES: "it did happen",
}


def add(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "explain",
        help="what a code means and what to do about it",
        description="Look up a code (or an HTTP status) in every vocabulary, or in one.",
    )
    parser.add_argument("code", metavar="CODE", help="RATE_LIMITED, BUDGET_TOO_LOW, 429, …")
    parser.add_argument("--vocabulary", choices=names(), help="whose word it is; without it, everybody's")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Explain a code."""
    found = _look_up(args.code, args.vocabulary)
    if not found:
        raise _unknown(args.code, args.vocabulary)
    if wants_json(args):
        emit({"code": args.code, "entries": [facts(name, row) for name, row in found]})
    else:
        sys.stdout.write("\n".join(markdown(name, row) for name, row in found))
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
    known = {word for each in ((name,) if name else names()) for word in vocabulary(each).rows}
    near = get_close_matches(code.upper(), sorted(known), n=3)
    where = f"the vocabulary {name}" if name else "any vocabulary"
    return NotFoundError(
        f"no code {code!r} in {where}",
        suggestions=[f"Did you mean {word}?" for word in near]
        or ["amends explain --help lists the vocabularies"],
    )


def facts(name: str, row: Row) -> dict[str, Any]:
    """Everything the tables know about a code, in plain values."""
    fault = Fault(code=row.code, vocabulary=name)
    told = {target: transfer(fault, target).code for target in TARGETS if target != name}
    known = {
        "vocabulary": name,
        "code": row.code,
        "message": row.message,
        "recovery": row.recovery.value,
        "executed": row.executed.value,
        "actor": row.actor.value,
        "suggestion": row.suggestion,
        "user_message": row.user_message,
        "status": row.status or row_for("everyday", row.everyday).status,
        "exit": exit_code(fault),
        "jsonrpc": row.jsonrpc,
        "wait": row.wait,
        "category": row.category,
        "qualifier": row.qualifier,
        "alias": row.alias,
        "elsewhere": told,
    }
    return {key: value for key, value in known.items() if value is not None}


def markdown(name: str, row: Row) -> str:
    """The same, to read. The retry verdict comes first."""
    known = facts(name, row)
    elsewhere = ", ".join(f"{target} {code}" for target, code in known["elsewhere"].items())
    lines = [
        f"# {row.code} ({vocabulary(name).title})",
        "",
        (
            f"**{row.recovery}**: {_MEANING[row.recovery]}. "
            f"When it fails this way, {_EFFECT[row.executed]}. Next to act: the {row.actor}."
        ),
        "",
        f"{row.message}. {row.suggestion}.",
        "",
        f"- tell the user: {row.user_message}",
        f"- HTTP status {known['status']}, exit code {known['exit']}"
        + (f", JSON-RPC {row.jsonrpc}" if row.jsonrpc is not None else ""),
        f"- elsewhere: {elsewhere}",
    ]
    if row.alias:
        lines.append(f"- deprecated: {row.alias} is the current word")
    return "\n".join([*lines, ""])
