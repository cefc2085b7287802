"""A runtime from the words of a command line: its agents, who may connect, and its bounds."""

from __future__ import annotations

import argparse
import inspect
import os
import secrets
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from amends.commands.runtime import TOKEN

if TYPE_CHECKING:
    from amends.arcp import Limits, Runtime

__all__ = ["AGENT_WORDS", "loaded", "with_bounds"]

AGENT_WORDS = "An AGENT is [NAME[@VERSION]=]MODULE:ATTRIBUTE, an async def (input, ctx) or your Runtime."


def with_bounds(parser: argparse.ArgumentParser) -> None:
    """What nodes of every kind take."""
    parser.add_argument("--name", help="what the node calls itself")
    parser.add_argument(
        "--repeatable", action="store_true", help="running twice does no harm: a dead node's jobs run again"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="jobs at once (1000); 0: run none")
    parser.add_argument("--lease", type=float, metavar="S", help="silent that long, a node is dead (30)")
    parser.add_argument("--drain", type=float, metavar="S", help="how long jobs may go on at the end (30)")


def _limits(args: argparse.Namespace) -> Limits:
    from amends.arcp import Limits
    from amends.errors.cli import ValidationError

    for option, least in (("jobs", 0), ("lease", 0.1), ("drain", 0.0)):
        value = getattr(args, option)
        if value is not None and not least <= value < float("inf"):
            raise ValidationError(f"--{option} is at least {least}", field=f"--{option}")
    given = {"running": args.jobs, "node_lease": args.lease, "drain": args.drain}
    return Limits(**{name: value for name, value in given.items() if value is not None})


def loaded(args: argparse.Namespace) -> tuple[Runtime, str | None]:
    """The runtime, and the token where one had to be made."""
    from amends.arcp import Runtime
    from amends.errors.base import FaultError
    from amends.errors.cli import UsageError, ValidationError

    # Modules of the directory one stands in can be named, as with `python -m`.
    if "" not in sys.path:
        sys.path.insert(0, "")
    if not args.agents and not args.store:
        raise UsageError(
            "Name an agent, or a store others share whose nodes have some",
            suggestions=["amends runtime serve agents:summarise"],
        )
    found = [(word, _found(word.rpartition("=")[2])) for word in args.agents]
    own = [value for _, value in found if isinstance(value, Runtime)]
    if own:
        given = (args.store, args.token, args.repeatable, args.name, args.lease, args.drain, args.jobs)
        if len(found) > 1 or any(word not in (None, False) for word in given):
            raise UsageError("A Runtime of your own has its agents, store and bounds already: name it alone")
        return own[0], None
    tokens, made = _tokens(args)
    runtime = Runtime(args.store, tokens=tokens, name=args.name or "amends", limits=_limits(args))
    for word, function in found:
        if not inspect.iscoroutinefunction(function) and not inspect.isasyncgenfunction(function):
            raise ValidationError(f"{word} is no agent: an agent is async def (input, ctx)", field="agents")
        given = word.rpartition("=")[0]
        name, _, version = (given or function.__name__.replace("_", "-").lower()).partition("@")
        try:
            runtime.register_agent(
                name, function, repeatable=args.repeatable, **({"version": version} if version else {})
            )
        except (ValueError, FaultError) as error:
            raise ValidationError(str(error), field="agents") from None
    return runtime, made


def _found(place: str) -> Any:
    from amends.errors.cli import NotFoundError, UsageError

    module, colon, attribute = place.partition(":")
    if not colon or not module or not attribute:
        raise UsageError(
            "An agent is named MODULE:ATTRIBUTE", suggestions=["amends runtime serve agents:summarise"]
        )
    try:
        value: Any = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise NotFoundError(f"There is no module {module}", field="agents") from None
    for part in attribute.split("."):
        value = getattr(value, part, None)
    if value is None:
        raise NotFoundError(f"{module} has no {attribute}", field="agents")
    return value


def _tokens(args: argparse.Namespace) -> tuple[dict[str, str], str | None]:
    given = args.token or ([os.environ[TOKEN]] if os.environ.get(TOKEN) else [])
    if given:
        pairs = [word.rpartition("=") for word in given]
        return {token: principal or "operator" for principal, _, token in pairs}, None
    if args.stdio:
        # Whoever holds the pipes has started us.
        return {"stdio": "parent"}, None
    made = secrets.token_urlsafe(24)
    return {made: "operator"}, made
