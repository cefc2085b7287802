"""Creates a runtime from command-line arguments: its agents, tokens and limits."""

from __future__ import annotations

import argparse
import inspect
import secrets
import sys
import traceback
from importlib import import_module
from typing import TYPE_CHECKING

from amends.arcp.tokens import environment_tokens, parse_token

if TYPE_CHECKING:
    from amends.arcp import Limits, Runtime
    from amends.errors.base import FaultError

__all__ = ["AGENT_SYNTAX", "add_limit_options", "load_runtime"]

AGENT_SYNTAX = "An AGENT is [NAME[@VERSION]=]MODULE:ATTRIBUTE, an async def (input, ctx) or your Runtime."


def add_limit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `serve` and `worker` that name and limit a node."""
    parser.add_argument("--name", help="the node's name")
    parser.add_argument(
        "--repeatable",
        action="store_true",
        help="agents may run twice: other nodes repeat a dead node's jobs",
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="jobs at the same time (1000); 0: run none")
    parser.add_argument("--lease", type=float, metavar="S", help="a node silent for S seconds is dead (30)")
    parser.add_argument("--drain", type=float, metavar="S", help="seconds for running jobs at the end (30)")


def _limits(args: argparse.Namespace) -> Limits:
    from amends.arcp import Limits
    from amends.errors.cli import ValidationError

    for option, least in (("jobs", 0), ("lease", 0.1), ("drain", 0.0)):
        value = getattr(args, option)
        if value is not None and not least <= value < float("inf"):
            raise ValidationError(f"--{option} must be at least {least}", field=f"--{option}")
    given = {"running": args.jobs, "node_lease": args.lease, "drain": args.drain}
    return Limits(**{name: value for name, value in given.items() if value is not None})


def load_runtime(args: argparse.Namespace) -> tuple[Runtime, str | None]:
    """Return the runtime, and the token if a new one was made."""
    from amends.arcp import Runtime
    from amends.errors.base import FaultError
    from amends.errors.cli import UsageError, ValidationError

    # Modules of the current directory can be imported, as with `python -m`.
    if "" not in sys.path:
        sys.path.insert(0, "")
    if not args.agents and not args.store:
        raise UsageError(
            "Name an agent, or a store that nodes with agents share",
            suggestions=["amends runtime serve agents:summarise"],
        )
    found = [(agent, _import_attribute(agent.rpartition("=")[2])) for agent in args.agents]
    own = [value for _, value in found if isinstance(value, Runtime)]
    if own:
        given = (args.store, args.repeatable, args.name, args.lease, args.drain, args.jobs)
        if len(found) > 1 or any(option not in (None, False) for option in given):
            raise UsageError("A Runtime object has its own agents, store and limits: name it alone")
        runtime = own[0]
        if tokens := given_tokens(args.token):
            runtime.accept_tokens(tokens)
        return runtime, None
    tokens, new_token = _tokens(args)
    runtime = Runtime(args.store, tokens=tokens, name=args.name or "amends", limits=_limits(args))
    for agent, function in found:
        if not inspect.iscoroutinefunction(function) and not inspect.isasyncgenfunction(function):
            raise ValidationError(
                f"{agent} is not an agent: an agent is async def (input, ctx)", field="agents"
            )
        full_name = agent.rpartition("=")[0]
        name, _, version = (full_name or function.__name__.replace("_", "-").lower()).partition("@")
        try:
            if version:
                runtime.register_agent(name, function, version=version, repeatable=args.repeatable)
            else:
                runtime.register_agent(name, function, repeatable=args.repeatable)
        except (ValueError, FaultError) as error:
            raise ValidationError(str(error), field="agents") from None
    return runtime, new_token


def _import_attribute(path: str) -> object:
    """Import MODULE:ATTRIBUTE and return the attribute."""
    from amends.errors.cli import NotFoundError, UsageError

    module, colon, attribute = path.partition(":")
    if not colon or not module or not attribute:
        raise UsageError(
            "An agent has the form MODULE:ATTRIBUTE", suggestions=["amends runtime serve agents:summarise"]
        )
    try:
        value: object = import_module(module)
    except Exception as error:  # noqa: BLE001 - the module may raise anything
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and f"{module}.".startswith(f"{missing}."):
            raise NotFoundError(
                f"There is no module {module}",
                field="agents",
                suggestions=[f"Run it in the folder of {module.partition('.')[0]}.py, or correct the name"],
            ) from None
        raise _import_failure(module, error) from None
    for part in attribute.split("."):
        value = getattr(value, part, None)
    if value is None:
        raise NotFoundError(
            f"{module} has no {attribute}", field="agents", suggestions=[f"Define {attribute} in {module}"]
        )
    return value


def _import_failure(module: str, error: Exception) -> FaultError:
    """
    Return the error for a module that raises when it is imported, and print the module's own traceback.

    The text of the exception is shown, because the person who runs the command also runs the module.
    """
    from amends.errors.cli import InternalError

    trace = error.__traceback__
    while trace is not None and not _is_users(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    sys.stderr.write("".join(traceback.format_exception(type(error), error, trace)))
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    return InternalError(
        f"{module} cannot be imported. {text}", field="agents", suggestions=[f"python -c 'import {module}'"]
    )


def _is_users(file: str) -> bool:
    return file != __file__ and not file.startswith("<frozen importlib") and "/importlib/" not in file


def given_tokens(options: list[str] | None) -> dict[str, str]:
    """Return the tokens of --token, or else of the environment, with their principals."""
    return dict(map(parse_token, options)) if options else environment_tokens()


def _tokens(args: argparse.Namespace) -> tuple[dict[str, str], str | None]:
    """Return the accepted tokens with their principals, and the new token if none was given."""
    if given := given_tokens(args.token):
        return given, None
    if args.stdio:
        # Only the parent process can write to the pipes.
        return {"stdio": "parent"}, None
    new_token = secrets.token_urlsafe(24)
    return {new_token: "operator"}, new_token
