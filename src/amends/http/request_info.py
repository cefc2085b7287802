"""The parts of a request that its error response depends on: the form that it accepts, and whether its host may be named."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import parse_qsl

import msgspec

from amends.proof import Claim, Proof, rests_on

__all__ = [
    "CONTENT_TYPES",
    "HTML",
    "JSON",
    "MARKDOWN",
    "RequestInfo",
    "finite_seconds",
    "is_trusted",
    "preferred_form",
]


_VALUES = 32
_QUERY = 8192
_SHORTEST, _LONGEST = 3, 256
"""Values of a request that its answer may repeat: how many, in how long a query, and their lengths."""


class RequestInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a request that an error response depends on."""

    method: str = "GET"
    path: str = "/"
    """Without the root that the application is mounted at, and without the query."""
    query: str = ""
    root: str = ""
    scheme: str = "http"
    host: str = ""
    server: str = ""
    """The address that the server is bound to."""
    trusted: bool = False
    """Whether the framework has checked the host against a list of its own."""
    accept: str | None = None
    traceparent: str | None = None
    left: str | None = None
    """The tries and the time that the caller has left (`Amends-Left`)."""
    timeout: str | None = None
    """The seconds that the caller waits (`Request-Timeout`)."""

    @property
    def stated(self) -> str | None:
        """What the caller has left; `Request-Timeout` is its time, if `Amends-Left` names none."""
        seconds = finite_seconds(self.timeout)
        if seconds is None or (self.left is not None and "deadline-ms" in self.left):
            return self.left
        return f"{self.left or ''};deadline-ms={int(seconds * 1000)}"

    def given(self) -> frozenset[str]:
        """
        Return the values of the request's path and query: they may go back in its answer, to the same caller.

        >>> sorted(RequestInfo(path="/hosts/10.0.0.7", query="file=%2Fsrv%2Fa.csv&n=1").given())
        ['/srv/a.csv', '10.0.0.7', 'hosts']

        """
        values = self.path.split("/")[:_VALUES]
        if self.query and len(self.query) <= _QUERY:
            values += [value for _, value in parse_qsl(self.query)[:_VALUES]]
        return frozenset(value for value in values if _SHORTEST <= len(value) <= _LONGEST)

    def base_url(self, configured: str | None, hosts: Iterable[str] | None) -> str | None:
        """
        Return the URL that the application's paths are added to; None if the request's host may not be named.

        `configured` is the application's own, which needs no host of a request; `hosts` is that of `is_trusted`.
        """
        if configured is not None:
            return configured.rstrip("/")
        trusted = is_trusted(self.host, hosts, self.server) or (
            self.trusted and hosts is None and is_trusted(self.host, ("*",))
        )
        return f"{self.scheme}://{self.host}{self.root}" if trusted else None


def finite_seconds(value: str | None) -> float | None:
    """
    Return the seconds of a header, or None for any other value.

    >>> finite_seconds("1.5"), finite_seconds("nan"), finite_seconds("-1"), finite_seconds(None)
    (1.5, None, None, None)
    """
    if value is None or len(value) > 20:
        return None
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if 0 < seconds < 1e8 else None


JSON, HTML, MARKDOWN = "json", "html", "markdown"

CONTENT_TYPES = {
    HTML: "text/html; charset=utf-8",
    MARKDOWN: "text/markdown; charset=utf-8",
    JSON: "application/json",
}

_FORMS = {
    "application/problem+json": JSON,
    "application/json": JSON,
    "text/html": HTML,
    "application/xhtml+xml": HTML,
    "text/markdown": MARKDOWN,
}


def preferred_form(accept: str | None) -> str:
    """
    Return the form to answer in. HTML and Markdown are chosen only if the header names and prefers them.

    >>> preferred_form("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
    'html'
    >>> preferred_form("application/json, text/html;q=0.5"), preferred_form("image/png"), preferred_form(None)
    ('json', 'json', 'json')
    """
    if not accept or ("text/" not in accept and "xhtml" not in accept):
        return JSON
    best: dict[str, float] = {}
    for item in accept[:1000].split(","):
        name, _, parameters = item.strip().lower().partition(";")
        form = _FORMS.get(name.strip())
        if form is not None:
            best[form] = max(_quality(parameters), best.get(form, 0.0))
    # At equal quality JSON wins over HTML, and HTML over Markdown.
    order = (JSON, HTML, MARKDOWN)
    return max(order, key=lambda form: (best.get(form, 0.0), -order.index(form)))


def _quality(parameters: str) -> float:
    """Return the `q` of an item: 1 if there is none, 0 if it is not a number from 0 to 1."""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                number = float(value)
            except ValueError:
                return 0.0
            return number if 0.0 <= number <= 1.0 else 0.0
    return 1.0


# Host names and addresses that cannot add anything else to a URL.
_HOST = re.compile(r"(?P<name>[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?P<port>:\d{1,5})?")
_LOOPBACK = re.compile(r"localhost|127(?:\.\d{1,3}){3}|\[::1\]|(?:[a-z0-9-]+\.)+localhost")


@rests_on(Claim.OURS, Proof.USER, Proof.SOCKET)
def is_trusted(host: str, hosts: Iterable[str] | None, server: str = "") -> bool:
    """
    Return whether a `Host` header may be used in URLs that the application sends.

    Args:
        host: the header's value.
        hosts: the names that the application is known by, each with or without a port: `shop.example`,
            `shop.example:8000`, `*.shop.example`. None: the loopback names and the bound address.
        server: the address that the server is bound to.

    >>> is_trusted("127.0.0.1:8000", None), is_trusted("evil.example", None), is_trusted("evil.example", ["*.example"])
    (True, False, True)

    """
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    name, whole = found["name"].lower(), host.lower()
    if hosts is None:
        return _LOOPBACK.fullmatch(name) is not None or (bool(server) and name.strip("[]") == _name(server))
    return any(_matches(name, whole, each.lower()) for each in hosts)


def _matches(name: str, whole: str, pattern: str) -> bool:
    if pattern.startswith(("*.", ".")):
        return name.endswith(pattern.removeprefix("*"))
    return pattern in {"*", name, whole}


def _name(server: str) -> str:
    """Return an address without its port."""
    found = _HOST.fullmatch(server)
    return (found["name"] if found else server).strip("[]").lower()
