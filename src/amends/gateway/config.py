"""The configuration of a gateway as values. `config_file` reads them from TOML."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from amends.core.policy import Policy
from amends.recovery.policies import TOOL

__all__ = [
    "DEFAULT_LISTEN",
    "PAGE",
    "CallerConfig",
    "GatewayConfig",
    "TlsConfig",
    "UpstreamConfig",
    "check_url",
    "single",
]

DEFAULT_LISTEN = "127.0.0.1:8700"
PAGE = "/_amends"
"""The path of the gateway's own pages. No upstream has it."""


class UpstreamConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One upstream."""

    name: str
    kind: str = "http"
    """http · mcp · a2a · stdio · route"""
    url: str = ""
    """The address that the rest of a request's path is added to. For MCP and A2A it is the address of the endpoint."""
    command: tuple[str, ...] = ()
    """For stdio: the MCP server to run."""
    prefix: str = ""
    """The path of the upstream at the gateway; empty: all paths."""
    own: bool = False
    """The service is part of our own system."""
    vendor: str | None = None
    keyed: bool | None = None
    """Whether the service honours idempotency keys."""
    translate: str = ""
    """The error format that failures are translated to: problem or adcp; empty: they are passed on unchanged."""
    policy: Policy = TOOL
    connect_timeout: float = 10.0
    timeout: float = 300.0
    """Seconds without a byte from the upstream, or of a request's body from the caller."""
    concurrency: int = 1000
    """Calls at once; further calls are refused with a wait, unless their credential and route has few of these."""
    repeat_computations: bool = True
    """Whether calls of models, which only compute, are repeated although they may have been computed."""
    patience: float = 5.0
    """Seconds for which a failure is held back for repeats, if neither the caller nor the service names a time."""
    max_body: int = 1_000_000_000
    """Bytes of a request's body."""
    model: dict[str, str] = {}
    """The model that the caller names → its name at this upstream."""
    credentials: dict[str, str] = {}
    """Header → the environment variable with its value: sent instead of the caller's own credentials."""
    health: str = ""
    """A path that answers below 400 while the upstream works; empty: only calls show it."""
    to: tuple[str, ...] = ()
    """For a route: the names of its upstreams, the preferred first."""
    session: str = ""
    """For a route: the header whose value keeps calls at the same upstream."""
    too_long: str = ""
    """For a route: the name of the upstream for requests that are too long for another one."""


class CallerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Who may call."""

    name: str
    token_env: str
    """The environment variable with its token."""
    rate: float | None = None
    """Calls per second; None: any number."""
    concurrency: int = 1000
    """Calls at once."""

    @property
    def burst(self) -> float:
        """Calls that may come at once after a pause."""
        return 0.0 if self.rate is None else max(1.0, self.rate)


class TlsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The certificate of the gateway."""

    cert: str
    key: str


class GatewayConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway: its address, its upstreams and where it records."""

    upstreams: tuple[UpstreamConfig, ...]
    listen: str = DEFAULT_LISTEN
    record: str = ""
    """The recorder's store; empty: `amends.recorder.default_url()`."""
    token: str = ""
    """Needed to view the page, and for its actions; empty: a one-time address on the terminal."""
    hosts: tuple[str, ...] = ()
    """Further names that callers may give as `Host` while the gateway listens on loopback, and the hosts of pages that may call it."""
    callers: tuple[CallerConfig, ...] = ()
    """Who may call; none: everybody."""
    tls: TlsConfig | None = None
    """None: HTTP without TLS."""
    grace: float = 30.0
    """Seconds that calls in flight have to end when the gateway stops."""


def single(target: str, *, kind: str = "http", command: tuple[str, ...] = ()) -> GatewayConfig:
    """
    Return the configuration of a gateway with one upstream.

    >>> single("https://api.example.com").upstreams[0].name
    'api.example.com'

    Raises:
        ValueError: `target` is no URL that an upstream can have.

    """
    if command:
        from pathlib import PurePath

        name = PurePath(command[0]).name
        upstream = UpstreamConfig(name=name, kind="stdio", command=command, prefix="/mcp")
        return GatewayConfig(upstreams=(upstream,))
    wrong = check_url(target)
    if wrong:
        raise ValueError(f"{target!r} {wrong}")
    prefix = "/mcp" if kind == "mcp" else ""
    upstream = UpstreamConfig(name=urlsplit(target).hostname or "", kind=kind, url=target, prefix=prefix)
    return GatewayConfig(upstreams=(upstream,))


def check_url(url: str) -> str:
    """Return what is wrong with the address of an upstream, or an empty string."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is not a URL: write https://api.example.com"
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        return "is not the URL of an upstream: write https://api.example.com"
    if parts.username is not None or parts.password is not None:
        return "has a password in it: let the caller send its credentials"
    if parts.query or parts.fragment or not url.isascii() or any(each.isspace() for each in url):
        return "has a query, a fragment or characters that a URL cannot have"
    return ""
