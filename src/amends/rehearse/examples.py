"""
What services really send: the examples of the service files, compiled into `examples.json`.

The shipped files are in `data/services`, and those of the fakes that stand for no real service (`orders`, `mcp`, `a2a`) in
`data/rehearse`. Service files that an application loads (`amends.vendors.service_file.load`) bring their examples along.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from amends.rehearse.kinds import Reaction, kind_of, reaction_of

__all__ = ["Example", "compiled_examples", "examples_of", "services_with_examples", "success_of"]

_SUCCESS = "success"
_FAILED = 500
_WRAPPED = frozenset({"mcp", "a2a"})
"""Fakes whose failures are always inside successful answers of the transport, so that this is no kind of its own."""


class Example(msgspec.Struct, frozen=True, omit_defaults=True):
    """One answer of a service, and what a program should do about it."""

    id: str
    """The service, the meaning, the code word and, where several are the same, a number."""
    service: str
    kind: str
    """A kind of failure, or `success`."""
    status: int = 200
    headers: dict[str, str] = {}
    body: Any = None
    meaning: str | None = None
    code: str | None = None
    wait: float | None = None
    field: str | None = None
    reaction: Reaction | None = None
    source: str = ""
    """Where the answer is documented."""
    because: str = ""
    """The rule that demands the reaction."""

    def content(self) -> bytes:
        """Return the body as it is sent."""
        if self.body is None:
            return b""
        return self.body.encode() if isinstance(self.body, str) else msgspec.json.encode(self.body)


def read_file(file: Mapping[str, Any]) -> Iterator[Example]:
    """Yield the examples of a service file."""
    name, seen = str(file["name"]), dict[str, int]()
    for row in file.get("example", ()):
        expected, status = row["is"], row.get("status", 200)
        if expected == _SUCCESS:
            example_id, kind, facts = f"{name}/success", _SUCCESS, dict[str, Any]()
        else:
            meaning = expected["meaning"]
            body = row.get("body")
            event = isinstance(body, str) and body.lstrip().startswith(("event:", "data:"))
            found = kind_of(meaning, _FAILED if name in _WRAPPED else status, event=event)
            if found is None or expected.get("code") == "PARTIAL_FAILURE":
                continue
            kind = found
            demanded = reaction_of(kind, meaning)
            facts = {
                "meaning": meaning,
                "code": expected.get("code"),
                "wait": expected.get("wait"),
                "field": expected.get("field"),
                "reaction": Reaction(expected.get("reaction") or demanded.reaction),
                "because": demanded.source,
            }
            example_id = f"{name}/{meaning}" + (f"-{facts['code']}" if facts["code"] else "")
        seen[example_id] = number = seen.get(example_id, 0) + 1
        yield Example(
            id=example_id if number == 1 else f"{example_id}-{number}",
            service=name,
            kind=kind,
            status=status,
            headers=row.get("headers", {}),
            body=row.get("body"),
            source=row.get("source") or file.get("docs") or "",
            **facts,
        )


def compiled_examples(files: Iterable[Mapping[str, Any]]) -> bytes:
    """Return the document of the wheel: a line for each service that has examples."""
    lines = [
        f"{msgspec.json.encode(file['name']).decode()}:{msgspec.json.encode(rows).decode()}"
        for file in files
        if (rows := list(read_file(file)))
    ]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


@lru_cache(1)
def _shipped() -> Mapping[str, Sequence[Example]]:
    data = (Path(__file__).parent / "examples.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, tuple[Example, ...]])


def examples_of(service: str) -> tuple[Example, ...]:
    """
    Return the failures that a service sends, by its file and by files that were loaded; for others, those of `orders`.

    >>> sorted({each.kind for each in examples_of("openai")})[:3]
    ['content-refused', 'context-too-long', 'error-event']
    """
    return tuple(each for each in _all(service) if each.kind != _SUCCESS)


def success_of(service: str) -> Example | None:
    """
    Return an ordinary answer of the service, if its file has one.

    >>> success_of("stripe").status
    200
    """
    return next((each for each in _all(service) if each.kind == _SUCCESS and each.status < 300), None)


def services_with_examples() -> tuple[str, ...]:
    """Return the names of the shipped services that have examples, and of the fakes."""
    return tuple(_shipped())


def _all(service: str) -> tuple[Example, ...]:
    from amends.vendors.registry import file_of

    shipped = tuple(_shipped().get(service, ()))
    try:
        file = file_of(service)
    except LookupError:
        # A service of the user's own fails as the specifications of HTTP say.
        return shipped or tuple(_shipped()["orders"])
    loaded = tuple(read_file(file)) if file.get("example") else ()
    return loaded or shipped
