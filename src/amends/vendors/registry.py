"""
The services by name, and the index over all of their code words. Loaded on first use.

The files of the shipped services are compiled into one JSON document (`make services`). An application adds services, or
overrides facts of a shipped one, with `load`; the environment variable AMENDS_SERVICES names further files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from os import environ, pathsep
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from amends.core.meanings import MEANINGS, Meaning
from amends.core.validate import shown
from amends.core.wrong_calls import nearest
from amends.logs import logger
from amends.vendors.conditions import matches, needs
from amends.vendors.model import Acts, Key, Rule, Vendor, Word

__all__ = [
    "Index",
    "add",
    "check",
    "exception_rows",
    "file_of",
    "find",
    "has_hosts",
    "hosts",
    "index",
    "is_service",
    "load_installed",
    "names",
    "number_tables",
    "reader_tables",
    "vendor",
    "vendor_of_host",
    "vendor_of_origin",
]

ENVIRONMENT = "AMENDS_SERVICES"
GROUP = "amends.services"
"""The group of entry points under which packages offer service files."""

_LOGGER = logger("amends.vendors")
_LOCK = RLock()


class _Compiled(msgspec.Struct):
    """The document in the wheel. The parts are decoded when they are needed."""

    format: int
    services: msgspec.Raw
    exceptions: msgspec.Raw
    meanings: msgspec.Raw
    reader: msgspec.Raw
    numbers: msgspec.Raw


class Rules:
    """Rules by a member that they need, so that only few are tried on a body."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.of_lists: list[Rule] = []
        """Rules for an array, whose conditions begin with [0]."""
        self.by_member: dict[str, tuple[list[Rule], dict[str, list[Rule]]]] = {}
        """Member → (rules, member inside it or inside its first item → rules)."""
        made = [(rule, needs(rule.when)) for rule in rules]
        common = Counter(each for _, members in made for each in members)
        for place, (rule, members) in enumerate(made):
            rule.rank = (*rule.rank[:2], -place)
            if not members:
                self.of_lists.append(rule)
                continue
            # The member that the fewest rules need, and rather one inside another.
            member, inner = min(members, key=lambda each: (common[each], each[1] is None))
            plain, nested = self.by_member.setdefault(member, ([], {}))
            (plain if inner is None else nested.setdefault(inner, [])).append(rule)
        for plain, nested in self.by_member.values():
            for group in (plain, *nested.values()):
                group.sort(key=_rank, reverse=True)

    def best(self, body: object) -> Rule | None:
        """Return the rule with the highest rank that holds for a body, or None. For an array its first item counts too."""
        found: Rule | None = None
        if isinstance(body, list):
            found = next((rule for rule in self.of_lists if rule.holds(body)), None)
            body = body[0] if found is None and body else None
        if not isinstance(body, dict):
            return found
        by_member = self.by_member
        for member, value in body.items():
            if member not in by_member:
                continue
            plain, nested = by_member[member]
            if plain:
                found = _better(plain, body, found)
            if nested:
                held = value[0] if isinstance(value, list) and value else value
                if isinstance(held, dict):
                    for inner in held:
                        if inner in nested:
                            found = _better(nested[inner], body, found)
        return found


def _rank(rule: Rule) -> tuple[bool, int, int]:
    return rule.rank


def _better(rules: list[Rule], body: dict[str, Any], found: Rule | None) -> Rule | None:
    """Return the first of these rules that holds and has a higher rank than the one that was found."""
    for rule in rules:
        if found is not None and rule.rank <= found.rank:
            break
        if rule.holds(body):
            return rule
    return found


class Index:
    """What is known over all services."""

    def __init__(self, files: Mapping[str, Mapping[str, Any]]) -> None:
        self.vendors: dict[str, Vendor] = {}
        self.words: dict[str, Word] = {}
        """Words on which all services agree, for a sender that was not recognised. Numbers are left out."""
        self.broad: dict[str, Meaning] = {}
        self.headers: dict[str, tuple[str, bool]] = {}
        """Header → (service, whether only this service sends it)."""
        self.prefixes: list[tuple[str, str, bool]] = []
        self.seen: dict[str, tuple[int, bool, tuple[str, bool] | None]] = {}
        """What `reading` found out about names of headers, up to a bound."""
        said: dict[str, list[Word]] = {}
        shapes: list[Rule] = []
        failures: list[Rule] = []
        parts: list[Rule] = []
        contested: set[str] = set()
        for name, file in files.items():
            known = self.vendors[name] = _vendor(file)
            for word, meaning in known.words.items():
                if word not in known.own and not _is_number(word):
                    said.setdefault(word, []).append(meaning)
            for word, meaning in known.broad.items():
                if not self.broad.setdefault(word, meaning).says_the_same(meaning):
                    contested.add(word)
            self._add_headers(known, file)
            marks = file.get("is", {})
            shapes += (Rule(known, when) for when in marks.get("shape", ()))
            shapes += (Rule(known, when, certain=False) for when in marks.get("guess", ()))
            failures += (rule for rule in known.failed if rule.spec.get("any"))
            parts += (Rule(known, spec["when"], spec) for spec in file.get("parts", ()))
        self.shapes = Rules(shapes)
        self.failures = Rules(failures)
        """How successful answers report failures, for shapes that are read whatever the service."""
        self.parts = Rules(parts)
        for word in contested:
            del self.broad[word]
        for word, meanings in said.items():
            agreed = meanings[0] if len(meanings) == 1 else _agreed(meanings)
            if agreed:
                self.words[word] = agreed

    def _add_headers(self, known: Vendor, file: Mapping[str, Any]) -> None:
        marks = file.get("is", {})
        for member, only in (("headers", True), ("hints", False)):
            for header in marks.get(member, ()):
                if header.endswith("-"):
                    self.prefixes.append((header, known.name, only))
                else:
                    self.headers[header] = (known.name, only)

    def header(self, name: str) -> tuple[str, bool] | None:
        """Return the service that sends a header, and whether no other does; None for a header that shows none."""
        found = self.headers.get(name)
        if found is None and self.prefixes:
            found = next(
                ((vendor, only) for prefix, vendor, only in self.prefixes if name.startswith(prefix)), None
            )
        return found


def _words(value: object) -> list[str]:
    """Return the code words of a member: separated by spaces, in one text or in several."""
    return value.split() if isinstance(value, str) else " ".join(map(str, value)).split()  # type: ignore[call-overload]


def _is_number(word: str) -> bool:
    return word.lstrip("-").isdecimal()


def _table(file: Mapping[str, Any], member: str) -> Iterator[tuple[str, Meaning]]:
    """Yield (code word, meaning) of a table of a file, with the documented waits."""
    waits = file.get("waits", {})
    for name, words in file.get(member, {}).items():
        meaning = MEANINGS[name]
        for word in _words(words):
            yield word, replace(meaning, wait=float(waits[word])) if word in waits else meaning


def _vendor(file: Mapping[str, Any]) -> Vendor:
    words: dict[str, Word] = dict(_table(file, "words"))
    words.update(_table(file, "numbers"))
    for status, table in file.get("by_status", {}).items():
        number = 0 if status == "other" else int(status[:3])
        for word, meaning in _table({**file, "by_status": table}, "by_status"):
            under = words.get(word)
            if not isinstance(under, dict):
                under = words[word] = {0: under} if isinstance(under, Meaning) else {}
            under[-number if status.endswith("waiting") else number] = meaning
    waits = file.get("waits", {})
    known = Vendor(
        name=file["name"],
        title=file.get("title", file["name"]),
        docs=file.get("docs", ""),
        is_format=file.get("kind") == "format",
        words=words,
        own=frozenset(_words(file.get("own", ()))),
        broad=dict(_table(file, "broad")),
        statuses={
            int(number): replace(meaning, wait=float(waits[f"status {number}"]))
            if f"status {number}" in waits
            else meaning
            for number, meaning in _table(file, "statuses")
        },
        closes={int(number): meaning for number, meaning in _table(file, "closes")},
        at=file.get("at", {}),
        keys=Key(**file["key"]) if "key" in file else None,
        computes=tuple(file.get("computes", ())),
        acts=msgspec.convert(file["acts"], Acts) if "acts" in file else None,
    )
    known.when = tuple(Rule(known, spec["when"], spec) for spec in file.get("when", ()))
    known.failed = tuple(Rule(known, spec["when"], spec) for spec in file.get("failed", ()))
    return known


def _agreed(meanings: list[Word]) -> Word:
    """Return the meaning that several services give a code word; under a status for which two differ, it has none."""
    merged: dict[int, Meaning] = {}
    contested: set[int] = set()
    for one in meanings:
        under: Mapping[int, Meaning] = {0: one} if isinstance(one, Meaning) else one
        for status, meaning in under.items():
            before = merged.setdefault(status, meaning)
            if not before.says_the_same(meaning):
                contested.add(status)
            elif before.wait != meaning.wait:
                # A documented wait is one service's own.
                merged[status] = replace(before, wait=None)
    left = {status: meaning for status, meaning in merged.items() if status not in contested}
    return left[0] if left.keys() == {0} else left


class _Hosts(NamedTuple):
    exact: Mapping[str, str]
    """Host → service; one that begins with a dot stands for all hosts below it."""
    forms: tuple[tuple[str, str], ...]
    """Hosts with a `*`."""
    owners: frozenset[str]
    """Services that have hosts."""


class _Book:
    """The files of all services, and what was made of them."""

    def __init__(self) -> None:
        self.compiled: _Compiled | None = None
        self.files: dict[str, Mapping[str, Any]] = {}
        self.names: dict[str, str] = {}
        self.hosts: _Hosts | None = None
        self.index: Index | None = None
        self.origins: Mapping[str, str] = {}
        """Origins of the application's own servers → service."""

    def document(self) -> _Compiled:
        """Return the document of the wheel."""
        if self.compiled is None:
            data = (Path(__file__).parent / "services.json").read_bytes()
            self.compiled = msgspec.json.decode(data, type=_Compiled)
        return self.compiled

    def open(self) -> dict[str, Mapping[str, Any]]:
        """Return the files by name: those of the wheel, and those that the environment names."""
        if not self.files:
            with _LOCK:
                if not self.files:
                    files = msgspec.json.decode(self.document().services, type=list[dict[str, Any]])
                    self.files = {file["name"]: file for file in files}
                    _from_environment()
        return self.files


_BOOK = _Book()

Load = Callable[..., tuple[str, ...]]
_LOADERS: list[Load] = []


def loaded_by(load: Load) -> Load:
    """Have the files that the environment and packages name read by this function; `service_file` defines it."""
    _LOADERS[:] = [load]
    return load


def _from_environment() -> None:
    """Load the files that AMENDS_SERVICES names. A wrong one is reported and left out: reading a failure must not fail."""
    paths = [each for each in environ.get(ENVIRONMENT, "").split(pathsep) if each]
    if not paths:
        return
    for path in paths:
        try:
            _LOADERS[0](path)
        except (OSError, ValueError) as error:
            _LOGGER.warning("%s names %s, which is not loaded: %s", ENVIRONMENT, path, error)


def load_installed() -> tuple[str, ...]:
    """
    Load the service files that installed packages offer, and return the names of the services.

    A package offers them with an entry point of the group `amends.services`, whose object is a path, a mapping, or a function
    that returns one. Looking for them takes longer than everything else that is loaded, so it is done when this function is
    called, and when a name is asked for that no other file has.

    >>> load_installed()
    ()
    """
    from importlib.metadata import entry_points

    loaded: list[str] = []
    for point in entry_points(group=GROUP):
        try:
            source = point.load()
            loaded += _LOADERS[0](source() if callable(source) else source, replace_loaded=False)
        except Exception as error:  # noqa: BLE001 - a package of others may raise anything
            _LOGGER.warning("the service files of %s are not loaded: %s", point.value, type(error).__name__)
    return tuple(loaded)


def add(file: Mapping[str, Any], *, replace_loaded: bool = True) -> str:
    """Add a checked file, or replace the one of its name; with `replace_loaded=False` only a shipped one."""
    with _LOCK:
        files = dict(_BOOK.open())
        name: str = file["name"]
        if not replace_loaded and files.get(name, {}).get("loaded"):
            return name
        files[name] = {**file, "loaded": True}
        _BOOK.files = files
        _BOOK.names, _BOOK.hosts, _BOOK.index = {}, None, None
        vendor_of_origin.cache_clear()
        exception_rows.cache_clear()
        _find.cache_clear()
    return name


def file_of(name: str) -> Mapping[str, Any]:
    """
    Return the file of a service as plain values, as it is written in TOML or JSON.

    >>> file_of("stripe")["is"]["hosts"]
    ['api.stripe.com']

    Raises:
        LookupError: there is no such service.

    """
    return _BOOK.open()[check(name)]


def names() -> tuple[str, ...]:
    """
    Return the names of all services, with those that were loaded.

    >>> "stripe" in names()
    True
    """
    return tuple(_BOOK.open())


def is_service(name: str | None) -> bool:
    """
    Return whether a name stands for one service, whose answers are believed if the user or the host names it.

    >>> is_service("stripe"), is_service("graphql"), is_service(None)
    (True, False, False)
    """
    if name is None:
        return False
    file = _BOOK.open().get(name)
    return file is not None and file.get("kind") != "format"


def check(name: str) -> str:
    """
    Return the name of a service, for its name or an alias.

    Raises:
        LookupError: if there is none; the message lists the names.

    """
    found = find(name)
    if found is None:
        load_installed()
        found = find(name)
    if found is None:
        wrong: object = name
        near = nearest(wrong, names()) if isinstance(wrong, str) and 0 < len(wrong) < 100 else None
        rest = f"use {near}; " if near else ""
        raise LookupError(f"no vendor {shown(name)}; {rest}there are {', '.join(names())}")
    return found


def find(name: object) -> str | None:
    """Return the name of a service, for its name or an alias; None if there is none."""
    return _find(name.lower()) if isinstance(name, str) and len(name) <= _LONGEST_NAME else None


_LONGEST_NAME = 64


@lru_cache(maxsize=1024)
def _find(name: str) -> str | None:
    if not _BOOK.names:
        _BOOK.names = {
            each: file["name"]
            for file in _BOOK.open().values()
            for each in (*file.get("also", ()), file["name"])
        }
    return _BOOK.names.get(name)


def vendor(name: str) -> Vendor:
    """
    Return the service with this name or alias.

    >>> vendor("openai").words["insufficient_quota"].code
    'QUOTA_EXCEEDED'

    Raises:
        LookupError: if there is none; the message lists the names.

    """
    return index().vendors[check(name)]


def index() -> Index:
    """Return the index. The first call loads all files."""
    made = _BOOK.index
    if made is None:
        with _LOCK:
            made = _BOOK.index = _BOOK.index or Index(_BOOK.open())
    return made


def _hosts() -> _Hosts:
    made = _BOOK.hosts
    if made is None:
        pairs = [
            (host, name)
            for name, file in _BOOK.open().items()
            for host in file.get("is", {}).get("hosts", ())
        ]
        made = _BOOK.hosts = _Hosts(
            {host: name for host, name in pairs if "*" not in host},
            tuple((host, name) for host, name in pairs if "*" in host),
            frozenset(name for _, name in pairs),
        )
    return made


def has_hosts(name: str) -> bool:
    """
    Return whether a service is known by hosts of its own.

    >>> has_hosts("stripe"), has_hosts("graphql")
    (True, False)
    """
    return name in _hosts().owners


def vendor_of_host(host: str) -> str | None:
    """
    Return the service whose host this is, or None.

    Answers are recognised by shape and headers, because gateways and compatible servers use other names. A host says which
    answers of a client are looked into, which routes only compute, and which header carries an idempotency key.

    >>> vendor_of_host("acme.openai.azure.com"), vendor_of_host("api.example")
    ('azure-openai', None)
    """
    known = _hosts()
    found = known.exact.get(host)
    if found is not None:
        return found
    for form, name in known.forms:
        # `*` is within one label: `sqs.*.amazonaws.com` is no bucket `sqs.acme.s3.amazonaws.com`.
        if matches(form, host) and form.count(".") == host.count("."):
            return name
    while "." in host:
        host = host.partition(".")[2]
        found = known.exact.get(f".{host}")
        if found is not None:
            return found
    return None


def hosts(origins: Mapping[str, str]) -> None:
    """
    Say which services the application's own addresses are: self-hosted servers and gateways of one service.

    Args:
        origins: address (scheme, host and port) → service. What is said for an address before is replaced.

    Raises:
        LookupError: for an unknown service.
        ValueError: for an address without a scheme and a host.

    >>> hosts({"https://llm.corp.example": "vllm"})
    >>> vendor_of_origin("https://llm.corp.example")
    'vllm'

    """
    checked = {}
    for address, name in origins.items():
        parts = urlsplit(address)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path not in {"", "/"}:
            raise ValueError(f"{shown(address)} is no origin: write https://llm.corp")
        checked[f"{parts.scheme}://{parts.netloc.lower()}"] = check(name)
    with _LOCK:
        _BOOK.origins = {**_BOOK.origins, **checked}
        vendor_of_origin.cache_clear()


@lru_cache(maxsize=1024)
def vendor_of_origin(origin: str) -> str | None:
    """
    Return the service of an origin such as `https://api.stripe.com`, or None.

    Only TLS on its default port counts, and what the application said with `hosts`.
    """
    said = _BOOK.origins.get(origin.lower())
    if said is not None:
        return said
    try:
        parts = urlsplit(origin)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme != "https" or port not in {None, 443} or host is None:
        return None
    return vendor_of_host(host)


@lru_cache(maxsize=1)
def reader_tables() -> dict[str, Any]:
    """
    Return what holds for every sender: the meanings of members and headers, and the forms of code words (data/reader.toml).

    >>> reader_tables()["words"]["28"]
    '__type'
    """
    return msgspec.json.decode(_BOOK.document().reader, type=dict[str, Any])


@lru_cache(maxsize=1)
def number_tables() -> dict[str, dict[str, Meaning]]:
    """
    Return protocol → number or name → meaning (data/libraries.toml).

    >>> number_tables()["sqlstate"]["40001"[:2]].name
    'aborted'
    """
    tables = msgspec.json.decode(_BOOK.document().numbers, type=dict[str, dict[str, str]])
    return {
        name: {word: MEANINGS[meaning] for meaning, words in table.items() for word in words.split()}
        for name, table in tables.items()
    }


@lru_cache(maxsize=1)
def exception_rows() -> tuple[Mapping[str, Any], ...]:
    """
    Return the tables of exception classes: modules, and meaning → names of classes.

    >>> exception_rows()[0]["modules"]
    ['builtins']
    """
    shipped = msgspec.json.decode(_BOOK.document().exceptions, type=list[dict[str, Any]])
    files = _BOOK.open().values() if _BOOK.files or environ.get(ENVIRONMENT) else ()
    loaded = (row for file in files if file.get("loaded") for row in file.get("exceptions", ()))
    return (*shipped, *loaded)
