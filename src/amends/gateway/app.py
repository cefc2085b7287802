"""
`Gateway`: the ASGI application. It finds the upstream of a path and hands the call to it.

The routes are one immutable tuple that a reload replaces: calls in flight keep the upstream they began with, and an
upstream that is gone closes its connections after its last call.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec.structs import replace

from amends.core import recording
from amends.core.fault import Fault
from amends.core.wire import compact
from amends.gateway.callers import Caller, Callers
from amends.gateway.config import PAGE, GatewayConfig, UpstreamConfig
from amends.gateway.health import watch_health
from amends.gateway.http_upstream import HttpUpstream
from amends.gateway.metrics import prometheus_text
from amends.gateway.refusals import FACTS, refusal, send_problem, send_whole
from amends.gateway.sites import Sites
from amends.gateway.stats import UpstreamStatus
from amends.http.asgi_types import App, Message, Receive, Scope, Send
from amends.logs import logger
from amends.serving.tracing import trace_id

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram

__all__ = ["Gateway"]

_log = logger("amends.gateway")


_OWN = PAGE.encode()
_STOP_WAIT = 5
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_DRAIN_TICK = 0.05


class Gateway:
    """
    An ASGI application that forwards to the upstreams of a configuration.

        gateway = Gateway(single("https://api.example.com"))
    """

    def __init__(self, config: GatewayConfig, *, page: App | None = None) -> None:
        """
        Args:
            config: the upstreams.
            page: an application that is mounted at `/_amends/`.

        """
        self.config = config
        self.page = page
        self.stopping = False
        self.in_flight = 0
        self.active: dict[tuple[str, int] | None, asyncio.Task[object]] = {}
        """The call of each connection. The server cancels it when its caller is gone."""
        self._routes: tuple[tuple[bytes, bytes, HttpUpstream], ...] = ()
        self.duration: Histogram | None = None
        """Records the duration of calls for OpenTelemetry, if it is used."""
        self._watching: dict[str, tuple[HttpUpstream, asyncio.Task[None]]] = {}
        """The tasks that ask the health paths."""
        self._closing: dict[asyncio.Task[None], HttpUpstream] = {}
        """Upstreams that a reload has removed, until their calls have ended."""
        self._load(config)

    @property
    def upstreams(self) -> tuple[HttpUpstream, ...]:
        """The upstreams, in the order in which paths are compared with their prefixes."""
        return tuple(upstream for _, _, upstream in self._routes)

    @property
    def callers(self) -> dict[str, Caller]:
        """Who may call, by name; empty: everybody."""
        return self._callers.by_name

    def statuses(self) -> list[UpstreamStatus]:
        """Return the figures of all upstreams, in the order of the configuration, for the page."""
        found = {upstream.config.name: upstream.status() for upstream in self.upstreams}
        return [found[each.name] for each in self.config.upstreams]

    # Configuration ---------------------------------------------------------------------------------------------

    def reload(self, config: GatewayConfig) -> None:
        """Use another configuration from now on. Upstreams that did not change are kept; no call is dropped."""
        before = self.upstreams
        self.config = config
        self._load(config)
        self.watch_health()
        kept = set(map(id, self.upstreams))
        for upstream in before:
            if id(upstream) not in kept:
                task = asyncio.get_running_loop().create_task(_close_when_idle(upstream))
                self._closing[task] = upstream
                task.add_done_callback(self._closing.pop)

    def _load(self, config: GatewayConfig) -> None:
        before = {upstream.config.name: upstream for upstream in self.upstreams}
        routes = []
        made: dict[str, HttpUpstream] = {}
        for each in sorted(config.upstreams, key=lambda each: each.kind == "route"):
            known = before.get(each.name)
            targets = [made[name] for name in each.to]
            same = (
                known is not None and known.config == each and list(getattr(known, "targets", ())) == targets
            )
            upstream = made[each.name] = known if known is not None and same else _new_upstream(each, targets)
            prefix = each.prefix.rstrip("/").encode()
            routes.append((prefix, prefix + b"/", upstream))
        self._routes = tuple(sorted(routes, key=lambda route: -len(route[0])))
        self._sites = Sites(config.listen, config.hosts)
        callers, callers_before = Callers(config.callers), getattr(self, "_callers", None)
        if callers_before is not None:
            callers.keep(callers_before)
        self._callers: Callers = callers

    def watch_health(self) -> None:
        """Ask the health paths of the upstreams that have one, from now on."""
        wanted = {each.config.name: each for each in self.upstreams if each.config.health}
        for name, (upstream, task) in list(self._watching.items()):
            if wanted.get(name) is not upstream:
                task.cancel()
                del self._watching[name]
        for name, upstream in wanted.items():
            if name not in self._watching:
                watching = asyncio.get_running_loop().create_task(watch_health(upstream))
                self._watching[name] = upstream, watching

    def health(self) -> dict[str, object]:
        """Return the state of the gateway and of its upstreams."""
        upstreams = [
            {
                "name": each.name,
                "state": "down" if each.down else {"open": "healthy"}.get(each.state, each.state),
                "resumes_in": round(each.resumes_in, 3),
                "held": list(each.held),
                "waiting": each.waiting,
                "in_flight": each.in_flight,
                "last_failure": each.last_failure,
            }
            for each in self.statuses()
        ]
        return {**self._state(), "upstreams": upstreams}

    def _state(self) -> dict[str, object]:
        return {"status": "stopping" if self.stopping else "ok", "in_flight": self.in_flight}

    def metrics(self) -> tuple[bytes, str]:
        """Return the metrics as Prometheus reads them, and their content type."""
        return prometheus_text(self)

    async def close(self) -> None:
        """Close the connections of all upstreams, and the stores of the page."""
        for _, task in self._watching.values():
            task.cancel()
        self._watching.clear()
        for upstream in self.upstreams:
            await upstream.close()
        close_page = getattr(self.page, "close", None)
        if close_page is not None:
            await close_page()
        for task, upstream in list(self._closing.items()):
            task.cancel()
            await upstream.close()

    async def drain(self, seconds: float) -> bool:
        """Refuse new calls, and wait until those in flight have ended, at most so many seconds."""
        self.stopping = True
        until = asyncio.get_running_loop().time() + seconds
        while self.in_flight and asyncio.get_running_loop().time() < until:  # noqa: ASYNC110 - calls set no event
            await asyncio.sleep(_DRAIN_TICK)
        return not self.in_flight

    # Calls -----------------------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        kind = scope["type"]
        if kind == "http":
            path: bytes = scope["raw_path"]
            for prefix, below, upstream in self._routes:
                if path.startswith(below) or path == prefix:
                    if self.stopping or (below == b"/" and _is_own(path)):
                        break
                    foreign = self._sites.refusal(scope, local_pages=upstream.local_pages)
                    if foreign:
                        await self._refuse(scope, send, refusal(403, foreign), close=True)
                        return
                    caller = None
                    if self._callers.by_name:
                        caller = await self._caller(scope, send)
                        if caller is None:
                            return
                        caller.in_flight += 1
                    self.in_flight += 1
                    client = scope["client"]
                    self.active[client] = asyncio.current_task()  # type: ignore[assignment]
                    try:
                        if self.duration is None:
                            await upstream.handle(scope, receive, send, path[len(prefix) :])
                        else:
                            await self._timed(
                                self.duration, upstream, scope, receive, send, path[len(prefix) :]
                            )
                    except asyncio.CancelledError:
                        # The caller is gone, or the server ends: there is no one to answer.
                        pass
                    finally:
                        self.in_flight -= 1
                        if caller is not None:
                            caller.in_flight -= 1
                        self.active.pop(client, None)
                    return
            await self._own(scope, receive, send, path)
        elif kind == "websocket":
            await self._websocket(scope, receive, send)
        elif kind == "lifespan":
            await self._lifespan(receive, send)

    async def _caller(self, scope: Scope, send: Send) -> Caller | None:
        """Return who calls; refuse the call of nobody that is known, or of one that makes too many."""
        caller = self._callers.caller(scope)
        fault = refusal(401) if caller is None else caller.refusal(monotonic())
        if fault is None:
            return caller
        await self._refuse(scope, send, fault, close=caller is None)
        return None

    async def _timed(
        self,
        duration: Histogram,
        upstream: HttpUpstream,
        scope: Scope,
        receive: Receive,
        send: Send,
        rest: bytes,
    ) -> None:
        """Handle a call, and record its duration."""
        began, status = monotonic(), 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await upstream.handle(scope, receive, sending, rest)
        finally:
            method = scope["method"]
            found: dict[str, str | int] = {
                "http.request.method": method if method in _METHODS else "_OTHER",
                "server.address": urlsplit(upstream.origin).hostname or "",
                "amends.upstream": upstream.config.name,
            }
            if status:
                found["http.response.status_code"] = status
            if status >= 400 or not status:
                found["error.type"] = str(status or "cancelled")
            duration.record(monotonic() - began, found)

    async def _own(self, scope: Scope, receive: Receive, send: Send, path: bytes) -> None:
        """Answer a request that belongs to no upstream: the gateway's pages, a stop, or an unknown path."""
        foreign = self._sites.refusal(scope)
        if foreign:
            await self._refuse(scope, send, refusal(403, foreign), close=True)
            return
        if _is_own(path):
            await self._serve_page(scope, receive, send, path)
            return
        fault = (
            refusal(503, "The gateway is stopping", wait=_STOP_WAIT)
            if self.stopping
            else refusal(404, "No upstream has this path")
        )
        await self._refuse(scope, send, fault, close=self.stopping)

    async def _refuse(self, scope: Scope, send: Send, fault: Fault, *, close: bool = False) -> None:
        trace = trace_id(None)
        recording.emit(
            "gateway",
            "refused",
            fault,
            name=f"{scope['method']} {scope['path']}",
            trace_id=trace,
            status=fault.status,
        )
        await send_problem(
            send, replace(fault, trace_id=trace), [(FACTS["trace"], trace.encode())], close=close
        )

    async def _serve_page(self, scope: Scope, receive: Receive, send: Send, path: bytes) -> None:
        full = scope["query_string"] == b"full"
        if path == f"{PAGE}/health".encode() and not full:
            body = compact(self._state()) or b"{}"
            headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
            await send_whole(send, 503 if self.stopping else 200, headers, body)
            return
        if self.page is None:
            await self._refuse(scope, send, refusal(404, "There is no page here"))
            return
        await self.page({**scope, "root_path": scope.get("root_path", "") + PAGE}, receive, send)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        from amends.gateway.websocket import relay

        path: bytes = scope.get("raw_path") or scope["path"].encode()
        if self._sites.refusal(scope):
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        caller = self._callers.caller(scope) if self._callers.by_name else None
        if self._callers.by_name and (caller is None or caller.refusal(monotonic()) is not None):
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        for prefix, below, upstream in self._routes:
            if (path.startswith(below) or path == prefix) and not self.stopping and not _is_own(path):
                self.in_flight += 1
                if caller is not None:
                    caller.in_flight += 1
                try:
                    await relay(upstream, scope, receive, send, path[len(prefix) :])
                finally:
                    self.in_flight -= 1
                    if caller is not None:
                        caller.in_flight -= 1
                return
        await receive()
        await send({"type": "websocket.close", "code": 1012 if self.stopping else 1008})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self.watch_health()
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return


def _is_own(path: bytes) -> bool:
    """Return whether a path is one of the gateway's own pages."""
    return path.startswith(_OWN) and path[len(_OWN) : len(_OWN) + 1] in {b"", b"/"}


def _new_upstream(config: UpstreamConfig, targets: list[HttpUpstream]) -> HttpUpstream:
    if config.kind == "route":
        from amends.gateway.route import RouteUpstream

        return RouteUpstream(config, targets)
    if config.kind == "stdio":
        from amends.gateway.stdio import StdioUpstream

        return StdioUpstream(config)
    if config.kind == "mcp":
        from amends.gateway.mcp import McpUpstream

        return McpUpstream(config)
    if config.kind == "a2a":
        from amends.gateway.a2a import A2aUpstream

        return A2aUpstream(config)
    return HttpUpstream(config)


async def _close_when_idle(upstream: HttpUpstream) -> None:
    """Close an upstream that is not configured any more, after its calls have ended."""
    while upstream.crowd.in_flight or upstream.crowd.waiting:  # noqa: ASYNC110
        await asyncio.sleep(_DRAIN_TICK)
    await upstream.close()
    _log.info("upstream %s is closed", upstream.config.name)
