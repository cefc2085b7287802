"""`amends rehearse`: run a program against the failures that its services really send, and score what it does."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amends.commands.numbers import positive_seconds

if TYPE_CHECKING:
    from amends.commands.console import Subparsers
    from amends.rehearse.acts import Act
    from amends.rehearse.judge import Row
    from amends.rehearse.plan import Plan
    from amends.rehearse.report import Report

__all__ = ["add", "run"]


def add(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "rehearse",
        help="run a program against failures of its services",
        usage="amends rehearse [options] [PLAN] -- command …",
        description="Run a program without failures, then once for each failure that its services really send. Fakes answer; "
        "connections beyond this machine are refused. PLAN is a plan in TOML, where the defaults do not fit.",
    )
    option = parser.add_argument
    option("plan", nargs="?", metavar="PLAN", help=argparse.SUPPRESS)
    option(
        "--service",
        action="append",
        default=[],
        metavar="NAME",
        help="a service (default: what it calls), or NAME=URL",
    )
    option("--kind", action="append", default=[], metavar="KIND", help="only this kind of failure")
    option("--list", action="store_true", help="list the kinds and the services, and exit")
    option("--seed", type=int, metavar="N", help="the seed of the plan (0)")
    option("--check", metavar="COMMAND", help="a test of the result: exit code 0 if it is done")
    option("--timeout", type=positive_seconds, default=300.0, metavar="S", help="seconds for one run (300)")
    option("--mcp", action="store_true", help="the command is an MCP server on stdio: tools fail")
    option("--html", type=Path, metavar="FILE", help="write the report as HTML")
    option("--junit", type=Path, metavar="FILE", help="write it as JUnit XML")
    option("--sarif", type=Path, metavar="FILE", help="write the findings as SARIF")
    option("--report", type=Path, metavar="FILE", help="write the report as JSON")
    option("--compare", type=Path, metavar="FILE", help="show what changed since such a report")
    option("--fail-under", type=int, choices=range(4), metavar="N", help="exit with 1 if a row scores less")
    # In docs/rehearse.md, and not in the help, which fits a terminal.
    option("--wait", type=positive_seconds, metavar="S", help=argparse.SUPPRESS)
    option("--patience", type=positive_seconds, metavar="S", help=argparse.SUPPRESS)
    option("--exit-document", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    option("--forward", action="store_true", help=argparse.SUPPRESS)
    option("--isolate", action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(run=run, argv=[])
    _take_command(parser)


def _take_command(parser: argparse.ArgumentParser) -> None:
    """Let the parser stop at `--`: what follows is the command, and not the plan."""
    parse = parser.parse_known_args

    def parse_known_args(args: Any = None, namespace: Any = None) -> Any:
        given = list(sys.argv[1:] if args is None else args)
        own = given.index("--") if "--" in given else len(given)
        found, rest = parse(given[:own], namespace)
        found.argv = given[own + 1 :]
        return found, rest

    parser.parse_known_args = parse_known_args  # type: ignore[method-assign]


def run(args: argparse.Namespace) -> int:
    """Rehearse the command and print the report."""
    from amends.errors.cli import UsageError

    if args.list:
        return _list(args)
    if not args.argv:
        raise UsageError(
            "amends rehearse needs a command after --", suggestions=["amends rehearse -- python my_agent.py"]
        )
    plan, services = _plan(args)
    if args.mcp:
        from amends.rehearse.mcp_relay import relay

        return relay(args.argv, plan)
    if args.isolate:
        _isolate(args)
    before = _read_report(args.compare) if args.compare is not None else None
    from amends.commands.console import emit, wants_json
    from amends.commands.view import columns, painter
    from amends.errors.cli import PreconditionFailedError
    from amends.rehearse import program
    from amends.rehearse.report import compare, document
    from amends.rehearse.views import lines

    quiet = wants_json(args)
    try:
        report = program.rehearse(
            args.argv,
            plan,
            services=services,
            check=args.check,
            timeout=args.timeout,
            real=args.forward,
            exit_document=args.exit_document,
            progress=_screen(quiet=quiet),
        )
    except program.RehearsalError as error:
        sys.stderr.write(_last_lines(error.output))
        raise PreconditionFailedError(
            str(error),
            suggestions=["Run the program by itself until it succeeds; --service names what it calls"],
        ) from None
    except FileNotFoundError as error:
        raise UsageError(f"there is no command {error.filename}", field="command") from None
    changes = compare(before, report) if before is not None else []
    _write(args, report)
    if quiet:
        emit({**document(report), **({"changes": changes} if before is not None else {})})
    else:
        sys.stdout.write("\n".join(lines(report, painter(), columns(), changes)) + "\n")
    return _exit_code(args, report)


def _plan(args: argparse.Namespace) -> tuple[Plan, list[Any]]:
    import msgspec

    from amends.errors.cli import NotFoundError, UsageError
    from amends.rehearse.kinds import KINDS
    from amends.rehearse.plan import Plan, read_plan
    from amends.rehearse.services import make_services, service_of_text

    try:
        plan = read_plan(args.plan) if args.plan is not None else Plan()
        services = [service_of_text(each) for each in args.service]
        make_services([*plan.service, *services])
    except ValueError as error:
        raise UsageError(str(error), field="PLAN" if args.plan is not None else "--service") from None
    except OSError as error:
        raise NotFoundError(f"there is no plan {args.plan}: {error.strerror}", field="PLAN") from None
    unknown = [each for each in args.kind if each not in KINDS]
    if unknown:
        raise UsageError(
            f"there is no kind of failure {unknown[0]!r}",
            field="--kind",
            suggestions=[f"Use one of {', '.join(KINDS)}"],
        )
    given = {
        "seed": args.seed,
        "wait": args.wait,
        "patience": args.patience,
        "kinds": args.kind or None,
    }
    changed = {name: value for name, value in given.items() if value is not None}
    return msgspec.structs.replace(plan, **changed), services


def _isolate(args: argparse.Namespace) -> None:
    """Cut off the network of this process and of all that it starts."""
    from amends.audit.sandbox import ENFORCED, cut_network
    from amends.errors.cli import UsageError

    if args.forward or any("=" in each for each in args.service):
        raise UsageError(
            "--isolate cuts off the services to which calls would be forwarded", field="--isolate"
        )
    done = cut_network()
    if done != ENFORCED:
        raise UsageError(f"the network cannot be cut off here: {done}", field="--isolate")


def _read_report(path: Path) -> dict[str, Any]:
    import msgspec

    from amends.errors.cli import NotFoundError, UsageError

    try:
        found = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise NotFoundError(f"there is no report {path}: {error.strerror}", field="--compare") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is no report: {error}", field="--compare") from None
    if isinstance(found, dict) and isinstance(found.get("data"), dict):
        found = found["data"]
    if not isinstance(found, dict) or not isinstance(found.get("rows"), list):
        raise UsageError(f"{path} is no report of a rehearsal", field="--compare")
    return found


def _screen(*, quiet: bool) -> Any:
    """Return what shows the progress on stderr, where that is a terminal or the report is text."""
    from amends.commands.view import painter
    from amends.rehearse.program import Progress
    from amends.rehearse.views import row_line

    if quiet and not sys.stderr.isatty():
        return Progress()
    paint = painter()

    class Screen(Progress):
        """Prints a line when a run begins, and the score when it is judged."""

        def ordinary(self) -> None:
            """Print that the run without failures begins."""
            sys.stderr.write("a run without failures …\n")
            sys.stderr.flush()

        def act(self, number: int, of: int, act: Act) -> None:
            """Print which failure is sent."""
            sys.stderr.write(f"{number} of {of}: {act.title} …\n")
            sys.stderr.flush()

        def judged(self, rows: Sequence[Row]) -> None:
            """Print the scores."""
            for row in rows:
                sys.stderr.write(row_line(row, paint) + "\n")
            sys.stderr.flush()

    return Screen()


def _last_lines(output: str) -> str:
    """Return the end of what a program wrote."""
    shown = output.rstrip().splitlines()[-20:]
    return "\n".join(["the program wrote:", *(f"  {line}" for line in shown), ""]) if shown else ""


def _write(args: argparse.Namespace, report: Report) -> None:
    import msgspec

    from amends.rehearse.page import page
    from amends.rehearse.report import document
    from amends.rehearse.views import junit, sarif

    if args.html is not None:
        args.html.write_text(page(report), encoding="utf-8")
    if args.junit is not None:
        args.junit.write_text(junit(report, args.fail_under), encoding="utf-8")
    if args.sarif is not None:
        args.sarif.write_bytes(msgspec.json.format(msgspec.json.encode(sarif(report)), indent=2))
    if args.report is not None:
        args.report.write_bytes(msgspec.json.format(msgspec.json.encode(document(report)), indent=2))


def _exit_code(args: argparse.Namespace, report: Report) -> int:
    """Return 1 if the rehearsal is void, or if a row scores less than is asked for."""
    if report.violations:
        return 1
    if args.fail_under is None:
        return 0
    return 1 if report.score is None or report.score < args.fail_under else 0


def _list(args: argparse.Namespace) -> int:
    from amends.commands.console import emit, wants_json
    from amends.rehearse.examples import examples_of, services_with_examples
    from amends.rehearse.kinds import KINDS

    services = {
        name: sorted({each.kind for each in examples_of(name)}) for name in sorted(services_with_examples())
    }
    if wants_json(args):
        emit({"kinds": {each.name: each.text for each in KINDS.values()}, "services": services})
        return 0
    width = max(map(len, KINDS))
    print("Kinds of failure: the service …")
    print("".join(f"  {each.name:<{width}}  {each.text}\n" for each in KINDS.values()))
    print("Services with examples:")
    print("".join(f"  {name:<16}  {', '.join(kinds)}\n" for name, kinds in services.items()), end="")
    return 0
