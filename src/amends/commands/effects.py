"""`amends effects list | show | verify`: read a ledger of effects, and answer the questions of effects in doubt."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

__all__ = ["add", "run"]

_STORE = "sqlite:///file or nats://host:port/name (default: AMENDS_STORE)"
STATES = ("running", "done", "doubt")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
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
    action.add_argument("--limit", type=int, default=100, help="the most effects to list (100)")


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


def _ledger(args: argparse.Namespace) -> Any:
    """Return the ledger in an existing store."""
    from amends.commands.store_option import require_file, require_store
    from amends.effects import Effects

    url = require_store(args.store, "sqlite:///effects.db")
    if "://" in url and not url.startswith("postgres"):
        require_file(url)
    return Effects(url)


def _list(effects: Any, args: argparse.Namespace) -> dict[str, Any]:
    found = [
        each for each in effects.list() if args.state in {None, each.state} and args.tool in {None, each.tool}
    ]
    return {"effects": [_document(each) for each in found[: max(args.limit, 0)]], "total": len(found)}


def _show(effects: Any, args: argparse.Namespace) -> dict[str, Any]:
    from amends.errors.cli import NotFoundError

    found = effects.get(args.key)
    if found is None:
        raise NotFoundError(f"the ledger has no effect {args.key!r}: `amends effects list` prints the names")
    return {"effect": _document(found)}


def _verify(effects: Any, args: argparse.Namespace) -> dict[str, Any]:
    from amends.errors import ConflictError, NotFoundError
    from amends.errors import cli as cli_errors

    outcome = None if args.outcome is None else _json(args.outcome)
    try:
        found = effects.verify(args.key, happened=args.happened, outcome=outcome)
    except NotFoundError as error:
        raise cli_errors.NotFoundError(str(error)) from error
    except ConflictError as error:
        raise cli_errors.ConflictError(str(error)) from error
    if found is None:
        return {"key": args.key, "state": "free"}
    return {"effect": _document(found)}


def _document(effect: Any) -> dict[str, Any]:
    import msgspec

    return {
        name: value
        for name, value in msgspec.to_builtins(effect).items()
        if value is not None and value != ""
    }


def _json(text: str) -> Any:
    import msgspec

    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _text_of(result: dict[str, Any]) -> str:
    """Return what a terminal shows."""
    if "effects" in result:
        rows = [f"{each['state']:8} {each['started']}  {each['key']}" for each in result["effects"]]
        return "\n".join(rows) if rows else "no effects"
    if "effect" not in result:
        return f"{result['key']} did not happen; its key is free"
    return "\n".join(f"{name:10} {value}" for name, value in result["effect"].items())


_Options = Callable[[argparse.ArgumentParser], None]
_Action = Callable[[Any, argparse.Namespace], dict[str, Any]]

# action → (summary, adds its arguments, runs it)
_ACTIONS: dict[str, tuple[str, _Options, _Action]] = {
    "list": ("list the effects of a ledger, the newest first", _list_options, _list),
    "show": ("show one effect: its state, its question or its outcome", _key_options, _show),
    "verify": ("answer whether an effect in doubt happened", _verify_options, _verify),
}
