"""Run a gateway: uvicorn with uvloop and httptools, reload on SIGHUP or a changed file, and a graceful stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from amends.gateway.app import Gateway
from amends.gateway.config import GatewayConfig
from amends.gateway.config_file import ConfigError, read_config
from amends.gateway.protocol import GatewayProtocol

__all__ = ["GatewayServer", "listening_socket", "run"]

_log = logging.getLogger("amends.gateway")

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
                timeout_graceful_shutdown=5,
                ws_max_size=16 * 1024 * 1024,
            )
        )
        self.gateway = gateway
        self.path = path
        self._stopping: asyncio.Task[None] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop when the calls in flight have ended. A second signal stops at once."""
        if self._stopping is not None or not self.started:
            super().handle_exit(sig, frame)
            return
        self._captured_signals.append(sig)
        self.stop()

    def stop(self) -> None:
        """Refuse new calls, wait for those in flight, then stop."""
        if self._stopping is None:
            self._stopping = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        grace = self.gateway.config.grace
        if not await self.gateway.drain(grace):
            _log.warning("%d calls did not end within %g s", self.gateway.in_flight, grace)
        self.should_exit = True

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
            found = _version(path)
            if found != seen:
                seen = found
                if found is not None:
                    self.reload()

    def reload(self) -> None:
        """Read the configuration file again. A wrong file is reported, and the old configuration stays."""
        assert self.path is not None
        try:
            config = read_config(self.path.read_text("utf-8"))
        except (ConfigError, OSError, UnicodeDecodeError) as error:
            _log.error("%s is not used, and the old configuration stays: %s", self.path, error)
            return
        if config.listen != self.gateway.config.listen:
            _log.warning("the address changes only with a restart: it stays %s", self.gateway.config.listen)
        self.gateway.reload(config)
        _log.info("%s was read again: %d upstreams", self.path, len(config.upstreams))


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


def run(
    config: GatewayConfig,
    *,
    path: Path | None = None,
    page: Any = None,
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

    """
    from amends.page import dashboard
    from amends.recorder import default_url, record

    bound = listening_socket(config.listen)
    with record(config.record or default_url()) as recorder:
        gateway = Gateway(config, page=page)
        if page is None:
            gateway.page = dashboard(recorder, upstreams=gateway, token=config.token)
        host, port = bound.getsockname()[:2]
        if ready is not None:
            ready(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        try:
            GatewayServer(gateway, path).run(sockets=[bound])
        finally:
            bound.close()
