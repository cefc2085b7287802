"""The probes of an MCP server: unknown methods, tools, resources and prompts, and arguments that a tool must refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from amends.audit.surfaces.evidence import Answer, Evidence, not_probed
from amends.audit.surfaces.exchange import Exchange
from amends.audit.surfaces.jsonrpc import HttpPeer, Peer, ProcessPeer, probe

__all__ = ["observe_mcp"]

PROTOCOL = "2025-11-25"
EACH = 3
"""Tools that a kind of probe is sent to."""
_UNTEXT = frozenset({"integer", "number", "boolean", "object", "array"})


async def observe_mcp(
    url: str = "",
    *,
    command: Sequence[str] = (),
    app: Any = None,
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
    if command:
        async with ProcessPeer(command) as peer:
            return await _observe(peer, " ".join(command), writes=writes)
    parts = urlsplit(url)
    async with _lifespan(app), Exchange(f"{parts.scheme}://{parts.netloc}", headers, app) as exchange:
        http = HttpPeer(exchange, parts.path or "/mcp", {"MCP-Protocol-Version": PROTOCOL})
        evidence = await _observe(http, url, writes=writes)
        http.headers["Mcp-Session-Id"] = "amends-audit-unknown"
        lost = await probe(
            http, "unknown-session", "tools/list", {}, about="in a session that does not exist", target=url
        )
        evidence.answers.append(
            not_probed("unknown-session", "the server has no sessions") if lost.outcome == "success" else lost
        )
        return evidence


@asynccontextmanager
async def _lifespan(app: Any) -> Any:
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
    params: dict[str, Any]
    about: str
    expected: str = ""


async def _observe(peer: Peer, target: str, *, writes: bool) -> Evidence:
    started = await _result(
        peer,
        "initialize",
        {
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": "amends-audit", "version": "1"},
        },
    )
    if not started:
        because = "the server did not answer initialize"
        return Evidence(
            surface="mcp",
            target=target,
            answers=[Answer(probe="initialize", sent="initialize", outcome="no-answer", because=because)],
        )
    with suppress(Exception):
        await peer.notify("notifications/initialized")
    offered = started.get("capabilities")
    capabilities: Mapping[str, Any] = offered if isinstance(offered, Mapping) else {}
    tools = _list((await _result(peer, "tools/list", {})).get("tools")) if "tools" in capabilities else []
    calls = [*_general(capabilities), *_arguments(tools, writes=writes)]
    answers = [
        await probe(
            peer, one.name, one.method, one.params, about=one.about, expected=one.expected, target=target
        )
        for one in calls
    ]
    if not any(one.name.endswith("-argument") for one in calls):
        because = "no tool with required arguments says that it only reads; --writes probes the others, too"
        answers.append(not_probed("wrong-argument", because if tools else "there are no tools"))
    info = started.get("serverInfo")
    version = (
        " ".join(str(info.get(key, "")) for key in ("name", "version")) if isinstance(info, Mapping) else ""
    )
    return Evidence(surface="mcp", target=target, answers=answers, version=version)


async def _result(peer: Peer, method: str, params: dict[str, Any]) -> Mapping[str, Any]:
    try:
        response = await peer.call(method, params)
    except Exception:  # noqa: BLE001 - the probes show what does not work
        return {}
    result = response.get("result") if isinstance(response, Mapping) else None
    return result if isinstance(result, Mapping) else {}


def _general(capabilities: Mapping[str, Any]) -> Iterator[_Call]:
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


def _arguments(tools: Sequence[Any], *, writes: bool) -> Iterator[_Call]:
    """Calls without required arguments and with arguments of a wrong type, of tools that only read first."""
    usable = [tool for tool in tools if isinstance(tool, Mapping) and _required(tool)]
    reading = [tool for tool in usable if _hints(tool).get("readOnlyHint") is True]
    chosen = (reading + ([tool for tool in usable if tool not in reading] if writes or not reading else []))[
        :EACH
    ]
    for tool in chosen:
        name = str(tool.get("name"))
        missing = {"name": name, "arguments": {}}
        yield _Call(
            "missing-argument", "tools/call", missing, f"{name} without its arguments", "it was called"
        )
        wrong = _wrong(tool)
        if wrong:
            params = {"name": name, "arguments": wrong}
            yield _Call(
                "wrong-argument",
                "tools/call",
                params,
                f"{name} with arguments of a wrong type",
                "it was called",
            )


def _hints(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    hints = tool.get("annotations")
    return hints if isinstance(hints, Mapping) else {}


def _schema(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = tool.get("inputSchema")
    return schema if isinstance(schema, Mapping) else {}


def _required(tool: Mapping[str, Any]) -> list[Any]:
    return _list(_schema(tool).get("required"))


def _wrong(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value of a wrong type for each required argument; empty if one of them has no type."""
    properties = _schema(tool).get("properties")
    types = {
        str(name): each.get("type") if isinstance(each, Mapping) else None
        for name, each in (properties.items() if isinstance(properties, Mapping) else ())
    }
    wrong: dict[str, Any] = {}
    for name in map(str, _required(tool)):
        kind = types.get(name)
        if kind == "string":
            wrong[name] = {"amends-audit": True}
        elif isinstance(kind, str) and kind in _UNTEXT:
            wrong[name] = "amends-audit"
    return wrong if len(wrong) == len(_required(tool)) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
