"""
The client that the MCP conformance suite runs: `python client.py bare|amends URL`.

The suite names the scenario in MCP_CONFORMANCE_SCENARIO, the protocol version in MCP_CONFORMANCE_PROTOCOL_VERSION, and the
facts of a scenario in MCP_CONFORMANCE_CONTEXT. Its own server checks what the client sends.
"""

import asyncio
import json
import os
import sys
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

import httpx2
import mcp
import mcp_types
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "initialize")
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
# The suite's server for this scenario has the handshake only, whatever version it names.
HANDSHAKE = "json-schema-ref-no-deref"
LEGACY = (
    os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25") < "2026-07-28" or SCENARIO == HANDSHAKE
)
RETURN_TO = "http://localhost:3000/callback"
CALLS = {
    "tools_call": [("add_numbers", {"a": 5, "b": 3})],
    "request-metadata": [("add_numbers", {"a": 5, "b": 3})],
    "http-standard-headers": [("add_numbers", {"a": 5, "b": 3})],
    "sse-retry": [("test_reconnection", {})],
    "elicitation-sep1034-client-defaults": [("test_client_elicitation_defaults", {})],
    "sep-2322-client-request-state": [
        (f"test_mrtr_{name}", {}) for name in ("echo_state", "unrelated", "no_state", "no_result_type")
    ],
}
SAMPLES = {"string": "x", "integer": 0, "number": 0, "boolean": False, "object": {}, "array": []}


class Storage(TokenStorage):
    """Keeps tokens in memory."""

    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Browser:
    """A person who signs in: opens the page, and is sent back at once."""

    async def open(self, url):
        async with httpx2.AsyncClient() as http:
            location = (await http.get(url)).headers["location"]
        self.answer = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}

    async def come_back(self):
        return AuthorizationCodeResult(**{name: self.answer.get(name) for name in ("code", "state", "iss")})


def sign_in(url):
    storage, browser = Storage(), Browser()
    if "client_id" in CONTEXT:
        secret = CONTEXT.get("client_secret")
        storage.client = OAuthClientInformationFull(
            client_id=CONTEXT["client_id"],
            client_secret=secret,
            redirect_uris=[RETURN_TO],
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
        )
    return OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(
            client_name="amends",
            redirect_uris=[RETURN_TO],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
        ),
        storage=storage,
        redirect_handler=browser.open,
        callback_handler=browser.come_back,
        client_metadata_url="https://conformance-test.local/client-metadata.json",
    )


async def elicit(context, params):
    """Accept with the defaults of the schema."""
    properties = getattr(params, "requested_schema", {}).get("properties", {})
    given = {name: schema["default"] for name, schema in properties.items() if "default" in schema}
    if SCENARIO == "sep-2322-client-request-state":
        given = {"confirmed": True}
    return mcp_types.ElicitResult(action="accept", content=given)


async def sample(context, params):
    return mcp_types.CreateMessageResult(
        role="assistant", content=mcp_types.TextContent(text=""), model="none"
    )


async def list_roots(context):
    return mcp_types.ListRootsResult(roots=[])


def make_client(kind, url):
    options = {"mode": "legacy" if LEGACY else "auto", "elicitation_callback": elicit}
    if SCENARIO == "request-metadata":
        options |= {"sampling_callback": sample, "list_roots_callback": list_roots}
    http = httpx2.AsyncClient(auth=sign_in(url), timeout=30) if SCENARIO.startswith("auth/") else None
    if kind == "amends":
        from amends.bindings.mcp import Client

        return Client(url, http_client=http, **options)
    return mcp.Client(url if http is None else streamable_http_client(url, http_client=http), **options)


def calls(tools):
    """Return the calls of the scenario: name, arguments, and whether the call may fail."""
    if SCENARIO.startswith("auth/"):
        return [(tool.name, {}, True) for tool in tools[:1]]
    if SCENARIO == "http-custom-headers":
        listed = {tool.name for tool in tools}
        given = [(call["name"], call.get("arguments") or {}) for call in CONTEXT.get("toolCalls", ())]
        return [(name, arguments, True) for name, arguments in given if name in listed]
    if SCENARIO == "http-invalid-tool-headers":
        return [(tool.name, required(tool.input_schema), True) for tool in tools]
    if SCENARIO == "json-schema-2020-12-preservation":
        schema = next(tool.input_schema for tool in tools if tool.name == "json_schema_2020_12_tool")
        return [("json_schema_echo", {"schema": schema}, False)]
    return [(*call, False) for call in CALLS.get(SCENARIO, ())]


def required(schema):
    properties = schema.get("properties", {})
    return {
        name: SAMPLES.get(properties.get(name, {}).get("type"), "x") for name in schema.get("required", ())
    }


async def main(kind, url):
    async with make_client(kind, url) as client:
        tools = (await client.list_tools()).tools
        for name, arguments, may_fail in calls(tools):
            with suppress(*((Exception,) if may_fail else ())):
                await client.call_tool(name, arguments)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
