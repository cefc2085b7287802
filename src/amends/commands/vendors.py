"""`amends vendors list | show | check | new`: the files of services, and checks of files of your own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amends.commands.console import Subparsers
    from amends.core.fault import Fault

__all__ = ["add", "example_problems", "run"]

_WRONG = 2
"""The exit code of `check` if a file is wrong: that of VALIDATION_ERROR."""


def add(subparsers: Subparsers) -> None:
    """Add the `vendors` subcommand."""
    from amends.commands.console import as_sentence

    summary = "list, show and check the files of services"
    vendors = subparsers.add_parser("vendors", help=summary, description=as_sentence(summary))
    actions = vendors.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (summary, options, _) in _ACTIONS.items():
        action = actions.add_parser(name, help=summary, description=as_sentence(summary))
        options(action)
        action.set_defaults(run=run)
    vendors.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the action."""
    return _ACTIONS[args.action][2](args)


def _list_options(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "text", nargs="?", default="", metavar="TEXT", help="only names and titles with this text"
    )


def _show_options(action: argparse.ArgumentParser) -> None:
    action.add_argument("name", metavar="NAME", help="a service, as `list` prints it, or an alias")


def _check_options(action: argparse.ArgumentParser) -> None:
    action.add_argument("files", nargs="+", metavar="FILE", help="files in TOML or JSON, or folders of them")


def _new_options(action: argparse.ArgumentParser) -> None:
    action.add_argument("name", metavar="NAME", help="the name of the new service")
    action.add_argument(
        "--openapi", metavar="FILE", help="take hosts and places from this OpenAPI document (JSON)"
    )


def _list(args: argparse.Namespace) -> int:
    from amends.commands.console import emit, wants_json
    from amends.vendors.registry import file_of, names

    text = args.text.lower()
    files = {name: file_of(name) for name in sorted(names())}
    found = {
        name: file for name, file in files.items() if text in name or text in file.get("title", name).lower()
    }
    if wants_json(args):
        emit({"vendors": [{"name": name, "title": file.get("title", name)} for name, file in found.items()]})
        return 0
    room = max(map(len, found), default=0)
    sys.stdout.write("".join(f"{name:<{room}}  {file.get('title', name)}\n" for name, file in found.items()))
    return 0


def _show(args: argparse.Namespace) -> int:
    import msgspec

    from amends.errors.cli import NotFoundError
    from amends.vendors.registry import file_of

    try:
        file = file_of(args.name)
    except LookupError:
        raise NotFoundError(
            f"no vendor {args.name!r}", suggestions=["See the names with amends vendors list"]
        ) from None
    document = {name: value for name, value in file.items() if name != "loaded"}
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")
    return 0


def _check(args: argparse.Namespace) -> int:
    from amends.commands.console import emit, wants_json

    results = [_checked(path) for given in args.files for path in _files(Path(given))]
    wrong = sum(bool(each["problems"]) for each in results)
    if wants_json(args):
        emit({"files": results, "wrong": wrong})
    else:
        for each in results:
            for problem in each["problems"]:
                print(f"{each['file']}: {problem}")
        print(f"{len(results)} checked, {wrong} wrong, {sum(each['examples'] for each in results)} examples")
    return _WRONG if wrong else 0


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(each for each in path.iterdir() if each.suffix in {".toml", ".json"})
    return [path]


def _checked(path: Path) -> dict[str, Any]:
    from amends.vendors.registry import add as add_file
    from amends.vendors.service_file import merged, parsed, problems

    try:
        file = parsed(path)
    except (OSError, ValueError) as error:
        return {"file": str(path), "examples": 0, "problems": [str(error)]}
    wrong = problems(file)
    if not wrong:
        add_file(merged(file))
        wrong = list(example_problems(file))
    return {"file": str(path), "examples": len(file.get("example", ())), "problems": wrong}


def example_problems(file: Mapping[str, Any]) -> Iterator[str]:
    """Run the examples of a file whose service is loaded, and yield what is read differently."""
    import msgspec

    from amends.carriers.extraction import extract
    from amends.core.meanings import MEANINGS

    for place, example in enumerate(file.get("example", ())):
        body = example.get("body")
        if isinstance(body, str) and body[:1] in {"{", "["}:
            # A stream of documents begins so, too, and is text.
            with suppress(msgspec.DecodeError):
                body = msgspec.json.decode(body)
        status = example.get("status", 200)
        fault = extract(
            {"status": status, "headers": example.get("headers", {}), "body": body},
            "http",
            vendor=file["name"] if example.get("named", True) else None,
            in_success=status < _FAILED,
        )
        expected = example["is"]
        if expected == "success":
            if fault is not None:
                yield f"example[{place}]: read as {fault.code}, and it is a success"
        elif fault is None:
            yield f"example[{place}]: nothing is read, and it means {expected['meaning']}"
        else:
            meaning = MEANINGS[expected["meaning"]]
            wanted = {"code": meaning.code, "recovery": meaning.recovery.value}
            wanted |= {
                name: value for name, value in expected.items() if name not in {"meaning", "code", "reaction"}
            }
            if "code" in expected:
                wanted["word"] = expected["code"]
            for name, value in wanted.items():
                got = _GOT[name](fault)
                if got != value:
                    yield f"example[{place}]: {name} is {got!r}, and {value!r} is expected"


_FAILED = 400
_GOT: dict[str, Callable[[Fault], object]] = {
    "code": lambda fault: fault.code,
    "recovery": lambda fault: fault.recovery.value,
    "word": lambda fault: (fault.details or {}).get("code"),
    "wait": lambda fault: fault.retry_after,
    "field": lambda fault: fault.field,
    "request": lambda fault: fault.trace_id,
}


def _new(args: argparse.Namespace) -> int:
    from amends.errors.cli import ValidationError
    from amends.vendors.registry import find
    from amends.vendors.service_file import problems

    wrong = problems({"format": 1, "name": args.name})
    if wrong:
        raise ValidationError(
            f"{args.name!r} is no name of a service",
            field="NAME",
            suggestions=["Use lower-case letters, digits and hyphens"],
        )
    base = find(args.name)
    hosts, places = _from_openapi(args.openapi) if args.openapi else ((), ())
    lines = ["format = 1", f'name = "{args.name}"']
    if base is not None:
        lines.append(f'extends = "{base}"  # the code words here win over those of the shipped file')
    lines += [
        f'title = "{args.name}"',
        'docs = "https://"  # the published error reference',
        'checked = ""  # what this was compared with, and when',
        "",
        "[is]",
        f"hosts = [{', '.join(_quoted(host) for host in hosts)}]",
        "# headers = []  # response headers that only this service sends",
        "",
        *(["[at]", f"code = [{', '.join(map(_quoted, places))}]", ""] if places else ()),
        "[words]  # amends schema service lists the tables; docs/services.md the meanings",
        '# rate = "too_many_requests"',
        '# quota = "credits_used_up"',
        "",
        "[[example]]",
        "status = 429",
        """body = '{"error": {"code": ""}}'""",
        'source = "https://"',
        'is = { meaning = "rate" }',
        "",
        "[[example]]",
        "status = 200",
        "body = '{}'",
        'is = "success"',
    ]
    sys.stdout.write("\n".join([*lines, ""]))
    return 0


def _quoted(text: str) -> str:
    import msgspec

    return msgspec.json.encode(text).decode()


_MAX_OPENAPI = 32 * 1024 * 1024
_MAX_DEPTH = 6
_MAX_PLACES = 4
_CODES = ("code", "error_code", "errorCode", "error", "type", "reason", "name", "status")
"""Names of members that hold a code, the likeliest first."""


def _from_openapi(source: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the hosts and the places of codes that an OpenAPI document describes. It says nothing about what code words mean."""
    import msgspec

    from amends.errors.cli import NotFoundError, ValidationError

    path = Path(source)
    if not path.is_file():
        raise NotFoundError(
            f"there is no file {source}", suggestions=["Give the path of an OpenAPI document"]
        )
    try:
        document = msgspec.json.decode(path.read_bytes()) if path.stat().st_size <= _MAX_OPENAPI else None
    except (msgspec.DecodeError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise ValidationError(
            f"{source} is no OpenAPI document in JSON of at most {_MAX_OPENAPI >> 20} MB",
            field="--openapi",
            suggestions=["Convert a document in YAML to JSON first"],
        )
    places = dict.fromkeys(
        place for schema in _error_schemas(document) for place in _places(document, schema, "", _MAX_DEPTH)
    )
    return tuple(dict.fromkeys(_hosts(document))), tuple(places)[:_MAX_PLACES]


def _hosts(document: dict[str, Any]) -> Iterator[str]:
    from urllib.parse import urlsplit

    servers = document.get("servers")
    urls = (
        [each.get("url") for each in servers if isinstance(each, dict)] if isinstance(servers, list) else []
    )
    if isinstance(document.get("host"), str):
        urls.append(f"https://{document['host']}")
    for url in urls:
        try:
            host = urlsplit(url).hostname if isinstance(url, str) else None
        except ValueError:
            continue
        if host and "." in host and "{" not in host:
            yield host


def _error_schemas(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the schemas of answers that report failures."""
    paths = document.get("paths")
    for operations in paths.values() if isinstance(paths, dict) else ():
        for operation in operations.values() if isinstance(operations, dict) else ():
            responses = operation.get("responses") if isinstance(operation, dict) else None
            for status, response in responses.items() if isinstance(responses, dict) else ():
                if str(status)[:1] in {"4", "5"} or status == "default":
                    answer = _resolved(document, response)
                    content = answer.get("content")
                    kinds = content.values() if isinstance(content, dict) else (answer,)
                    for kind in kinds:
                        if isinstance(kind, dict) and isinstance(kind.get("schema"), dict):
                            yield kind["schema"]


def _resolved(document: dict[str, Any], value: Any) -> dict[str, Any]:
    """Return an object, or the one in the document that it refers to."""
    for _ in range(_MAX_DEPTH):
        reference = value.get("$ref") if isinstance(value, dict) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        value = document
        for step in reference[2:].split("/"):
            value = value.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _places(document: dict[str, Any], schema: Any, above: str, depth: int) -> Iterator[str]:
    """Yield the paths of members that hold a code."""
    found = _resolved(document, schema)
    for part in (
        found,
        *(_resolved(document, each) for each in found.get("allOf", ()) if isinstance(each, dict)),
    ):
        members = part.get("properties")
        if not isinstance(members, dict) or not depth:
            continue
        for name in _CODES:
            member = _resolved(document, members.get(name))
            if member.get("type") in {"string", "integer"}:
                yield f"{above}{name}"
                break
        for name in ("error", "errors", "detail", "details", "fault", "status"):
            member = _resolved(document, members.get(name))
            if member.get("type") == "array":
                yield from _places(document, member.get("items"), f"{above}{name}[].", depth - 1)
            elif "properties" in member or "allOf" in member:
                yield from _places(document, member, f"{above}{name}.", depth - 1)


_Options = Callable[[argparse.ArgumentParser], None]
_Action = Callable[[argparse.Namespace], int]

# action → (summary, adds its arguments, runs it)
_ACTIONS: dict[str, tuple[str, _Options, _Action]] = {
    "list": ("list the services whose failures are read", _list_options, _list),
    "show": ("print the file of one service as JSON", _show_options, _show),
    "check": ("check files of services, and run their examples", _check_options, _check),
    "new": ("print the beginning of a file for a new service", _new_options, _new),
}
