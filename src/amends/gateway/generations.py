"""
Messages between two generations of MCP: with sessions (up to 2025-11-25) and without (2026-07-28).

Tools, resources and prompts are translated, in both directions. Only what the other generation demands is added: arguments,
results and errors stay as they were written. Pure.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

import msgspec

from amends.core.enums import Executed
from amends.core.executed import executed_by_status
from amends.gateway.rpc import Message, read_members
from amends.proof import Claim, Proof, rests_on

__all__ = [
    "MODERN",
    "PASSED",
    "Client",
    "argument_headers",
    "discover_request",
    "discover_result",
    "error_response",
    "initialize_request",
    "initialize_result",
    "is_modern",
    "marked_tools",
    "refuses_generation",
    "refuses_request",
    "request_to_legacy",
    "request_to_modern",
    "response",
    "response_to_legacy",
    "response_to_modern",
    "routing_headers",
]

MODERN = "2026-07-28"
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_LISTS = frozenset(
    {"tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list"}
)
PASSED = _LISTS | {"tools/call", "prompts/get"}
"""The methods that are translated. Every other is answered with "method not found"."""
_FEATURES = ("tools", "resources", "prompts")
_PREFIX = "io.modelcontextprotocol/"
_VERSION, _INFO, _ABLE = f"{_PREFIX}protocolVersion", f"{_PREFIX}clientInfo", f"{_PREFIX}clientCapabilities"
_SERVER = f"{_PREFIX}serverInfo"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_OWN = {"name": "amends-gateway", "version": "1"}
_REFUSALS = frozenset({-32022, -32020, -32602, -32601, -32600, -32002, -32000})
"""Errors that servers of either generation send to a request of the other."""
_NOT_EXECUTED = frozenset({-32022, -32020, -32601, -32600})
"""Those of them with which a server can only refuse the request itself. A tool may fail with the others, too."""
_NOT_FOUND, _INVALID = -32601, -32600
_SAFE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


class Client(msgspec.Struct, frozen=True):
    """What a client said about itself, as it wrote it."""

    info: msgspec.Raw = msgspec.Raw(msgspec.json.encode(_OWN))
    version: str = LEGACY[-1]
    """The version that it asked for."""

    @classmethod
    def of_initialize(cls, params: object) -> Client:
        """Return the client of an `initialize`."""
        given = params if isinstance(params, dict) else {}
        version = given.get("protocolVersion")
        return cls(_raw(given.get("clientInfo") or _OWN), version if version in LEGACY else LEGACY[-1])

    @classmethod
    def of_envelope(cls, params: object) -> Client:
        """Return the client of a request of 2026-07-28."""
        meta = params.get("_meta") if isinstance(params, dict) else None
        info = meta.get(_INFO) if isinstance(meta, dict) else None
        return cls(_raw(info or _OWN))


def is_modern(params: object) -> bool:
    """
    Return whether a request is one of 2026-07-28: it names the protocol in its own `_meta`.

    >>> is_modern({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}), is_modern({})
    (True, False)
    """
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and meta.get(_VERSION) == MODERN


def refuses_generation(status: int, body: bytes) -> bool:
    """Return whether an answer can mean that the server speaks the other generation only."""
    if status in {404, 405, 406, 415}:
        return True
    message = read_members(body)
    if message is None or "error" not in message:
        return status == 400
    error = msgspec.json.decode(message["error"])
    return isinstance(error, dict) and error.get("code") in _REFUSALS


@rests_on(Claim.NOT_HAPPENED, Proof.STATUS)
def refuses_request(status: int, body: bytes) -> bool:
    """
    Return whether an answer proves that the server executed nothing, so that the request can be sent in another form.

    >>> refuses_request(400, b""), refuses_request(500, b'{"error":{"code":-32601}}'), refuses_request(200, b'{"error":{"code":-32602}}')
    (True, False, False)
    """
    if status >= 300:
        return executed_by_status(status) is Executed.NO
    message = read_members(body)
    error = None if message is None or "error" not in message else msgspec.json.decode(message["error"])
    return isinstance(error, dict) and error.get("code") in _NOT_EXECUTED


# Requests ------------------------------------------------------------------------------------------------------


def request_to_modern(message: Message, client: Client) -> Message:
    """
    Return a request with the envelope of 2026-07-28. The client's abilities are left out: it cannot be asked anything.

    >>> message = read_members(b'{"id":1,"method":"tools/call","params":{"name":"pay","arguments":{"eur": 1.50}}}')
    >>> print(bytes(request_to_modern(message, Client())["params"]).decode()[:41])
    {"name":"pay","arguments":{"eur": 1.50},"
    """
    if not _is_object(message.get("params")):
        return message
    params = _members(message.get("params"))
    meta = _members(params.get("_meta"))
    meta |= {_VERSION: _raw(MODERN), _INFO: client.info, _ABLE: _raw({})}
    return {**message, "params": _raw({**params, "_meta": meta})}


def request_to_legacy(message: Message) -> Message:
    """Return a request without the envelope of 2026-07-28; what else is in `_meta` stays."""
    if not _is_object(message.get("params")):
        return message
    params = _members(message.get("params"))
    meta = _members(params.pop("_meta", None))
    kept = {name: value for name, value in meta.items() if not name.startswith(_PREFIX)}
    if kept:
        params["_meta"] = _raw(kept)
    return {**message, "params": _raw(params)}


def discover_request(client: Client, id: str = "amends-discover") -> Message:
    """Return the request that asks a server of 2026-07-28 about itself."""
    message = {"jsonrpc": _raw("2.0"), "id": _raw(id), "method": _raw("server/discover")}
    return request_to_modern(message, client)


def initialize_request(client: Client, id: str = "amends-initialize") -> Message:
    """Return the request that opens a session for a client that has none. It can be asked nothing."""
    params = {"protocolVersion": LEGACY[-1], "capabilities": {}, "clientInfo": client.info}
    return {
        "jsonrpc": _raw("2.0"),
        "id": _raw(id),
        "method": _raw("initialize"),
        "params": _raw(params),
    }


def routing_headers(method: str, params: object) -> list[tuple[str, str]]:
    """
    Return the headers that repeat parts of a request of 2026-07-28.

    >>> routing_headers("tools/call", {"name": "zahlen €"})[1:]
    [('mcp-method', 'tools/call'), ('mcp-name', '=?base64?emFobGVuIOKCrA==?=')]
    """
    headers = [("mcp-protocol-version", MODERN), ("mcp-method", method)]
    name = params.get(_NAMED.get(method, "")) if isinstance(params, dict) else None
    if isinstance(name, str):
        headers.append(("mcp-name", _header_value(name)))
    return headers


def marked_tools(message: object) -> dict[str, dict[tuple[str, ...], str]]:
    """Return the tools of a listing, each with the arguments that its schema marks with `x-mcp-header`."""
    result = message.get("result") if isinstance(message, dict) else None
    tools = result.get("tools") if isinstance(result, dict) else None
    return {
        tool["name"]: dict(_marked(tool.get("inputSchema"), (), 0))
        for tool in (tools if isinstance(tools, list) else ())
        if isinstance(tool, dict) and isinstance(tool.get("name"), str)
    }


def _marked(schema: object, path: tuple[str, ...], depth: int) -> Iterator[tuple[tuple[str, ...], str]]:
    properties = schema.get("properties") if isinstance(schema, dict) and depth < 16 else None
    for name, each in properties.items() if isinstance(properties, dict) else ():
        token = each.get("x-mcp-header") if isinstance(each, dict) else None
        if isinstance(token, str) and _TOKEN.fullmatch(token):
            yield (*path, name), token
        yield from _marked(each, (*path, name), depth + 1)


def argument_headers(marked: dict[tuple[str, ...], str], params: object) -> list[tuple[str, str]]:
    """Return the headers that repeat marked arguments of a call."""
    found = []
    for path, token in marked.items():
        value = params.get("arguments") if isinstance(params, dict) else None
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, bool):
            value = str(value).lower()
        if isinstance(value, str | int | float):
            found.append((f"mcp-param-{token.lower()}", _header_value(str(value))))
    return found


def _header_value(value: str) -> str:
    if _SAFE.fullmatch(value) and not value.startswith("=?base64?"):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="


# Responses -----------------------------------------------------------------------------------------------------


def response(id: msgspec.Raw, result: object) -> Message:
    """Return a response of the gateway's own."""
    return {"jsonrpc": _raw("2.0"), "id": id, "result": _raw(result)}


def error_response(id: msgspec.Raw, method: str) -> Message:
    """Return the answer to a method that is not translated."""
    text = f"{method} does not pass between generations of the protocol: tools, resources and prompts do"
    return {"jsonrpc": _raw("2.0"), "id": id, "error": _raw({"code": _NOT_FOUND, "message": text})}


def response_to_modern(message: Message, method: str) -> Message:
    """
    Return a response for a client of 2026-07-28: with the type of its result, and not to be cached.

    >>> message = read_members(b'{"id":1,"result":{"tools":[ ]}}')
    >>> print(bytes(response_to_modern(message, "tools/list")["result"]).decode())
    {"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[ ]}
    """
    if "result" not in message or not _is_object(message["result"]):
        return message
    result = _members(message["result"])
    added: dict[str, object] = {"resultType": "complete"}
    if method in _LISTS:
        added |= {"ttlMs": 0, "cacheScope": "private"}
    return {**message, "result": _raw({**added, **result})}


def response_to_legacy(message: Message) -> Message:
    """Return a response for a client with a session. A question to the user, which it cannot answer, becomes an error."""
    result = _members(message.get("result"))
    if bytes(result.get("resultType", b'"complete"')) == b'"complete"' or "result" not in message:
        return message
    error = {"code": _INVALID, "message": "The server asks for input, which needs a client of 2026-07-28"}
    kept = {name: value for name, value in message.items() if name != "result"}
    return {**kept, "error": _raw({**error, "data": msgspec.Raw(bytes(message["result"]))})}


def initialize_result(discovered: dict[str, object], client: Client, name: str) -> dict[str, object]:
    """Return the result of `initialize` from that of `server/discover`: what passes, and who the server is."""
    meta = discovered.get("_meta")
    info = (meta.get(_SERVER) if isinstance(meta, dict) else None) or discovered.get("serverInfo")
    result = {
        "protocolVersion": client.version,
        "capabilities": _abilities(discovered),
        "serverInfo": info if isinstance(info, dict) else {"name": name, "version": ""},
    }
    return result | _instructions(discovered)


def discover_result(initialized: dict[str, object]) -> dict[str, object]:
    """Return the result of `server/discover` from that of `initialize`."""
    result = {
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": _abilities(initialized),
        "ttlMs": 0,
        "cacheScope": "private",
    }
    info = initialized.get("serverInfo")
    if isinstance(info, dict):
        result["_meta"] = {_SERVER: info}
    return result | _instructions(initialized)


def _abilities(result: dict[str, object]) -> dict[str, object]:
    given = result.get("capabilities")
    return {name: {} for name in _FEATURES if isinstance(given, dict) and isinstance(given.get(name), dict)}


def _instructions(result: dict[str, object]) -> dict[str, object]:
    text = result.get("instructions")
    return {"instructions": text} if isinstance(text, str) else {}


def _is_object(value: msgspec.Raw | None) -> bool:
    """Return whether a member is an object or absent; any other passes unchanged."""
    return value is None or read_members(bytes(value)) is not None


def _members(value: msgspec.Raw | None) -> dict[str, msgspec.Raw]:
    return (None if value is None else read_members(bytes(value))) or {}


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
