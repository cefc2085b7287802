"""
Read and check gateway.toml. Everything wrong is found at once, each with its line and column.

    [upstream.shop]
    url = "https://api.shop.example"
    prefix = "/shop"
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from amends.gateway.config import PAGE, CallerConfig, GatewayConfig, TlsConfig, UpstreamConfig, check_url
from amends.recovery.policies import TOOL

__all__ = ["ConfigError", "Problem", "check_member", "read_config"]


class Problem(NamedTuple):
    """One mistake in a configuration."""

    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message}"


class ConfigError(ValueError):
    """The configuration has mistakes."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


def read_config(text: str) -> GatewayConfig:
    r"""
    Return the configuration in a TOML document.

    >>> read_config('[upstream.shop]\nurl = "https://shop.example"').upstreams[0].prefix
    '/shop'
    >>> read_config('[upstream.shop]\nurl = "shop.example"')
    Traceback (most recent call last):
    amends.gateway.config_file.ConfigError: line 2, column 7: url is not the URL of an upstream: write https://api.example.com

    Raises:
        ConfigError: the document has mistakes; `problems` has them all.

    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([_syntax_problem(error, text)]) from None
    except RecursionError:
        raise ConfigError([Problem(1, 1, "the document is nested too deep")]) from None
    return _Reader(text).read(document)


def _syntax_problem(error: Exception, text: str) -> Problem:
    message = str(error)
    found = re.search(r" \(at line (\d+), column (\d+)\)", message)
    if found:
        return Problem(int(found[1]), int(found[2]), message.replace(found[0], ""))
    lines = text.splitlines() or [""]
    return Problem(len(lines), len(lines[-1]) + 1, message.replace(" (at end of document)", ""))


Check = Callable[[object], str]
"""Returns what is wrong with a value, or an empty string."""


def _text(value: object) -> str:
    return "" if isinstance(value, str) and value else "is a text"


def _bool(value: object) -> str:
    return "" if isinstance(value, bool) else "is true or false"


def _count(value: object) -> str:
    right = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    return "" if right else "is a number of at least 1"


def _seconds(value: object) -> str:
    right = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 10**7
    return "" if right else "is a number of seconds, more than 0"


def _url(value: object) -> str:
    return check_url(value) if isinstance(value, str) else "is a text: a URL"


def _command(value: object) -> str:
    right = isinstance(value, list) and value and all(isinstance(each, str) and each for each in value)
    return "" if right else 'is a list of texts: ["uvx", "some-mcp-server"]'


def _prefix(value: object) -> str:
    if not isinstance(value, str) or (value and not value.startswith("/")):
        return 'is a path that begins with a slash: "/shop"'
    if value == PAGE or value.startswith(f"{PAGE}/"):
        return f"is the path of the gateway's own pages, {PAGE}"
    if not re.fullmatch(r"(/[A-Za-z0-9._~!$&'()*+,;=:@-]+)*/?", value) or ".." in value.split("/"):
        return "has characters that a path cannot have"
    return ""


def _vendor(value: object) -> str:
    from amends.vendors.registry import names as service_names

    if value in service_names():
        return ""
    near = get_close_matches(value, service_names(), 1) if isinstance(value, str) else []
    return (
        f"is unknown: did you mean {near[0]!r}?"
        if near
        else f"is unknown: one of {', '.join(service_names())}"
    )


def _translate(value: object) -> str:
    return "" if value in ("problem", "adcp") else 'is "problem" or "adcp"'


def _names(value: object) -> str:
    right = isinstance(value, dict) and all(isinstance(each, str) and each for each in value.values())
    return "" if right else 'is a table of names: { "gpt-5" = "gpt-5-azure" }'


_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")


def _variables(value: object) -> str:
    right = isinstance(value, dict) and all(
        _TOKEN.fullmatch(name) and isinstance(each, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", each)
        for name, each in value.items()
    )
    if not right:
        return 'is a table of headers and environment variables: { api-key = "AZURE_KEY" }'
    missing = [each for each in value.values() if not os.environ.get(each)]  # type: ignore[attr-defined]
    return f"names {', '.join(missing)}, which the environment does not have" if missing else ""


def _path(value: object) -> str:
    right = isinstance(value, str) and value.startswith("/") and value.isascii() and " " not in value
    return "" if right else 'is a path of the upstream: "/healthz"'


def _header(value: object) -> str:
    return (
        "" if isinstance(value, str) and _TOKEN.fullmatch(value) else 'is the name of a header: "x-session"'
    )


def _targets(value: object) -> str:
    if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
        return 'is a list of upstreams: ["openai", "azure"]'
    return "names an upstream twice" if len(set(value)) < len(value) else ""


def _token_env(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        return 'is an environment variable: "TEAM_A_TOKEN"'
    token = os.environ.get(value, "").strip()
    if not token:
        return f"names {value}, which the environment does not have"
    return (
        "" if len(token) >= _SHORTEST else f"names {value}, whose token has fewer than {_SHORTEST} characters"
    )


def _rate(value: object) -> str:
    right = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 10**6
    return "" if right else "is a number of calls per second, more than 0"


def _file(value: object) -> str:
    if not isinstance(value, str) or not value:
        return "is the name of a file"
    return "" if Path(value).is_file() else f"names {value}, which is no file"


def _listen(value: object) -> str:
    found = (
        re.fullmatch(r"(?:[^:\s]+|\[[0-9a-fA-F:]+\]):(\d{1,5})", value) if isinstance(value, str) else None
    )
    return "" if found and int(found[1]) < 65536 else 'is an address: "127.0.0.1:8700"'


def _page_token(value: object) -> str:
    if not isinstance(value, str) or not value:
        return "is a text"
    return "" if len(value) >= _SHORTEST else f"has fewer than {_SHORTEST} characters"


_SHORTEST = 20
"""Characters of a token, as `amends.page.access` has it, which the check of a file need not import."""


def _hosts(value: object) -> str:
    right = isinstance(value, list) and all(
        isinstance(each, str)
        and re.fullmatch(
            r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252}[A-Za-z0-9_])?|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*", each
        )
        for each in value
    )
    return "" if right else 'is a list of host names without scheme and port: ["gateway.example"]'


def _store(value: object) -> str:
    from amends.stores.address import parse

    try:
        parse(value if isinstance(value, str) else "")
    except ValueError:
        return 'is the URL of a store: "sqlite:///failures.db"'
    return ""


_TOP: dict[str, Check] = {
    "listen": _listen,
    "record": _store,
    "token": _page_token,
    "grace": _seconds,
    "hosts": _hosts,
}
_ADDRESSES: dict[str, Check] = {"url": _url, "mcp": _url, "a2a": _url, "command": _command}
_UPSTREAM: dict[str, Check] = {
    **_ADDRESSES,
    "prefix": _prefix,
    "own": _bool,
    "vendor": _vendor,
    "keyed": _bool,
    "translate": _translate,
    "connect_timeout": _seconds,
    "timeout": _seconds,
    "concurrency": _count,
    "max_body": _count,
    "model": _names,
    "credentials": _variables,
    "health": _path,
}
_ROUTE: dict[str, Check] = {
    "to": _targets,
    "prefix": _prefix,
    "session": _header,
    "too_long": _text,
    "own": _bool,
    "translate": _translate,
    "concurrency": _count,
    "max_body": _count,
}
_POLICY: dict[str, Check] = {"attempts": _count, "max_wait": _seconds, "deadline": _seconds}
_CALLER: dict[str, Check] = {"token_env": _token_env, "rate": _rate, "concurrency": _count}
_HELD_BACK: dict[str, Check] = {"patience": _seconds, "repeat_computations": _bool}
"""Members of `policy` that only the gateway has."""
_KINDS = {"url": "http", "mcp": "mcp", "a2a": "a2a", "command": "stdio"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class _Reader:
    """Checks one document, and collects its mistakes."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines() or [""]
        self._problems: list[Problem] = []

    def read(self, document: dict[str, object]) -> GatewayConfig:
        """Return the configuration, or raise ConfigError."""
        tables, routes = document.pop("upstream", {}), document.pop("route", {})
        callers = self._callers(document.pop("caller", {}))
        tls = self._tls(document.pop("tls", None))
        top = self._checked((), document, _TOP)
        upstreams: list[UpstreamConfig] = []
        if not isinstance(tables, dict) or not all(isinstance(each, dict) for each in tables.values()):
            self._wrong(("upstream",), "upstream", "an upstream is a table: [upstream.shop]")
        else:
            upstreams = [self._upstream(name, table) for name, table in tables.items()]
            if not tables:
                self._problems.append(
                    Problem(1, 1, "no upstream is configured: add [upstream.NAME] with a url")
                )
        prefixes: dict[str, str] = {}
        upstreams += self._routes(routes, upstreams)
        for each in upstreams:
            other = prefixes.setdefault(each.prefix, each.name)
            if other != each.name:
                table = "route" if each.kind == "route" else "upstream"
                self._wrong((table, each.name), "prefix", f"prefix is the same as that of {other}")
        if self._problems:
            raise ConfigError(sorted(self._problems))
        top["hosts"] = tuple(top.get("hosts", ()))
        return GatewayConfig(upstreams=tuple(upstreams), callers=callers, tls=tls, **top)

    def _callers(self, tables: object) -> tuple[CallerConfig, ...]:
        """Return who may call."""
        if not isinstance(tables, dict) or not all(isinstance(each, dict) for each in tables.values()):
            self._wrong(("caller",), "caller", "a caller is a table: [caller.team-a]")
            return ()
        found: list[CallerConfig] = []
        tokens: dict[str, str] = {}
        for name, table in tables.items():
            path = ("caller", name)
            if not _NAME.fullmatch(name):
                self._wrong(
                    path, "", "the name of a caller has letters, digits, dots, dashes and underscores"
                )
            values = self._checked(path, table, _CALLER)
            variable = values.get("token_env")
            if variable is None:
                if "token_env" not in table:
                    self._wrong(path, "", 'a caller has a token: token_env = "TEAM_A_TOKEN"')
                continue
            other = tokens.setdefault(os.environ.get(variable, "").strip(), name)
            if other != name:
                self._wrong(path, "token_env", f"token_env has the token of {other}")
            found.append(CallerConfig(name=name, **values))
        return tuple(found)

    def _tls(self, table: object) -> TlsConfig | None:
        """Return the certificate."""
        if table is None:
            return None
        if not isinstance(table, dict):
            self._wrong((), "tls", 'tls is a table: { cert = "gateway.pem", key = "gateway.key" }')
            return None
        values = self._checked(("tls",), table, {"cert": _file, "key": _file})
        missing = [name for name in ("cert", "key") if name not in table]
        if missing:
            self._wrong((), "tls", f"tls has no {' and no '.join(missing)}")
        return TlsConfig(**values) if len(values) == 2 else None

    def _upstream(self, name: str, table: dict[str, object]) -> UpstreamConfig:
        path = ("upstream", name)
        if not _NAME.fullmatch(name):
            self._wrong(path, "", "the name of an upstream has letters, digits, dots, dashes and underscores")
        given_policy = table.pop("policy", {})
        values = self._checked(path, table, _UPSTREAM)
        addresses = [each for each in _ADDRESSES if each in table]
        if len(addresses) != 1:
            self._wrong(path, "", "an upstream has exactly one of url, mcp, a2a and command")
            return UpstreamConfig(name=name)
        address = values.pop(addresses[0], "")
        values["command" if addresses[0] == "command" else "url"] = (
            tuple(address) if addresses[0] == "command" else address
        )
        if values.get("translate") == "problem" and addresses[0] != "url":
            self._wrong(path, "translate", 'translate is "adcp" here: a problem document is for url')
        values["prefix"] = values.get("prefix", f"/{name}").rstrip("/")
        return UpstreamConfig(
            name=name, kind=_KINDS[addresses[0]], **self._policy(path, given_policy), **values
        )

    def _routes(self, tables: object, upstreams: list[UpstreamConfig]) -> list[UpstreamConfig]:
        """Return the routes."""
        if not isinstance(tables, dict) or not all(isinstance(each, dict) for each in tables.values()):
            self._wrong(("route",), "route", "a route is a table: [route.chat]")
            return []
        kinds = {each.name: each.kind for each in upstreams}
        found = []
        for name, table in tables.items():
            path = ("route", name)
            if not _NAME.fullmatch(name) or name in kinds:
                self._wrong(
                    path,
                    "",
                    "the name of a route has letters, digits, dots, dashes and underscores, and no upstream has it",
                )
            policy = self._policy(path, table.pop("policy", {}))
            values = self._checked(path, table, _ROUTE)
            to = tuple(values.pop("to", ()))
            unknown = [each for each in to if kinds.get(each) != "http"]
            if unknown or "to" not in table:
                self._wrong(
                    path,
                    "to",
                    f"to names upstreams with a url{': not ' + ', '.join(unknown) if unknown else ''}",
                )
            if values.get("too_long", to[0] if to else "") not in to:
                self._wrong(path, "too_long", "too_long is one of the upstreams in to")
            values["prefix"] = values.get("prefix", f"/{name}").rstrip("/")
            found.append(UpstreamConfig(name=name, kind="route", to=to, **policy, **values))
        return found

    def _policy(self, path: tuple[str, ...], given: object) -> dict[str, Any]:
        """Return the policy, and the other members of its table."""
        if not isinstance(given, dict):
            self._wrong(path, "policy", "policy is a table: { attempts = 3, max_wait = 60 }")
            return {}
        values = self._checked((*path, "policy"), given, {**_POLICY, **_HELD_BACK})
        others = {name: values.pop(name) for name in _HELD_BACK if name in values}
        if TOOL.ends_within is not None and values.get("max_wait", 0) >= TOOL.ends_within:
            values["ends_within"] = None  # a user who allows longer waits allows later ends
        return {"policy": replace(TOOL, **values), **others}

    def _checked(
        self, path: tuple[str, ...], table: dict[str, object], checks: dict[str, Check]
    ) -> dict[str, Any]:
        """Return the valid members of a table, and note what is wrong with the others."""
        tables = ("upstream", "route", "caller", "tls") if not path else ()
        known = (*checks, *(("policy",) if checks is _UPSTREAM or checks is _ROUTE else ()), *tables)
        values = {}
        for key, value in table.items():
            check = checks.get(key)
            if check is None:
                near = get_close_matches(key, known, 1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
                self._wrong(path, key, f"{key} is unknown: {hint}", at_key=True)
                continue
            wrong = check(value)
            if wrong:
                self._wrong(path, key, f"{key} {wrong}")
            else:
                values[key] = value
        return values

    def _wrong(self, path: tuple[str, ...], key: str, message: str, *, at_key: bool = False) -> None:
        line, column = _position(self._lines, path, key, at_key=at_key)
        self._problems.append(Problem(line, column, message))


_HEADER = re.compile(r"\s*\[+\s*(.+?)\s*\]+\s*(?:#.*)?")


def _position(lines: list[str], path: tuple[str, ...], key: str, *, at_key: bool) -> tuple[int, int]:
    """Return the line and column of a key's value, else of its table, else of the beginning."""
    pattern = re.compile(rf"""(?:^|[{{,.])\s*["']?({re.escape(key)})["']?\s*(?:=|\.)\s*""") if key else None
    table: tuple[str, ...] = ()
    fallback = (1, 1)
    for number, line in enumerate(lines, 1):
        header = _HEADER.fullmatch(line)
        if header:
            table = tuple(part.strip().strip("\"'") for part in header[1].split("."))
            if table == path[: len(table)] and len(table) > 1:
                fallback = (number, line.index("[") + 1)
            if table == path and not key:
                return fallback
            continue
        if table == path[: len(table)] and len(path) - len(table) <= 1 and pattern is not None:
            # A member of the table itself, or of an inline table in it.
            if len(table) < len(path) and not re.match(rf"""\s*["']?{re.escape(path[-1])}["']?\s*=""", line):
                continue
            found = pattern.search(line)
            if found:
                return number, (found.start(1) if at_key else found.end()) + 1
    return fallback


def check_member(name: str, value: str) -> str:
    """Return what is wrong with the value of a member outside the tables of upstreams, or an empty string."""
    return _TOP[name](value)
