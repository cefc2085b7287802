"""
Store URLs: `memory:`, `memory:name`, `sqlite:///relative.db`, `sqlite:////absolute.db`, `nats://host:port/name`,
`postgres://user@host:port/database` (or `postgresql://`).

Options follow a question mark. An unknown option is an error: a misspelt `synchronus=full` must not weaken durability.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlencode

__all__ = ["Address", "parse"]

_OPTIONS = {
    "memory": frozenset[str](),
    "sqlite": frozenset({"synchronous", "busy_timeout"}),
    "nats": frozenset({"replicas", "timeout", "dedupe_window", "storage"}),
    "postgres": frozenset({"pooled", "lock_timeout"}),
}
_POSTGRES = frozenset({"postgres", "postgresql"})
"""The two schemes that Postgres's own library takes. All options but our two are given to it."""
_EXAMPLES = "memory:, sqlite:///path/to/file.db, nats://host:4222/name or postgres://user@host/database"
_LONGEST = 1e9
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
        if self.scheme == "postgres":
            hosts, _, name = self.path.partition("?")[0].partition("://")[2].partition("/")
            return f"postgres://{hosts.rpartition('@')[2]}/{name}"
        hosts = ",".join(host.rpartition("@")[2] for host in self.hosts)
        return f"nats://{hosts}/{self.path}"

    def seconds(self, option: str, default: float, *, zero: bool = False) -> float:
        """
        The value of an option that is a time: longer than 0 seconds, unless `zero` is allowed.

        Raises:
            ValueError: it is not a number of seconds.
        """
        given = self.options.get(option)
        if given is None:
            return default
        try:
            seconds = float(given)
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds < _LONGEST or (seconds == 0 and not zero):
            least = "0 or more" if zero else "more than 0"
            raise ValueError(f"{option} must be a number of seconds, {least}, not {given!r}")
        return seconds


def parse(url: str) -> Address:
    """
    Parse a store URL.

    Raises:
        TypeError: `url` is not a string.
        ValueError: `url` is not a store URL, or has an option that the backend does not support.
    """
    if not isinstance(url, str):
        raise TypeError(f"a store URL must be a string, not {type(url).__name__}: write {_EXAMPLES}")
    scheme, colon, rest = url.partition(":")
    if scheme in _POSTGRES:
        return _postgres(url)
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


def _postgres(url: str) -> Address:
    base, _, query = url.partition("?")
    if not base.partition("://")[2]:
        raise ValueError(f"a Postgres store needs postgres://user@host:port/database, not {base!r}")
    ours, theirs = {}, []
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in _OPTIONS["postgres"]:
            ours[name] = value
        else:
            theirs.append((name, value))
    return Address("postgres", f"{base}?{urlencode(theirs)}" if theirs else base, options=ours)
