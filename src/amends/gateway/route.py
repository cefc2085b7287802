"""
A route: several upstreams of the same format, of which the next is called where one cannot help (`amends.recovery.Failover`).

    [route.chat]
    to = ["openai", "azure", "local"]

The caller's headers that say who it is go to the first upstream only. The others get their own credentials, or none.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, urlencode

import msgspec
from msgspec.structs import replace
from yarl import URL

from amends.core.operation import Operation
from amends.gateway.answers import Answer
from amends.gateway.bodies import Body
from amends.gateway.config import UpstreamConfig
from amends.gateway.headers import RequestHeaders
from amends.gateway.http_upstream import SEGMENTS, Call, HttpUpstream
from amends.gateway.rpc import read_members
from amends.recovery.clock import CLOCK
from amends.recovery.failover import Failover, current_target
from amends.recovery.origins import route_scope
from amends.recovery.upstream import Upstream
from amends.vendors.computing import only_computes, route_computes

__all__ = ["RouteUpstream"]

_KEPT = 10_000
"""Sessions whose upstream is remembered."""
_SCOPES = 1_000
_MCP_SESSION = "mcp-session-id"
_SENT_TO_OTHERS = re.compile(
    r"content-(?:type|length|encoding)|accept(?:-.*)?|user-agent|traceparent|tracestate|amends-left|idempotency-key|request-timeout"
    r"|x-stainless-.*|x-server-timeout|anthropic-(?:version|beta)|openai-beta|mcp-protocol-version|x-request-id"
)
"""Headers that say nothing about who the caller is: an upstream that it did not choose gets no others."""
_SECRET = re.compile(r"(?i).*(?:key|token|secret|sig|auth|pass|cred|session).*")
"""Parameters of an address that such an upstream does not get."""


class _RouteCall(Call):
    __slots__ = ("rest", "served_by", "session")

    def __init__(self, method: str, rest: bytes, url: URL, headers: RequestHeaders, body: Body) -> None:
        super().__init__(method, rest.decode("latin-1"), url, headers, body)
        self.rest = rest
        self.served_by = 0
        """The number of the upstream that was called last."""
        self.session: str | None = None


class RouteUpstream(HttpUpstream):
    """Forwards to the first of several upstreams that can be called."""

    def __init__(self, config: UpstreamConfig, targets: Sequence[HttpUpstream]) -> None:
        """
        Args:
            config: of the route.
            targets: the upstreams, the preferred first.

        """
        super().__init__(replace(config, url=targets[0].config.url, vendor=targets[0].config.vendor))
        self.config = config
        self.targets = tuple(targets)
        self._troubled = True
        self._failovers: OrderedDict[tuple[str, tuple[int, ...]], Failover] = OrderedDict()
        self._sessions: OrderedDict[str, int] = OrderedDict()

    @property
    def _is_idle(self) -> bool:
        # Every call asks which upstream is to be called.
        return False

    def new_call(self, method: str, rest: bytes, url: URL, headers: RequestHeaders, body: Body) -> _RouteCall:
        """Return the call with its session."""
        call = _RouteCall(method, rest, url, headers, body)
        names = {_MCP_SESSION, self.config.session.lower()} - {""}
        call.session = next((value for name, value in headers.sent if name.lower() in names), None)
        return call

    def computes(self, call: Call) -> bool:
        """Return whether a call only computes, at whichever upstream."""
        if call.computes is None:
            headers = {name.lower(): value for name, value in call.headers.sent}
            call.computes = call.body.whole and all(
                target.service is not None
                and target.config.repeat_computations
                and route_computes(target.service, call.method, URL(target.base).path + call.path)
                and only_computes(target.service, call.body.data, headers, call.url.raw_query_string)
                for target in self.targets
            )
        return call.computes

    def operation(self, call: Call) -> Operation:
        """Return what is known about repeating a call. What one service promises about keys says nothing about another."""
        return replace(super().operation(call), key=None)

    def held(self) -> dict[str, float]:
        """Return what holds its calls back: they are held while all upstreams are."""
        held = [target.held() for target in self.targets]
        return held[0] if all(held) else {}

    # Which upstream is called ----------------------------------------------------------------------------------

    def _pinned(self, call: Call) -> int | None:
        """Return the only upstream that a call may go to: that of its session, or the first if its body cannot be sent again."""
        assert isinstance(call, _RouteCall)
        if call.session is not None and call.session in self._sessions:
            return self._sessions[call.session]
        return None if call.body.whole else 0

    def _failover(self, call: Call) -> Failover:
        working = self._working()
        key = (call.route, working)
        found = self._failovers.get(key)
        if found is None:
            config = self.config
            longest = config.to.index(config.too_long) if config.too_long else None
            too_long = working.index(longest) if longest in working else None
            scopes = [self._scope(number, call) for number in working]
            found = self._failovers[key] = Failover(scopes, too_long=too_long)
            if len(self._failovers) > _SCOPES:
                self._failovers.popitem(last=False)
        self._failovers.move_to_end(key)
        return found

    def _working(self) -> tuple[int, ...]:
        """Return the numbers of the upstreams that are not down; all, if none works."""
        numbers = tuple(number for number, target in enumerate(self.targets) if not target.down)
        return numbers or tuple(range(len(self.targets)))

    def _scope(self, number: int, call: Call) -> Upstream:
        """Return the state of an upstream: for the caller's credential at the first, for the gateway's own at the others."""
        path = call.path.partition("?")[0]
        name = call.route if number == 0 else route_scope(call.method, path, {}, segments=SEGMENTS)
        return self.targets[number].upstream.scope(name)

    def service_for(self, call: Call) -> Upstream | Failover:
        """Return what recovery calls: all upstreams, or the only one that may be."""
        pinned = self._pinned(call)
        return self._failover(call) if pinned is None else self._scope(pinned, call)

    def scope_for(self, call: Call) -> Upstream:
        """Return the state of the upstream that is called first."""
        pinned = self._pinned(call)
        if pinned is None:
            failover = self._failover(call)
            return failover.targets[failover.choose(CLOCK.now())].upstream
        return self._scope(pinned, call)

    # Calls -----------------------------------------------------------------------------------------------------

    async def attempt(self, call: Call) -> Answer:
        """Make one try at the upstream that recovery chose."""
        assert isinstance(call, _RouteCall)
        target, number = current_target(), self._pinned(call) or 0
        if target is not None:
            number = next(
                each for each in range(len(self.targets)) if self._scope(each, call) is target.upstream
            )
        call.served_by = number
        upstream = self.targets[number]
        if number:
            self.stats.failovers += 1
        sent = self._prepared(call, number)
        upstream.stats.calls += 1
        upstream.crowd.enter(None)
        try:
            answer = await upstream.attempt(sent)
        finally:
            upstream.crowd.leave(None)
        self._pin(call, answer, number)
        return answer

    def _pin(self, call: _RouteCall, answer: Answer, number: int) -> None:
        named = [value for name, value in answer.headers if name == _MCP_SESSION.encode()]
        for session in (call.session, *(value.decode("latin-1") for value in named)):
            if session is not None and len(session) <= 512:
                self._sessions[session] = number
                self._sessions.move_to_end(session)
                if len(self._sessions) > _KEPT:
                    self._sessions.popitem(last=False)

    def _prepared(self, call: _RouteCall, number: int) -> Call:
        """Return the call as one of the upstreams gets it."""
        upstream = self.targets[number]
        config = upstream.config
        headers, body, path = call.headers, call.body, call.path
        query = call.url.raw_query_string
        if number:
            kept = [(name, value) for name, value in headers.sent if _SENT_TO_OTHERS.fullmatch(name.lower())]
            headers = headers.with_sent(kept)
            pairs = parse_qsl(query, keep_blank_values=True)
            query = urlencode([pair for pair in pairs if not _SECRET.fullmatch(pair[0])])
        if config.model:
            path = "/".join(config.model.get(segment, segment) for segment in path.split("/"))
            body = _renamed(body, config.model)
            if body is not call.body and headers.length is not None:
                size = str(len(body.data))
                headers = headers.with_sent(
                    [
                        (name, size if name.lower() == "content-length" else value)
                        for name, value in headers.sent
                    ]
                )
        target = upstream.target(path)
        url = URL(f"{target}?{query}" if query else target, encoded=True)
        sent = upstream.new_call(call.method, path.encode("latin-1"), url, headers, body)
        sent.repeated = call.repeated
        return sent

    def served_by(self, call: Call) -> str:
        """Return the name of the upstream that was called last."""
        assert isinstance(call, _RouteCall)
        return self.config.to[call.served_by]


def _renamed(body: Body, models: Mapping[str, str]) -> Body:
    """Return a body whose member `model` has the upstream's name; the other members stay as they were written."""
    members = read_members(bytes(body.data)) if body.whole and body.data else None
    try:
        name = None if members is None else msgspec.json.decode(members.get("model", b"null"))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return body
    if members is None or not isinstance(name, str) or name not in models:
        return body
    members["model"] = msgspec.Raw(msgspec.json.encode(models[name]))
    data = msgspec.json.encode(members)
    return Body(data, None, len(data), 0.0)
