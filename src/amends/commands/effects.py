"""`amends effects list | show | verify`: read a ledger of effects, and answer the questions of effects in doubt."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amends.commands.console import Subparsers
    from amends.effects import Effects
    from amends.effects.records import Effect

__all__ = ["add", "run"]

_STORE = "sqlite:///file, postgres://host/database or nats://host:port/name (default: AMENDS_STORE)"
STATES = ("running", "done", "doubt")


def add(subparsers: Subparsers) -> None:
    """Add the `effects` subcommand."""
    from amends.commands.console import as_sentence

    summary = "read a ledger of effects, and answer what is in doubt"
    effects = subparsers.add_parser("effects", help=summary, description=as_sentence(summary))
    actions = effects.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (summary, options, _) in _ACTIONS.items():
        action = actions.add_parser(name, help=summary, description=as_sentence(summary))
        action.add_argument("--store", metavar="URL", default=os.environ.get("AMENDS_STORE"), help=_STORE)
        options(action)
        action.set_defaults(run=run)
    effects.set_defaults(run=run)


def _list_options(action: argparse.ArgumentParser) -> None:
    action.add_argument("--state", choices=STATES, metavar="S", help=f"only this state: {', '.join(STATES)}")
    action.add_argument("--tool", help="only the effects of this tool")
    action.add_argument("--limit", type=int, default=100, metavar="N", help="the most effects to list (100)")


def _key_options(action: argparse.ArgumentParser) -> None:
    action.add_argument("key", metavar="KEY", help="the effect's name in the ledger, as `list` prints it")


def _verify_options(action: argparse.ArgumentParser) -> None:
    _key_options(action)
    happened = action.add_mutually_exclusive_group(required=True)
    happened.add_argument("--happened", action="store_true", help="the effect happened")
    happened.add_argument(
        "--not-happened", dest="happened", action="store_false", help="it did not: the next call runs"
    )
    action.add_argument("--outcome", metavar="JSON", help="the result of the call, if it happened")


def run(args: argparse.Namespace) -> int:
    """Run the action and print its result."""
    from amends.commands.console import emit, wants_json
    from amends.commands.store import store_failures

    with store_failures(), _ledger(args) as effects:
        result = _ACTIONS[args.action][2](effects, args)
    if wants_json(args):
        emit(result)
    else:
        print(_text_of(result))
    return 0


def _ledger(args: argparse.Namespace) -> Effects:
    """Return the ledger in an existing store."""
    from amends.commands.store_option import require_file, require_store
    from amends.effects import Effects

    url = require_store(args.store, "sqlite:///effects.db")
    if "://" in url and not url.startswith("postgres"):
        require_file(url)
    return Effects(url)


def _list(effects: Effects, args: argparse.Namespace) -> dict[str, object]:
    found = [
        each for each in effects.list() if args.state in {None, each.state} and args.tool in {None, each.tool}
    ]
    return {"effects": [_document(each) for each in found[: max(args.limit, 0)]], "total": len(found)}


def _show(effects: Effects, args: argparse.Namespace) -> dict[str, object]:
    from amends.errors.cli import NotFoundError

    found = effects.get(args.key)
    if found is None:
        raise NotFoundError(
            f"the ledger has no effect {args.key!r}", suggestions=["See the names with amends effects list"]
        )
    return {"effect": _document(found)}


def _verify(effects: Effects, args: argparse.Namespace) -> dict[str, object]:
    from amends.commands.tasks_work import json_or_text
    from amends.errors import ConflictError, NotFoundError
    from amends.errors import cli as cli_errors

    outcome = None if args.outcome is None else json_or_text(args.outcome)
    try:
        found = effects.verify(args.key, happened=args.happened, outcome=outcome)
    except NotFoundError as error:
        raise cli_errors.NotFoundError(str(error)) from error
    except ConflictError as error:
        raise cli_errors.ConflictError(str(error)) from error
    if found is None:
        return {"key": args.key, "state": "free"}
    return {"effect": _document(found)}


def _document(effect: Effect) -> dict[str, object]:
    import msgspec

    return {
        name: value
        for name, value in msgspec.to_builtins(effect).items()
        if value is not None and value != ""
    }


def _text_of(result: dict[str, object]) -> str:
    """Return what a terminal shows."""
    listed, one = result.get("effects"), result.get("effect")
    if isinstance(listed, list):
        rows = [f"{each['state']:8} {each['started']}  {each['key']}" for each in listed]
        return "\n".join(rows) if rows else "no effects"
    if isinstance(one, dict):
        return "\n".join(f"{name:10} {value}" for name, value in one.items())
    return f"{result['key']} did not happen; its key is free"


_Options = Callable[[argparse.ArgumentParser], None]
_Action = Callable[["Effects", argparse.Namespace], dict[str, object]]

# action → (summary, adds its arguments, runs it)
_ACTIONS: dict[str, tuple[str, _Options, _Action]] = {
    "list": ("list the effects of a ledger, the newest first", _list_options, _list),
    "show": ("show one effect: its state, its question or its outcome", _key_options, _show),
    "verify": ("answer whether an effect in doubt happened", _verify_options, _verify),
}
