"""Run a gateway: uvicorn with uvloop and httptools, reload on SIGHUP or a changed file, and a graceful stop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn
from msgspec.structs import replace

from amends.gateway.app import Gateway
from amends.gateway.config import PAGE, GatewayConfig
from amends.gateway.config_file import ConfigError, read_config
from amends.gateway.protocol import GatewayProtocol
from amends.gateway.sites import is_loopback_address
from amends.http.asgi_types import App, Receive, Scope, Send
from amends.logs import logger

if TYPE_CHECKING:
    from amends.page.app import Page
    from amends.recorder import Recorder

__all__ = ["GatewayServer", "LazyPage", "listening_socket", "run"]

_log = logger("amends.gateway")

_WATCH = 1.0
"""Seconds between two looks at the configuration file."""
_IDLE = 75
"""Seconds that an idle connection of a caller is kept."""


class GatewayServer(uvicorn.Server):
    """A uvicorn server that lets calls in flight end before it stops."""

    def __init__(self, gateway: Gateway, path: Path | None = None) -> None:
        """
        Args:
            gateway: the application.
            path: its configuration file, which is watched for changes.

        """
        super().__init__(
            uvicorn.Config(
                gateway,
                http=GatewayProtocol,
                loop="uvloop",
                ws="websockets-sansio",
                lifespan="on",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,
                log_config=None,
                timeout_keep_alive=_IDLE,
                ssl_certfile=None if gateway.config.tls is None else gateway.config.tls.cert,
                ssl_keyfile=None if gateway.config.tls is None else gateway.config.tls.key,
                timeout_graceful_shutdown=5,
                ws_max_size=16 * 1024 * 1024,
            )
        )
        self.gateway = gateway
        self.path = path
        self._certificate: tuple[tuple[int, int] | None, tuple[int, int] | None] | None = None
        """The versions of the files of the certificate that is used."""
        self._stopping: asyncio.Task[None] | None = None
        self._stopped_by: tuple[int, FrameType | None] | None = None
        """The signal that `handle_exit` of uvicorn gets when the calls in flight have ended."""
        self._loading: asyncio.Task[Page] | None = None
        self._read: GatewayConfig | None = None
        """What the file said last."""
        if path is not None:
            with contextlib.suppress(ConfigError, OSError, UnicodeDecodeError):
                self._read = read_config(path.read_text("utf-8"))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop when the calls in flight have ended. A second signal stops at once."""
        if self._stopping is not None or not self.started:
            super().handle_exit(sig, frame)
            return
        self._stopped_by = sig, frame
        self.stop()

    def stop(self) -> None:
        """Refuse new calls, wait for those in flight, then stop."""
        if self._stopping is None:
            self._stopping = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        grace = self.gateway.config.grace
        if not await self.gateway.drain(grace):
            _log.warning("%d calls did not end within %g s", self.gateway.in_flight, grace)
        if self._stopped_by is None:
            self.should_exit = True
        else:
            super().handle_exit(*self._stopped_by)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then import the page, which calls need not wait for."""
        await super().startup(sockets)
        if isinstance(self.gateway.page, LazyPage):
            self._loading = asyncio.create_task(self.gateway.page.load())

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until stopped."""
        watching = None
        if self.path is not None:
            watching = asyncio.create_task(self._watch(self.path))
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.reload)
        try:
            await super().serve(sockets)
        finally:
            if watching is not None:
                watching.cancel()

    async def _watch(self, path: Path) -> None:
        seen = _version(path)
        while True:
            await asyncio.sleep(_WATCH)
            self.reload_certificate()
            found = _version(path)
            if found != seen:
                seen = found
                if found is not None:
                    self.reload()

    def reload_certificate(self) -> None:
        """Use a changed certificate for new connections. A wrong one is reported, and the old one stays."""
        tls, context = self.gateway.config.tls, self.config.ssl
        if tls is None or context is None:
            return
        found = (_version(Path(tls.cert)), _version(Path(tls.key)))
        if found == self._certificate or None in found:
            return
        before, self._certificate = self._certificate, found
        if before is None:
            return
        try:
            context.load_cert_chain(tls.cert, tls.key)
        except (OSError, ValueError) as error:
            _log.error(
                "the certificate %s is not used, and the old one stays: %s", tls.cert, type(error).__name__
            )
        else:
            _log.info("the certificate %s was read again", tls.cert)

    def reload(self) -> None:
        """Read the configuration file again. A wrong file is reported, and the old configuration stays."""
        assert self.path is not None
        try:
            config = read_config(self.path.read_text("utf-8"))
        except (ConfigError, OSError, UnicodeDecodeError) as error:
            _log.error("%s is not used, and the old configuration stays: %s", self.path, error)
            return
        before, running = self._read, self.gateway.config
        for name in ("listen", "record", "tls"):
            if before is not None and getattr(config, name) != getattr(before, name):
                _log.warning("%s changes only with a restart", name)
        self._read = config
        # The command's own options stay, too.
        self.gateway.reload(replace(config, listen=running.listen, record=running.record, tls=running.tls))
        if config.token != running.token and isinstance(self.gateway.page, LazyPage):
            self.gateway.page.renew()
        _log.info(
            "%s was read again; upstreams: %s", self.path, ", ".join(each.name for each in config.upstreams)
        )


def _version(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def listening_socket(listen: str) -> socket.socket:
    """
    Return a socket that is bound to an address.

    Raises:
        OSError: the address cannot be bound.

    """
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, int(port)))
        bound.listen(2048)
    except BaseException:
        bound.close()
        raise
    bound.setblocking(False)
    return bound


class LazyPage:
    """
    The page, which is imported on a thread after the gateway has started.

    Its libraries take a third of the time that a start needs.
    """

    def __init__(self, gateway: Gateway, recorder: Recorder, url: str = "") -> None:
        """
        Args:
            gateway: the application that has the page.
            recorder: whose events it shows.
            url: where the gateway listens, for the address that is printed.

        """
        self._gateway = gateway
        self._url = url
        self._recorder = recorder
        self._page: Page | None = None
        self._closing: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await (await self.load())(scope, receive, send)

    async def load(self) -> Page:
        """Return the page; import it first."""
        async with self._lock:
            if self._page is None:
                self._page = await asyncio.to_thread(self._import)
        return self._page

    def _import(self) -> Page:
        from amends.page.app import Page

        page = Page(self._recorder, upstreams=self._gateway, token=self._gateway.config.token)
        if self._url:
            # Every address of this machine: a browser needs one.
            shown = self._url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
            page.announce(f"{shown}{PAGE}/")
        return page

    def renew(self) -> None:
        """Make the page anew at the next request, with the configuration's present token."""
        before, self._page = self._page, None
        if before is not None:
            self._closing = asyncio.get_running_loop().create_task(before.close())

    async def close(self) -> None:
        """Close the page's stores."""
        if self._page is not None:
            await self._page.close()


def run(
    config: GatewayConfig,
    *,
    path: Path | None = None,
    page: App | None = None,
    ready: Callable[[str], None] | None = None,
) -> None:
    """
    Run a gateway until it is stopped by a signal.

    Args:
        config: its configuration.
        path: the file that it came from, which is watched.
        page: the application at `/_amends/`; None: `amends.dashboard`.
        ready: called with the gateway's URL when it listens.

    Raises:
        OSError: the address cannot be bound.
        ValueError: the token of the page is too short.

    """
    from amends.recorder import default_url, record

    if "opentelemetry" in sys.modules:
        from amends.recorder import otel

        otel.instrument()
    token = config.token or os.environ.get("AMENDS_PAGE_TOKEN", "")
    if token:
        from amends.page.access import wrong_token

        wrong = wrong_token(token)
        if wrong:
            raise ValueError(f"the token of the page {wrong}")
    if config.hosts or not is_loopback_address(config.listen.rpartition(":")[0].strip("[]")):
        _log.warning(
            "callers come over a network or through a proxy: every program that reaches this address may call the upstreams. "
            "A proxy in front has to be the only one that does, and sets Host and X-Forwarded-For (deploy/nginx.conf)"
        )
    bound = listening_socket(config.listen)
    with record(config.record or default_url()) as recorder:
        gateway = Gateway(config, page=page)
        if "opentelemetry" in sys.modules:
            from amends.gateway.metrics import observe

            observe(gateway)
        host, port = bound.getsockname()[:2]
        url = f"{'http' if config.tls is None else 'https'}://{f'[{host}]' if ':' in host else host}:{port}"
        if page is None:
            gateway.page = LazyPage(gateway, recorder, url)
        if ready is not None:
            ready(url)
        try:
            GatewayServer(gateway, path).run(sockets=[bound])
        finally:
            bound.close()
