"""`amends audit http | mcp | a2a | arcp`: score a service from 0 to 3 by how well a program can act on its failures."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amends.audit.surfaces.evidence import Evidence

__all__ = ["add_surfaces"]

_SAFE = "Only read-only and malformed requests are sent, only to the named address."


def add_surfaces(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommands."""
    http = kinds.add_parser(
        "http",
        help="an HTTP API",
        usage="amends audit http [options] URL",
        description=f"Provoke failures of an HTTP API and score them. {_SAFE}",
    )
    http.add_argument("url", metavar="URL", nargs="?", help="the base URL (default: that of the document)")
    http.add_argument("--openapi", metavar="FILE", type=Path, help="its OpenAPI document, as JSON")
    http.add_argument(
        "--path",
        action="append",
        default=[],
        metavar="PATH",
        type=_path,
        help="a read such as /items/7, if there is no document",
    )
    http.add_argument(
        "--rate-limit", action="store_true", help="also send up to 60 GET requests, 20 per second"
    )
    http.add_argument(
        "--writes", action="store_true", help="also send bodies without members, and one keyed write twice"
    )
    mcp = kinds.add_parser(
        "mcp",
        help="an MCP server",
        usage="amends audit mcp [options] URL | -- command …",
        description=f"Provoke failures of an MCP server and score them. {_SAFE}",
    )
    mcp.add_argument("url", metavar="URL", nargs="?", help="its address; or give its command after --")
    mcp.add_argument(
        "--writes", action="store_true", help="also send wrong arguments to tools that may change something"
    )
    a2a = kinds.add_parser(
        "a2a", help="an A2A agent", description=f"Provoke failures of an A2A agent and score them. {_SAFE}"
    )
    a2a.add_argument("url", metavar="URL", help="its base URL, where its card is")
    a2a.add_argument("--writes", action="store_true", help="also send the agent one message, amends-audit")
    arcp = kinds.add_parser(
        "arcp", help="an ARCP runtime", description=f"Provoke failures of a runtime and score them. {_SAFE}"
    )
    arcp.add_argument("url", metavar="URL", help="ws: or wss: address")
    arcp.add_argument("--token", metavar="T", help="a bearer token; safer in AMENDS_TOKEN")
    for parser in (http, mcp, a2a, arcp):
        if parser is not arcp:
            parser.add_argument(
                "--header",
                action="append",
                default=[],
                metavar="NAME:VALUE",
                type=_header,
                help="a header of every request, such as credentials",
            )
        parser.add_argument("--fail-under", type=int, choices=range(4), metavar="N", help="exit 1 below N")
        parser.add_argument("--baseline", metavar="FILE", type=Path, help="a file of accepted findings")
        parser.add_argument("--write-baseline", action="store_true", help="accept all of today's findings")
        parser.add_argument("--html", metavar="FILE", type=Path, help="write the report as an HTML page")
        parser.add_argument("--sarif", metavar="FILE", type=Path, help="write the findings as SARIF")
        parser.set_defaults(run=run)
    mcp.add_argument("argv", nargs=argparse.REMAINDER, action=_Rest, help=argparse.SUPPRESS)


class _Rest(argparse.Action):
    """What follows the first word: the rest of a command, or options after an address."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Parse options that come after an address as if they came before it."""
        rest = list(map(str, values)) if isinstance(values, list) else []
        url = namespace.url
        if not rest or url is None or not _is_address(url):
            namespace.argv = rest
            return
        parser.parse_args([*rest, url], namespace)
        if namespace.argv:
            parser.error(f"unrecognized arguments: {' '.join([namespace.url, *namespace.argv[:-1]])}")


def _is_address(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not name.strip() or not colon:
        raise argparse.ArgumentTypeError("must be NAME:VALUE")
    return name.strip(), value.strip()


def _path(text: str) -> str:
    if not text.startswith("/"):
        raise argparse.ArgumentTypeError("must start with /")
    return text


def run(args: argparse.Namespace) -> int:
    """Send the probes, score the answers and print the report. Return 1 if the certain score is below --fail-under."""
    from amends.audit.surfaces.baseline import read_baseline, write_baseline
    from amends.audit.surfaces.evidence import conceal
    from amends.audit.surfaces.html import html
    from amends.audit.surfaces.sarif import sarif
    from amends.audit.surfaces.score import score
    from amends.audit.surfaces.text import lines
    from amends.commands.console import emit, json_bytes, wants_json
    from amends.commands.view import painter
    from amends.errors.cli import UsageError, ValidationError

    if args.write_baseline and args.baseline is None:
        raise UsageError(
            "--write-baseline needs a file",
            field="--baseline",
            suggestions=["Name it: --baseline accepted.txt --write-baseline"],
        )
    try:
        accepted = () if args.baseline is None else read_baseline(args.baseline)
    except UnicodeDecodeError as error:
        raise ValidationError(
            f"{args.baseline} is not text in UTF-8",
            field="--baseline",
            suggestions=["Check the path, or write it again with --write-baseline"],
        ) from error
    evidence = conceal(_observe(args), _secrets(args))
    report = score(evidence, accepted)
    _check_reached(report.evidence)
    if args.write_baseline:
        write_baseline(args.baseline, score(evidence).findings)
    if args.html is not None:
        args.html.write_text(html(report), encoding="utf-8")
    if args.sarif is not None:
        args.sarif.write_bytes(json_bytes(sarif(report)))
    if wants_json(args):
        emit(report)
    else:
        sys.stdout.write("\n".join(lines(report, painter())) + "\n")
    return 1 if args.fail_under is not None and report.at_least < args.fail_under else 0


def _token(args: argparse.Namespace) -> str | None:
    return args.token or os.environ.get("AMENDS_TOKEN")


def _secrets(args: argparse.Namespace) -> list[str]:
    """Return the credentials that were given, which no report may have. MCP servers take some in their query."""
    from urllib.parse import parse_qsl, urlsplit

    if args.kind == "arcp":
        return [_token(args) or ""]
    queried = parse_qsl(urlsplit(args.url).query) if args.kind == "mcp" and args.url else []
    return [value for _, value in [*args.header, *queried]]


def _observe(args: argparse.Namespace) -> Evidence:
    if args.kind == "arcp":
        from amends.audit.surfaces.arcp import observe_arcp

        return asyncio.run(observe_arcp(_checked(args.url, ("ws", "wss")), token=_token(args)))
    headers = dict(args.header)
    if args.kind == "a2a":
        from amends.audit.surfaces.a2a import observe_a2a

        return asyncio.run(observe_a2a(_checked(args.url), headers=headers, writes=args.writes))
    if args.kind == "mcp":
        from amends.audit.surfaces.mcp import observe_mcp

        url, command = _server(args)
        return asyncio.run(observe_mcp(url, command=command, headers=headers, writes=args.writes))
    from amends.audit.surfaces.http import observe_http

    document = None if args.openapi is None else _document(args.openapi)
    return asyncio.run(
        observe_http(
            _checked(args.url or _first_server(document)),
            openapi=document,
            paths=args.path,
            headers=headers,
            writes=args.writes,
            rate_limit=args.rate_limit,
        )
    )


def _server(args: argparse.Namespace) -> tuple[str, list[str]]:
    """Return the address of an MCP server, or its command."""
    import shutil

    from amends.commands.console import command_after_dashes
    from amends.errors.cli import NotFoundError

    if args.url is not None and _is_address(args.url):
        return _checked(args.url, query=True), []
    given = [*([] if args.url is None else [args.url]), *args.argv]
    command = command_after_dashes(given if given[:1] == ["--"] else ["--", *given], "amends audit mcp")
    if shutil.which(command[0]) is None:
        raise NotFoundError(
            f"there is no command {command[0]}",
            field=command[0],
            suggestions=[f"Install {command[0]}, or give its full path"],
        )
    return "", command


def _checked(url: str | None, schemes: tuple[str, str] = ("http", "https"), *, query: bool = False) -> str:
    """Return an address. Reports have it, so it has no password; paths are appended to it, so it has no query."""
    from urllib.parse import urlsplit

    from amends.errors.cli import ValidationError

    try:
        parts = urlsplit(url or "")
        named = parts.scheme in schemes and bool(parts.hostname)
    except ValueError:  # no URL
        named = False
    if url is None or not named:
        raise ValidationError(
            f"the audit needs an address with {schemes[0]}: or {schemes[1]}:",
            field="URL",
            suggestions=[f"Give it, for example {schemes[0]}://127.0.0.1:8000"],
        )
    if "@" in parts.netloc:
        raise ValidationError(
            "the address has a user or a password",
            field="URL",
            suggestions=["Give them as a header: --header 'Authorization: Basic …'"],
        )
    if parts.fragment or (parts.query and not query):
        raise ValidationError(
            "the address has a query or a fragment",
            field="URL",
            suggestions=["Give the base URL, and credentials with --header"],
        )
    return url


def _document(path: Path) -> dict[str, object]:
    from amends.audit.surfaces.exchange import document
    from amends.errors.cli import ValidationError

    try:
        found = document(path.read_bytes())
    except OSError as error:
        raise ValidationError(
            f"{path} cannot be read",
            field="--openapi",
            suggestions=["Check the path, or leave it out if the API serves /openapi.json"],
        ) from error
    if not isinstance(found, dict) or "paths" not in found:
        raise ValidationError(
            f"{path} is not an OpenAPI document in JSON",
            field="--openapi",
            suggestions=["Convert YAML to JSON first"],
        )
    return found


def _first_server(document: object) -> str | None:
    servers = document.get("servers") if isinstance(document, dict) else None
    first = servers[0] if isinstance(servers, list) and servers else None
    url = first.get("url") if isinstance(first, dict) else None
    return url if isinstance(url, str) else None


def _check_reached(evidence: Evidence) -> None:
    """A service that answered nothing at all was not audited."""
    from amends.errors.cli import ServiceUnavailableError, ValidationError

    sent = [one for one in evidence.answers if one.outcome != "not-probed"]
    if all(one.outcome == "no-answer" for one in sent):
        reason = next((one.because for one in [*sent, *evidence.answers]), "no probe was sent")
        if reason.startswith("redirected"):
            raise ValidationError(
                f"{evidence.target} {reason}",
                field="URL",
                suggestions=["Name the address that it redirects to, for example with https:"],
            )
        raise ServiceUnavailableError(
            f"{evidence.target} did not answer ({reason})",
            suggestions=["Check the address, and that the service is running"],
        )
