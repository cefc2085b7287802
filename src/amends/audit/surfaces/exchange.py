"""Sending probes over HTTP: bounded in number, rate and time, to one origin only."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self, TypedDict, Unpack
from urllib.parse import urljoin, urlsplit

import msgspec

from amends._version import __version__
from amends.audit.surfaces.evidence import Answer, answered, not_probed
from amends.audit.surfaces.wsgi import AnyApp, as_asgi
from amends.core.redaction import SECRETS, redact
from amends.core.wire import TOO_DEEP, Unreadable
from amends.core.wire import read as read_json

try:
    import httpx2 as httpx
except ImportError as missing:
    raise ImportError("amends audit needs an extra: pip install 'amends[http]'") from missing

__all__ = [
    "USER_AGENT",
    "Budget",
    "Exchange",
    "OutOfProbesError",
    "ProbeOptions",
    "Reply",
    "SendOptions",
    "decompressed",
    "document",
    "httpx",
]

USER_AGENT = f"amends-audit/{__version__} (sends malformed and read-only requests to see how they fail)"
MAX_PROBES = 80
PER_SECOND = 20
TIMEOUT = 5.0
WHOLE = 50.0
"""Seconds for all probes; an audit ends within 60 s."""
MAX_BODY = 1 << 20


class OutOfProbesError(Exception):
    """The audit has sent as many probes, or taken as much time, as it may."""


class Budget:
    """What an audit may still send, and how long it may still take; shared by all its connections."""

    def __init__(self, probes: int = MAX_PROBES, seconds: float = WHOLE) -> None:
        self._probes = probes
        self._until = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._until - time.monotonic())

    def spend(self) -> None:
        """
        Count one request.

        Raises:
            OutOfProbesError: there were too many, or they took too long.

        """
        if self._probes <= 0 or not self.left:
            raise OutOfProbesError
        self._probes -= 1

    async def spend_slowly(self) -> None:
        """
        Count one request over a network or a pipe, and wait as long as the rate needs.

        Raises:
            OutOfProbesError: there were too many, or they took too long.

        """
        self.spend()
        await asyncio.sleep(1 / PER_SECOND)

    def within(self, seconds: float) -> asyncio.Timeout:
        """Return a time-out of so many seconds, or of what is left."""
        return asyncio.timeout(min(seconds, self.left))


class Reply(msgspec.Struct, frozen=True):
    """An HTTP response whose body was read up to a limit."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", "replace")

    @property
    def json(self) -> object:
        """The body as JSON, or None."""
        return document(self.body)

    @property
    def described(self) -> dict[str, object] | None:
        """The body as an OpenAPI document, or None."""
        value = self.json
        return value if self.status == 200 and isinstance(value, dict) and "paths" in value else None

    def as_response(self) -> dict[str, object]:
        """Return it as `extract` reads HTTP responses."""
        value = self.json
        return {"status": self.status, "headers": self.headers, "body": self.text if value is None else value}


def document(body: bytes | str) -> object:
    """Return a body as JSON, or None if it is none."""
    try:
        value = read_json(body)
    except Unreadable:
        return None
    return None if value is TOO_DEEP else value


def decompressed(body: bytes, coding: str) -> bytes:
    """
    Return a compressed body, up to the limit. What is not gzip or deflate stays as it is.

    No compression is asked for, because libraries decompress without a limit: 1 MB can become 1 GB.

    >>> import gzip
    >>> decompressed(gzip.compress(b"{}"), "gzip")
    b'{}'
    """
    if coding.strip().lower() not in {"gzip", "deflate"}:
        return body
    try:
        return zlib.decompressobj(_EITHER).decompress(body, MAX_BODY + 1)
    except zlib.error:
        return body


_EITHER = zlib.MAX_WBITS | 32
"""With the header of gzip or of zlib."""


class SendOptions(TypedDict, total=False):
    """What `Exchange.send` takes beside the method and the path."""

    headers: Mapping[str, str] | None
    content: bytes | None
    params: Mapping[str, str] | None
    credentials: bool
    patience: float
    enough: Callable[[Reply], bool] | None


class ProbeOptions(SendOptions, total=False):
    """What `Exchange.probe` takes, too."""

    fields: Sequence[str]
    """The names of the values that are wrong or missing."""


class Exchange:
    """
    A client of one origin. Redirects are not followed, and no cookies are kept.

    Args:
        base: the URL of the service.
        headers: headers of every request, such as credentials.
        app: an ASGI or WSGI application to call in this process instead of the network.
        transport: or another transport, such as the audit's proxy.
        budget: what may be sent; a new one by default.

    """

    def __init__(
        self,
        base: str,
        headers: Mapping[str, str] | None = None,
        app: AnyApp | None = None,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.base = base.rstrip("/")
        self.headers = dict(headers or {})
        self.app = None if app is None else as_asgi(app)
        self.budget = Budget() if budget is None else budget
        if transport is None and self.app is not None:
            transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
        self._paced = app is None
        self._client = httpx.AsyncClient(
            transport=transport, timeout=TIMEOUT, follow_redirects=False, trust_env=False
        )

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.__aexit__(kind, exc, trace)

    @property
    def origin(self) -> str:
        """The scheme, host and port of the service."""
        return "://".join(urlsplit(self.base)[:2])

    def url(self, path: str) -> str:
        """Return the URL of a path below the base. A path that leads to another origin is refused."""
        url = path if path.startswith(("http://", "https://")) else f"{self.base}{path}"
        if urlsplit(urljoin(self.base, url))[:2] != urlsplit(self.base)[:2]:
            raise ValueError("only the named address is contacted")
        return url

    async def send(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        params: Mapping[str, str] | None = None,
        credentials: bool = True,
        patience: float = TIMEOUT * 2,
        enough: Callable[[Reply], bool] | None = None,
    ) -> Reply:
        """
        Send one request and return the response; of a stream of events only as much as is `enough`.

        Raises:
            OutOfProbesError: there were too many, or they took too long.
            httpx.TransportError, TimeoutError: no response.

        """
        if self._paced:
            await self.budget.spend_slowly()
        else:
            self.budget.spend()
        sent = {"User-Agent": USER_AGENT, "Accept": "application/json, */*;q=0.5"}
        sent["Accept-Encoding"] = "identity"
        sent |= (self.headers if credentials else {}) | dict(headers or {})
        async with self.budget.within(patience):
            request = self._client.build_request(
                method, self.url(path), headers=sent, content=content, params=params
            )
            response = await self._client.send(request, stream=True)
            try:
                coding = response.headers.get("content-encoding", "")
                received = {name.lower(): value for name, value in response.headers.items()}
                stream = "text/event-stream" in received.get("content-type", "")
                body = b""
                async for chunk in response.aiter_raw() if coding else response.aiter_bytes():
                    body += chunk
                    if len(body) > MAX_BODY:
                        break
                    # A service may keep a stream open after its answer.
                    if stream and enough is not None and enough(Reply(response.status_code, received, body)):
                        break
            finally:
                await response.aclose()
        return Reply(response.status_code, received, decompressed(body, coding)[:MAX_BODY])

    async def probe(
        self,
        name: str,
        method: str,
        path: str,
        *,
        expected: str = "",
        fields: Sequence[str] = (),
        **options: Unpack[SendOptions],
    ) -> Answer:
        """
        Send a request and return its answer as evidence.

        Args:
            name: of the probe.
            method: of the request.
            path: of the request.
            expected: what is wrong with a success, if anything.
            fields: the names of the values that are wrong or missing.
            options: of `send`.

        """
        sent = f"{method} {path}"
        try:
            reply = await self.send(method, path, **options)
        except OutOfProbesError:
            return not_probed(name, "the audit's limit was reached", sent)
        except Exception as error:  # noqa: BLE001 - any failure of the client is an answer that did not come
            shown = redact(sent, kinds=SECRETS)
            return Answer(probe=name, sent=shown, outcome="no-answer", because=type(error).__name__)
        if 300 <= reply.status < 400:
            return not_probed(name, f"redirected with {reply.status}, which is not followed", sent)
        failed = reply.status >= 400
        return answered(
            name,
            sent,
            reply.as_response(),
            failed=failed,
            body=reply.text,
            target=self.base,
            because="" if failed else expected,
            fields=fields,
        )
