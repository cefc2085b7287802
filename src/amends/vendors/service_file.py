"""
Service files: the facts about a service as data, in TOML or JSON.

docs/services.md describes the format. `ServiceFile` is its definition: the JSON Schema (`amends schema service`) is made from it.
`problems` says what is wrong with a file, `load` adds files at run time, and `compiled` makes the document that the wheel holds.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from amends.core.enums import Executed
from amends.core.meanings import MEANINGS
from amends.core.validate import shown
from amends.vendors.conditions import every, parse
from amends.vendors.model import Acts, Key
from amends.vendors.registry import add, file_of, find, loaded_by

__all__ = ["ServiceFile", "compiled", "load", "merged", "parsed", "problems"]

_Name = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9-]{0,63}$")]
_Words = str | list[str | int]
_ByMeaning = dict[str, _Words]
"""Name of a meaning → code words, separated by spaces or as a list."""
_Conditions = Annotated[list[Annotated[str, Meta(max_length=300)]], Meta(min_length=1, max_length=12)]
_Path = Annotated[str, Meta(min_length=1, max_length=200)]


class _Part(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A table of a service file."""


class Marks(_Part):
    """By what a service is recognised, the surest first."""

    hosts: list[Annotated[str, Meta(pattern=r"^\.?[a-z0-9*-]+(\.[a-z0-9*-]+)+$")]] = []
    """Hosts; one that begins with a dot stands for all below it, and `*` for a part without dots."""
    headers: list[Annotated[str, Meta(pattern="^[a-z0-9_-]+$")]] = []
    """Response headers that only this service sends; one that ends with `-` is the beginning of names."""
    hints: list[Annotated[str, Meta(pattern="^[a-z0-9_-]+$")]] = []
    """Response headers that others send too."""
    shape: list[_Conditions] = []
    """Conditions on the body that no other service's answers fulfil: all of one list have to hold."""
    guess: list[_Conditions] = []
    """The same for conditions that others' answers may fulfil."""


class Wait(_Part):
    """Where a body names a wait that the general reader does not know."""

    at: _Path
    unit: Literal["s", "ms", "epoch"] = "s"


class Places(_Part):
    """Where an answer keeps its facts, if it is elsewhere than usual. `headers.x-error` is a header."""

    code: str | list[_Path] = []
    message: str | list[_Path] = []
    field: str | list[_Path] = []
    request: str | list[_Path] = []
    docs: str | list[_Path] = []
    wait: Wait | None = None


class When(_Part):
    """A meaning that depends on conditions. It counts for a service known by its host, name or header."""

    when: _Conditions
    meaning: str


class Error(_Part):
    """How the error is made from an answer that does not hold an error object."""

    code: _Path | None = None
    """Where its code is; spaces in it are written as underscores."""
    name: _Path | None = None
    """A name of a member, with `*` for any text: the code is the name of the first member of this form."""
    say: str | None = None
    """The code itself, for a condition that means one thing. It begins with @."""
    error: _Path | None = None
    """Where an object is that other services call `error`."""
    message: _Path | None = None


class Failed(_Part):
    """How a successful answer reports a failure."""

    when: _Conditions
    any: bool = False
    """Whether the shape is unmistakable, so that it is read whatever the service."""
    error: _Path | Error = "."
    """Where the error object is."""
    default: str = "internal"
    """The meaning if no code word of the error is known."""
    status: _Path | None = None
    """Where the body names an HTTP status."""


class Parts(_Part):
    """How an answer to several operations reports those that failed."""

    when: _Conditions
    items: _Path
    also: _Path | None = None
    """Where the operations that succeeded are, if they are in another list."""
    failed: _Conditions | None = None
    """What holds for an item that failed."""
    status: int | _Path = 400
    """The HTTP status of an item, or where it is."""
    status_if: dict[str, int] = {}
    """Condition → the status of an item for which it holds."""
    partial: bool = False
    """Whether others succeeded, though the answer does not list them."""
    body: _Path | None = None
    """Where the body of an item is, if it is an answer of its own."""
    error: _Path | Error = "."


class Expected(_Part):
    """What an example means."""

    meaning: str
    code: str | None = None
    wait: float | None = None
    field: str | None = None
    request: str | None = None
    reaction: Literal["repeat", "stop", "fix", "verify"] | None = None
    """What a caller should do, if it is not what the meaning says; `amends rehearse` judges programs by it."""


class Example(_Part):
    """An answer, and what it means: a test of the file."""

    expect: Literal["success"] | Expected = msgspec.field(name="is")
    status: Annotated[int, Meta(ge=100, le=599)] = 200
    headers: dict[str, str] = {}
    body: Any = None
    """The body; a text that begins with { or [ is JSON if it can be read as such."""
    source: str | None = None
    """Where the answer is documented."""
    named: bool = True
    """Whether the reader knows the service by its name."""


class ServiceFile(_Part):
    """The facts about a service whose failures amends reads."""

    format: Literal[1]
    name: _Name
    title: str | None = None
    docs: str | None = None
    """Address of the published error reference."""
    checked: str | None = None
    """What the file was compared with, and when: a page, or an SDK with its version."""
    kind: Literal["service", "format"] = "service"
    """A format (GraphQL, gRPC) is used by many services; its name proves nothing about the effect of a call."""
    extends: _Name | None = None
    """The service that this file adds to: its own code words win."""
    also: list[str] = []
    """Other names."""
    own: _Words = []
    """Words that are too common to count for an unknown sender."""
    computes: list[str] = []
    """Ends of the paths of routes that only compute, so that a repeat is safe …"""
    acts: Acts | None = None
    """… unless the request names something that acts or stays at the service."""
    recognise: Marks | None = msgspec.field(default=None, name="is")
    at: Places | None = None
    words: _ByMeaning = {}
    numbers: _ByMeaning = {}
    """Codes that are numbers; they count only if the service was recognised."""
    broad: _ByMeaning = {}
    """Words that count only where there is no HTTP status of a failure."""
    by_status: dict[Annotated[str, Meta(pattern="^(other|[1-5][0-9][0-9]( waiting)?)$")], _ByMeaning] = {}
    """Status → code words that mean this under it; `429 waiting`: if the response names a wait."""
    statuses: _ByMeaning = {}
    """Statuses with a meaning of their own."""
    closes: _ByMeaning = {}
    """Close codes of WebSockets."""
    waits: dict[str, Annotated[float, Meta(ge=0, le=31_536_000)]] = {}
    """Word, or `status 429` → seconds that the reference says to wait."""
    key: Key | None = None
    when: list[When] = []
    failed: list[Failed] = []
    parts: list[Parts] = []
    exceptions: list[_ByMeaning] = []
    """Classes of SDKs: `modules`, and meaning → class, or class@reader."""
    example: list[Example] = []


_MAX_BYTES = 1024 * 1024
_MAX_WORDS = 20_000
_MAX_RULES = 500
_TABLES = ("words", "numbers", "broad", "statuses", "closes")


def parsed(source: str | Path) -> dict[str, Any]:
    """
    Return a file as plain values. A name that ends with .json is read as JSON, any other as TOML.

    Raises:
        ValueError: it is larger than a megabyte, or neither TOML nor JSON.
        OSError: it cannot be read.

    """
    path = Path(source)
    if path.stat().st_size > _MAX_BYTES:
        raise ValueError(f"{path} is larger than {_MAX_BYTES} bytes")
    data = path.read_bytes()
    try:
        found = msgspec.json.decode(data) if path.suffix == ".json" else tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} is no object")  # noqa: TRY004 - it is the content of a file
    return found


@loaded_by
def load(source: str | Path | Mapping[str, Any], *, replace_loaded: bool = True) -> tuple[str, ...]:
    """
    Add services, or change shipped ones, in this process, and return their names.

    Args:
        source: a file in TOML or JSON, a folder of such files, or a mapping of the same form. A file with `extends` adds to
            another service, and its code words win over those of that service.
        replace_loaded: whether a file that was loaded before is replaced.

    Raises:
        ValueError: a file is wrong; the message lists what is. Nothing of it is used.
        OSError: a file cannot be read.

    >>> load({"format": 1, "name": "acme", "is": {"hosts": ["api.acme.example"]}, "words": {"quota": "no_beans"}})
    ('acme',)
    >>> from amends import extract
    >>> extract({"status": 429, "headers": {}, "body": {"error": {"code": "no_beans"}}}, vendor="acme").code
    'QUOTA_EXCEEDED'

    """
    if not isinstance(source, Mapping):
        path = Path(source)
        if path.is_dir():
            files = sorted(each for each in path.iterdir() if each.suffix in {".toml", ".json"})
            return tuple(name for each in files for name in load(each, replace_loaded=replace_loaded))
        source = parsed(path)
    wrong = problems(source)
    if wrong:
        raise ValueError(f"the service file {shown(source.get('name'))} is wrong: {'; '.join(wrong[:10])}")
    return (add(merged(source), replace_loaded=replace_loaded),)


def merged(file: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return a file together with the one that it extends. Code words of the file win; its rules come before those of the other.

    >>> merged({"format": 1, "name": "stripe", "extends": "stripe", "words": {"rate": "lock_timeout"}})["words"]["in_progress"]
    'idempotency_key_in_use'
    """
    base = file.get("extends")
    if base is None:
        return dict(file)
    found = {name: value for name, value in file_of(base).items() if name != "loaded"}
    for name, value in file.items():
        old = found.get(name)
        if name in _TABLES:
            found[name] = _merged_words(old or {}, value)
            if name in {"words", "numbers"} and "by_status" in found:
                # A code word that has one meaning now has it under every status.
                found["by_status"] = {
                    status: _merged_words(table, {"": list(_words_of(value))})
                    for status, table in found["by_status"].items()
                }
        elif name == "by_status":
            found[name] = {
                status: _merged_words((old or {}).get(status, {}), value.get(status, {}))
                for status in {**(old or {}), **value}
            }
        elif isinstance(value, list) and isinstance(old, list):
            found[name] = value + old
        elif isinstance(value, dict) and isinstance(old, dict):
            found[name] = {**old, **value}
            for member, inner in value.items():
                held = old.get(member)
                if isinstance(inner, list) and isinstance(held, list):
                    found[name][member] = inner + held
        elif name != "extends":
            found[name] = value
    return found


def _merged_words(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    taken = set(_words_of(new))
    rows = {meaning: [word for word in _split(words) if word not in taken] for meaning, words in old.items()}
    for meaning, words in new.items():
        rows.setdefault(meaning, []).extend(_split(words))
    return {meaning: " ".join(words) for meaning, words in rows.items() if words and meaning}


def _split(words: Any) -> list[str]:
    return words.split() if isinstance(words, str) else " ".join(map(str, words)).split()


def _words_of(table: Mapping[str, Any]) -> Iterator[str]:
    for words in table.values():
        yield from _split(words)


def problems(file: Mapping[str, Any]) -> list[str]:
    """
    Return what is wrong with a service file, as sentences. The examples are not run: see `amends vendors check`.

    >>> problems({"format": 1, "name": "acme", "words": {"rates": "too_fast"}})[0][:40]
    'words.rates: there is no such meaning; t'
    """
    try:
        typed = msgspec.convert(file, ServiceFile)
    except (msgspec.ValidationError, RecursionError) as error:
        return [str(error)]
    wrong = [*_wrong_words(file), *_wrong_rules(typed), *_wrong_exceptions(typed)]
    base = typed.extends
    if base is not None and find(base) is None:
        wrong.append(f"extends: there is no service {shown(base)}")
    marks = typed.recognise or Marks()
    if typed.kind == "service" and base is None:
        needs = [name for name, given in (("failed", typed.failed), ("when", typed.when)) if given]
        known = marks.hosts or marks.headers
        certain = all(rule.any for rule in typed.failed) and not typed.when
        if needs and not known and not certain and typed.docs is None:
            wrong.append(
                f"{needs[0]}: it counts only for a known sender: name hosts or headers under [is], or docs"
            )
    return wrong


def _wrong_words(file: Mapping[str, Any]) -> Iterator[str]:
    tables = [(name, file.get(name, {})) for name in _TABLES]
    tables += [(f"by_status.{status}", table) for status, table in file.get("by_status", {}).items()]
    total = 0
    for name, table in tables:
        seen: dict[str, str] = {}
        for meaning, words in table.items():
            if meaning not in MEANINGS:
                yield f"{name}.{meaning}: there is no such meaning; there are {', '.join(sorted(MEANINGS))}"
            for word in _split(words):
                total += 1
                if len(word) > _LONGEST_WORD:
                    yield f"{name}.{meaning}: {word[:20]}… is longer than {_LONGEST_WORD} characters"
                if seen.setdefault(word, meaning) != meaning:
                    yield f"{name}: {word} is both {seen[word]} and {meaning}"
                number = word.lstrip("-").isdecimal()
                if number and name == "words":
                    yield f"words: {word} is a number; put it under [numbers]"
                if not number and name in {"numbers", "statuses", "closes"}:
                    yield f"{name}: {word} is no number"
    if total > _MAX_WORDS:
        yield f"the file has {total} code words; it may have {_MAX_WORDS}"


_LONGEST_WORD = 96


def _wrong_rules(file: ServiceFile) -> Iterator[str]:
    marks = file.recognise or Marks()
    rules: list[tuple[str, Sequence[str]]] = [
        *((f"is.shape[{at}]", when) for at, when in enumerate(marks.shape)),
        *((f"is.guess[{at}]", when) for at, when in enumerate(marks.guess)),
        *((f"when[{at}]", each.when) for at, each in enumerate(file.when)),
        *((f"failed[{at}]", each.when) for at, each in enumerate(file.failed)),
        *((f"parts[{at}]", each.when) for at, each in enumerate(file.parts)),
        *((f"parts[{at}].failed", each.failed) for at, each in enumerate(file.parts) if each.failed),
        *((f"parts[{at}].status_if", [*each.status_if]) for at, each in enumerate(file.parts)),
        *([("acts.when", file.acts.when)] if file.acts else []),
    ]
    if len(rules) > _MAX_RULES:
        yield f"the file has {len(rules)} rules; it may have {_MAX_RULES}"
    for where, when in rules:
        try:
            every(when)
        except ValueError as error:
            yield f"{where}: {error}"
    for where, path in _paths(file):
        try:
            parse(path.removeprefix("headers."))
        except ValueError as error:
            yield f"{where}: {error}"
    for where, meaning in (
        *((f"when[{at}]", each.meaning) for at, each in enumerate(file.when)),
        *((f"failed[{at}].default", each.default) for at, each in enumerate(file.failed)),
        *(
            (f"example[{at}]", each.expect.meaning)
            for at, each in enumerate(file.example)
            if isinstance(each.expect, Expected)
        ),
    ):
        if meaning not in MEANINGS:
            yield f"{where}: there is no meaning {shown(meaning)}"


def _paths(file: ServiceFile) -> Iterator[tuple[str, str]]:
    at = file.at or Places()
    for name in ("code", "message", "field", "request", "docs"):
        given = getattr(at, name)
        yield from ((f"at.{name}", path) for path in ([given] if isinstance(given, str) else given))
    if at.wait is not None:
        yield "at.wait", at.wait.at
    for place, rule in enumerate((*file.failed, *file.parts)):
        for name in ("error", "status", "items", "also", "body"):
            given = getattr(rule, name, None)
            if isinstance(given, Error):
                for inner in ("code", "error", "message"):
                    path = getattr(given, inner)
                    if path is not None:
                        yield f"rule {place}: error.{inner}", path
            elif isinstance(given, str):
                yield f"rule {place}: {name}", given


def _wrong_exceptions(file: ServiceFile) -> Iterator[str]:
    for place, row in enumerate(file.exceptions):
        if not row.get("modules"):
            yield f"exceptions[{place}]: it needs the modules of the classes"
        for meaning in row:
            if meaning != "modules" and meaning not in MEANINGS:
                yield f"exceptions[{place}]: there is no meaning {shown(meaning)}"


def compiled(folder: Path, libraries: Path, reader: Path) -> bytes:
    """
    Return the document of the wheel: the meanings, the service files of a folder, the exception classes, and the tables of the reader.

    Examples are left out, because they are tests. There is a line for each service.
    """
    services, shared = [], parsed(libraries)
    exceptions = list(shared["exceptions"])
    for path in sorted(folder.glob("*.toml")):
        file = parsed(path)
        exceptions += file.pop("exceptions", ())
        file.pop("example", None)
        services.append(_packed(file))
    meanings = {
        name: {
            "code": meaning.code,
            "recovery": meaning.recovery.value,
            "actor": meaning.actor.value,
            "executed": meaning.executed.value if isinstance(meaning.executed, Executed) else "status",
        }
        for name, meaning in MEANINGS.items()
    }
    parts = {
        "meanings": _lines("{", "}", (f"{_json(name)}:{_json(row)}" for name, row in meanings.items())),
        "services": _lines("[", "]", map(_json, services)),
        "exceptions": _lines("[", "]", (_json(_packed(row)) for row in exceptions)),
        "reader": _json(_on_one_line(parsed(reader))),
        "numbers": _json(_on_one_line(shared["numbers"])),
    }
    body = ",\n".join(f'"{name}":{text}' for name, text in parts.items())
    return f'{{"format":1,\n{body}}}\n'.encode()


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _on_one_line(value: Any) -> Any:
    """Return a value whose texts have single spaces where they had line breaks."""
    if isinstance(value, dict):
        return {name: _on_one_line(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_on_one_line(each) for each in value]
    return " ".join(value.split()) if isinstance(value, str) else value


def _lines(begin: str, end: str, items: Iterator[str] | map[str]) -> str:
    return f"{begin}\n" + ",\n".join(items) + f"\n{end}"


def _packed(file: dict[str, Any]) -> dict[str, Any]:
    """Return a file with every list of code words as one text, which is shorter and decoded faster."""
    packed = dict(file)
    for name in _TABLES:
        if name in packed:
            packed[name] = {meaning: " ".join(_split(words)) for meaning, words in packed[name].items()}
    if "by_status" in packed:
        packed["by_status"] = {
            status: {meaning: " ".join(_split(words)) for meaning, words in table.items()}
            for status, table in packed["by_status"].items()
        }
    if "modules" in packed:
        return {
            name: value if name == "modules" else " ".join(_split(value)) for name, value in packed.items()
        }
    return packed
