"""
Store URLs: `memory:`, `memory:name`, `sqlite:///relative.db`, `sqlite:////absolute.db`, `nats://host:port/name`.

Options follow a question mark. An unknown option is an error: a misspelt `synchronus=full` must not weaken durability.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

__all__ = ["Address", "parse"]

_OPTIONS = {
    "memory": frozenset[str](),
    "sqlite": frozenset({"synchronous", "busy_timeout"}),
    "nats": frozenset({"replicas", "timeout", "dedupe_window", "storage"}),
}
_EXAMPLES = "memory:, sqlite:///path/to/file.db or nats://host:4222/name"
_STORE_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed store URL."""

    scheme: str
    path: str
    hosts: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def display_url(self) -> str:
        """The URL without user and password, for messages and logs."""
        if self.scheme == "memory":
            return f"memory:{self.path}"
        if self.scheme == "sqlite":
            return f"sqlite:///{self.path}"
        hosts = ",".join(host.rpartition("@")[2] for host in self.hosts)
        return f"nats://{hosts}/{self.path}"


def parse(url: str) -> Address:
    """
    Parse a store URL.

    Raises:
        ValueError: `url` is not a store URL, or has an option that the backend does not support.
        TypeError: `url` is not text.

    """
    if not isinstance(url, str):
        raise TypeError(f"url is a store URL, not {type(url).__name__}: write {_EXAMPLES}")
    scheme, colon, rest = url.partition(":")
    known = _OPTIONS.get(scheme)
    if not colon or known is None:
        raise ValueError(f"{url!r} is not a store URL: write {_EXAMPLES}")
    rest, _, query = rest.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    for option in options:
        if option not in known:
            takes = ", ".join(sorted(known)) or "none"
            raise ValueError(f"{scheme}: stores have no option {option!r}; they take {takes}")
    if scheme == "memory":
        return Address(scheme, rest, options=options)
    if not rest.startswith("//"):
        raise ValueError(f"{url!r} is not a store URL: write {_EXAMPLES}")
    if scheme == "sqlite":
        path = unquote(rest.removeprefix("///"))
        if not rest.startswith("///") or not path:
            raise ValueError("a SQLite store needs a path: sqlite:///relative.db or sqlite:////absolute.db")
        return Address(scheme, path, options=options)
    hosts, _, name = rest.removeprefix("//").partition("/")
    name = name or "amends"
    if not hosts or not _STORE_NAME.fullmatch(name):
        raise ValueError(
            "a NATS store needs nats://host:port/name; the name has at most 32 characters of A-Z a-z 0-9 _ -"
        )
    return Address(scheme, name, hosts=tuple(hosts.split(",")), options=options)
