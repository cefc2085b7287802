"""`amends gateway URL | FILE.toml | --mcp -- command`: a proxy that keeps failures whole, and recovers what is safe."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amends.gateway.config import GatewayConfig

__all__ = ["add", "run"]


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `gateway` subcommand."""
    from amends.commands.console import as_sentence

    summary = "run a proxy that recovers calls and records failures"
    parser = subparsers.add_parser("gateway", help=summary, description=as_sentence(summary))
    parser.add_argument(
        "target",
        nargs="*",
        metavar="TARGET",
        help="a URL, a configuration file, `check FILE`, or with --mcp `-- command …`",
    )
    parser.add_argument("--listen", metavar="ADDRESS", help="where to listen (127.0.0.1:8700)")
    parser.add_argument("--mcp", action="store_true", help="the URL or the command is an MCP server")
    parser.add_argument("--record", metavar="URL", help="the recorder's store")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Check a configuration, or run the gateway until it is stopped."""
    if args.target[:1] == ["check"]:
        if len(args.target) != 2:
            from amends.errors.cli import UsageError

            raise UsageError(
                "amends gateway check needs a configuration file",
                suggestions=["amends gateway check gateway.toml"],
            )
        return _check(args, Path(args.target[1]))
    config, path = _config(args)
    changes = {name: value for name in ("listen", "record") if (value := getattr(args, name))}
    if changes:
        from msgspec.structs import replace

        _check_options(changes)
        config = replace(config, **changes)
    return _serve(config, path)


def _check_options(changes: dict[str, str]) -> None:
    from amends.errors.cli import ValidationError
    from amends.gateway.config_file import check_member

    for name, value in changes.items():
        wrong = check_member(name, value)
        if wrong:
            raise ValidationError(f"--{name} {wrong}", field=f"--{name}")


def _config(args: argparse.Namespace) -> tuple[GatewayConfig, Path | None]:
    """Return the configuration that the arguments describe, and its file."""
    from amends.errors.cli import UsageError

    _needs_extra()
    from amends.gateway.config import single

    target = args.target
    if args.mcp and target and not target[0].startswith(("http://", "https://")):
        return single("", command=tuple(target)), None
    if len(target) != 1:
        raise UsageError(
            "name one upstream or one configuration file",
            suggestions=[
                "amends gateway https://api.example.com",
                "amends gateway --mcp -- uvx some-mcp-server",
            ],
        )
    if "://" in target[0]:
        return single(target[0], kind="mcp" if args.mcp else "http"), None
    return _read(Path(target[0])), Path(target[0])


def _read(path: Path) -> GatewayConfig:
    from amends.errors.cli import NotFoundError, ValidationError

    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise NotFoundError(
            f"there is no file {path}",
            suggestions=["Correct the path, or write one: the page 'Gateway' has an example"],
        ) from None
    except UnicodeDecodeError:
        raise ValidationError(f"{path} is not UTF-8", suggestions=["Save it as UTF-8"]) from None
    from amends.gateway.config_file import ConfigError, read_config

    try:
        return read_config(text)
    except ConfigError as error:
        found = [f"{path}:{each.line}:{each.column}: {each.message}" for each in error.problems]
        details = {"problems": [each._asdict() for each in error.problems]}
        # A message has one line; what has to change is part of each problem.
        first = f"{found[0]}; {len(found)} problems in all" if found[1:] else found[0]
        fixes = found[1:] or [
            f"Correct line {error.problems[0].line}, and check it with: amends gateway check {path}"
        ]
        raise ValidationError(first, suggestions=fixes, details=details) from None


def _check(args: argparse.Namespace, path: Path) -> int:
    from amends.commands.console import emit, wants_json

    config = _read(path)
    if wants_json(args):
        emit({"ok": True, "upstreams": [each.name for each in config.upstreams]})
    else:
        for each in config.upstreams:
            print(
                f"{each.name:<16} {each.kind:<6} {each.prefix or '/'}  {each.url or ' '.join(each.command)}"
            )
    return 0


def _needs_extra() -> None:
    import importlib.util

    missing = [
        name for name in ("aiohttp", "uvicorn", "httptools", "uvloop") if not importlib.util.find_spec(name)
    ]
    if missing:
        raise ImportError("amends gateway needs an extra: pip install 'amends[gateway]'")


def _serve(config: GatewayConfig, path: Path | None) -> int:
    import logging

    from amends.gateway.config import PAGE
    from amends.gateway.server import run as serve

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    logging.getLogger("amends.gateway").setLevel(logging.INFO)

    def ready(url: str) -> None:
        names = ", ".join(f"{each.prefix or '/'} → {each.name}" for each in config.upstreams)
        sys.stderr.write(f"{url}  {names}\n")
        if config.token or os.environ.get("AMENDS_PAGE_TOKEN"):
            # Without a token the page prints its address itself, once it is loaded.
            sys.stderr.write(f"failures live: {url}{PAGE}/\n")
        sys.stderr.flush()

    try:
        serve(config, path=path, ready=ready)
    except ValueError as error:
        from amends.errors.cli import ValidationError

        raise ValidationError(str(error), field="token") from None
    except OSError as error:
        from amends.errors.cli import ValidationError

        raise ValidationError(
            f"{config.listen} cannot be used: {error.strerror}",
            field="--listen",
            suggestions=["Choose another address with --listen"],
        ) from None
    return 0
