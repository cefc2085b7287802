"""The probes of an MCP server: unknown methods, tools, resources and prompts, and arguments that a tool must refuse."""

from __future__ import annotations

import shlex
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple
from urllib.parse import urlsplit

from amends._version import __version__
from amends.audit.surfaces.evidence import NO_INPUT, Answer, Evidence, not_probed
from amends.audit.surfaces.exchange import Budget, Exchange
from amends.audit.surfaces.jsonrpc import (
    START_TIMEOUT,
    HttpPeer,
    Peer,
    ProcessPeer,
    again,
    probe,
    summary,
    without_credentials,
)
from amends.audit.surfaces.proxy import DISTURBANCES, MISSING, Proxy, between, gateway_to, repeated
from amends.audit.surfaces.wsgi import AnyApp
from amends.core.redaction import SECRETS, redact
from amends.recovery.events import plain_url

__all__ = ["observe_mcp"]

PROTOCOL = "2025-11-25"
_VERSION = "MCP-Protocol-Version"
_HELLO = {
    "protocolVersion": PROTOCOL,
    "capabilities": {},
    "clientInfo": {"name": "amends-audit", "version": __version__},
}
EACH = 3
"""Tools that a kind of probe is sent to."""
_UNTEXT = frozenset({"integer", "number", "boolean", "object", "array"})


async def observe_mcp(
    url: str = "",
    *,
    command: Sequence[str] = (),
    app: AnyApp | None = None,
    headers: Mapping[str, str] | None = None,
    writes: bool = False,
) -> Evidence:
    """
    Send the probes and return what was answered.

    Args:
        url: the address of a server over streamable HTTP.
        command: or the command of a server on stdin and stdout.
        app: or an ASGI application, called in this process at the path of `url`.
        headers: headers of every request, such as credentials.
        writes: also send wrong arguments to tools that do not say that they only read.

    """
    budget = Budget()
    if command:
        async with ProcessPeer(command, budget) as peer:
            evidence = await _observe(peer, _shown(command), writes=writes)
        if _answered(evidence):
            evidence.answers.extend(await _command_through_proxy(command, budget))
        return evidence
    parts = urlsplit(url)
    path, target = parts.path or "/mcp", plain_url(url)
    if parts.query:
        path = f"{path}?{parts.query}"  # some services take their key there
    async with (
        _lifespan(app),
        Exchange(f"{parts.scheme}://{parts.netloc}", headers, app, budget=budget) as exchange,
    ):
        http = HttpPeer(exchange, path, {_VERSION: PROTOCOL})
        evidence = await _observe(http, target, writes=writes)
        if not _answered(evidence):
            return evidence
        evidence.answers.append(await _unsupported_version(http, target))
        evidence.answers.append(await _unknown_session(http, target))
        evidence.answers.extend(await without_credentials(exchange, path, "initialize", _HELLO))
        evidence.answers.extend(await _through_proxy(exchange, path))
        return evidence


async def _unsupported_version(peer: HttpPeer, target: str) -> Answer:
    """Send a request of a protocol version that does not exist."""
    peer.headers[_VERSION] = "1999-01-01"
    about = "of a version that does not exist"
    answer = await probe(peer, "unsupported-version", "tools/list", {}, about=about, target=target)
    peer.headers[_VERSION] = PROTOCOL
    return _unless_answered(answer, "the server answers in any version")


async def _unknown_session(peer: HttpPeer, target: str) -> Answer:
    peer.headers["Mcp-Session-Id"] = "amends-audit-unknown"
    about = "in a session that does not exist"
    answer = await probe(peer, "unknown-session", "tools/list", {}, about=about, target=target)
    return _unless_answered(answer, "the server has no sessions")


def _unless_answered(answer: Answer, because: str) -> Answer:
    return not_probed(answer.probe, because) if answer.outcome == "success" else answer


def _shown(command: Sequence[str]) -> str:
    """Return the command for the report, without credentials in its arguments."""
    return redact(shlex.join(command), kinds=SECRETS)


def _answered(evidence: Evidence) -> bool:
    return any(one.outcome in {"failure", "success"} for one in evidence.answers)


_NAMES = (*DISTURBANCES, "restart")


async def _through_proxy(exchange: Exchange, path: str) -> list[Answer]:
    """Disturb the answers of a server over HTTP. After a restart, a server does not know the client's session."""
    async with between(exchange) as found:
        if found is None:
            return [not_probed(name, MISSING) for name in _NAMES]
        through, proxy = found
        peer = HttpPeer(through, path, {_VERSION: PROTOCOL})
        method, answers = await _disturb(peer, proxy)
        if answers[0].outcome != "not-probed":
            answers.append(await _forgotten(peer, proxy, method))
        return answers


async def _disturb(peer: HttpPeer, proxy: Proxy) -> tuple[str, list[Answer]]:
    """Open a session and disturb the answers to a listing. Return its method, and the entries."""
    started = await _open(peer)
    method = "tools/list" if "tools" in _capabilities(started) else "ping"
    if not started:
        return method, [not_probed(name, "no session could be opened through the proxy") for name in _NAMES]
    return method, [await again(peer, proxy, name, method, {}) for name in DISTURBANCES]


async def _forgotten(peer: HttpPeer, proxy: Proxy, method: str) -> Answer:
    """Replace the session's id by one that the server does not know. A client opens a new session after 404 only."""
    sent = f"{method} in a session that the server has lost, then initialize and {method}"
    before = await _summary(peer, method)
    proxy.mode = "lost-session"
    lost = await _summary(peer, method)
    status = peer.status
    proxy.mode = ""
    if lost != before and status != 404:
        text = f"{method} in a lost session → {status}: {lost}; clients open a new session only after 404"
        return Answer(
            probe="restart", sent=sent, outcome="stuck", because=f"answered with {status}", text=text
        )
    peer.headers.pop("Mcp-Session-Id", None)
    await _open(peer)
    return repeated("restart", sent, before, await _summary(peer, method))


async def _command_through_proxy(command: Sequence[str], budget: Budget) -> list[Answer]:
    """Disturb the answers of a server on pipes, which the gateway offers over HTTP; then end its process and start it again."""
    async with gateway_to(command=command) as gateway:
        if gateway is None:
            return [not_probed(name, MISSING) for name in _NAMES]
        proxy = Proxy(gateway, cancels=True)
        async with Exchange(_GATEWAY, transport=proxy, budget=budget) as through:
            peer = HttpPeer(through, "/")
            peer.patience = START_TIMEOUT
            method, answers = await _disturb(peer, proxy)
            if answers[0].outcome == "not-probed":
                return answers
            before = await _summary(peer, method)
            await gateway.close()
            peer.headers.pop("Mcp-Session-Id", None)
            await _open(peer)
            sent = f"the process ended and was started again, then {method}"
            return [*answers, repeated("restart", sent, before, await _summary(peer, method))]


_GATEWAY = "http://gateway.invalid"
"""The gateway is called in this process; this name is never looked up."""


async def _summary(peer: HttpPeer, method: str) -> str:
    try:
        return summary(await peer.call(method, {}))
    except Exception as error:  # noqa: BLE001 - a server that does not answer any more
        return type(error).__name__


@asynccontextmanager
async def _lifespan(app: AnyApp | None) -> AsyncGenerator[None]:
    """Run the lifespan of a Starlette application in this process."""
    router = getattr(app, "router", None)
    if router is None:
        yield
        return
    async with router.lifespan_context(app):
        yield


class _Call(NamedTuple):
    """A request that has to fail."""

    name: str
    method: str
    params: Mapping[str, object]
    about: str
    expected: str = ""
    fields: Sequence[str] = ()


async def _observe(peer: Peer, target: str, *, writes: bool) -> Evidence:
    started = await _open(peer)
    if not started:
        because = "the server did not answer initialize"
        return Evidence(
            surface="mcp",
            target=target,
            answers=[Answer(probe="initialize", sent="initialize", outcome="no-answer", because=because)],
        )
    capabilities = _capabilities(started)
    tools = _list((await _result(peer, "tools/list", {})).get("tools")) if "tools" in capabilities else []
    calls = [*_general(capabilities), *_arguments(tools, writes=writes)]
    answers = [
        await probe(
            peer,
            one.name,
            one.method,
            one.params,
            about=one.about,
            expected=one.expected,
            target=target,
            fields=one.fields,
        )
        for one in calls
    ]
    if not any(one.name.endswith("-argument") for one in calls):
        because = "no tool with required arguments says that it only reads; --writes probes the others, too"
        takes = any(isinstance(tool, Mapping) and _schema(tool).get("properties") for tool in tools)
        answers.append(not_probed("wrong-argument", because if takes else NO_INPUT))
    info = started.get("serverInfo")
    version = (
        " ".join(str(info.get(key, "")) for key in ("name", "version")).strip()
        if isinstance(info, Mapping)
        else ""
    )
    return Evidence(surface="mcp", target=target, answers=answers, version=version)


async def _open(peer: Peer) -> Mapping[str, object]:
    """Open a session, and return what the server says about itself; empty if it did not answer."""
    started = await _result(peer, "initialize", _HELLO)
    if started:
        with suppress(Exception):
            await peer.notify("notifications/initialized")
    return started


def _capabilities(started: Mapping[str, object]) -> Mapping[str, object]:
    offered = started.get("capabilities")
    return offered if isinstance(offered, Mapping) else {}


async def _result(peer: Peer, method: str, params: Mapping[str, object]) -> Mapping[str, object]:
    try:
        response = await peer.call(method, params)
    except Exception:  # noqa: BLE001 - the probes show what does not work
        return {}
    result = response.get("result") if isinstance(response, Mapping) else None
    return result if isinstance(result, Mapping) else {}


def _general(capabilities: Mapping[str, object]) -> Iterator[_Call]:
    yield _Call("unknown-method", "amends-audit/unknown", {}, "", "an unknown method was answered")
    if "tools" in capabilities:
        params = {"name": "amends-audit-unknown", "arguments": {}}
        yield _Call("unknown-tool", "tools/call", params, "of an unknown tool", "an unknown tool was called")
        yield _Call(
            "malformed-call",
            "tools/call",
            {"arguments": {}},
            "without name",
            "a call without name was answered",
        )
    if "resources" in capabilities:
        uri = {"uri": "amends-audit://unknown"}
        yield _Call("unknown-resource", "resources/read", uri, "of an unknown resource", "it was read")
    if "prompts" in capabilities:
        name = {"name": "amends-audit-unknown"}
        yield _Call("unknown-prompt", "prompts/get", name, "of an unknown prompt", "it was returned")


def _arguments(tools: Sequence[object], *, writes: bool) -> Iterator[_Call]:
    """Yield calls without required arguments and with arguments of a wrong type.

    Tools that say they only read come first. Without --writes others are called if there are none, but not destructive ones.
    """
    usable = [tool for tool in tools if isinstance(tool, Mapping) and _required(tool)]
    reading = [tool for tool in usable if _hints(tool).get("readOnlyHint") is True]
    others = [tool for tool in usable if tool not in reading]
    if not writes:
        mild = [tool for tool in others if _hints(tool).get("destructiveHint") is not True]
        others = [] if reading else mild
    for tool in [*reading, *others][:EACH]:
        name = str(tool.get("name"))
        missing, about = {"name": name, "arguments": {}}, f"{name} without its arguments"
        fields = tuple(map(str, _required(tool)))
        yield _Call("missing-argument", "tools/call", missing, about, "it was called", fields)
        wrong = _wrong(tool)
        if wrong:
            params, about = {"name": name, "arguments": wrong}, f"{name} with arguments of a wrong type"
            yield _Call("wrong-argument", "tools/call", params, about, "it was called", fields)


def _hints(tool: Mapping[str, object]) -> Mapping[str, object]:
    hints = tool.get("annotations")
    return hints if isinstance(hints, Mapping) else {}


def _schema(tool: Mapping[str, object]) -> Mapping[str, object]:
    schema = tool.get("inputSchema")
    return schema if isinstance(schema, Mapping) else {}


def _required(tool: Mapping[str, object]) -> list[object]:
    return _list(_schema(tool).get("required"))


def _wrong(tool: Mapping[str, object]) -> dict[str, object]:
    """Return a value of a wrong type for each required argument; empty if one of them has no type."""
    properties = _schema(tool).get("properties")
    types = {
        str(name): each.get("type") if isinstance(each, Mapping) else None
        for name, each in (properties.items() if isinstance(properties, Mapping) else ())
    }
    wrong: dict[str, object] = {}
    for name in map(str, _required(tool)):
        kind = types.get(name)
        if kind == "string":
            wrong[name] = {"amends-audit": True}
        elif isinstance(kind, str) and kind in _UNTEXT:
            wrong[name] = "amends-audit"
    return wrong if len(wrong) == len(_required(tool)) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
