"""Which requests to a route that computes do nothing else: those that name nothing that acts or stays at the service."""

import json

import pytest

from amends.vendors.computing import only_computes, route_computes
from amends.vendors.registry import names, vendor

SCHEMA = {"type": "object", "properties": {"file_id": {"type": "string"}}}
CALLER = {"type": "function", "function": {"name": "look", "parameters": SCHEMA}}

CASES = [
    ("openai", {"messages": []}, True),
    ("openai", {"messages": [], "tools": [CALLER, {"type": "custom", "name": "x"}]}, True),
    ("openai", {"input": "x", "store": False, "previous_response_id": None}, True),
    ("openai", {"prompt": "a text of the older route"}, True),
    ("openai", {"input": [{"type": "function_call", "arguments": {"file_id": "mine"}}]}, True),
    ("openai", {"input": "x", "store": True}, False),
    ("openai", {"input": "x", "background": True}, False),
    ("openai", {"input": "x", "conversation": "conv_1"}, False),
    ("openai", {"input": "x", "previous_response_id": "resp_1"}, False),
    ("openai", {"prompt": {"id": "pmpt_1"}}, False),
    *(
        ("openai", {"input": "x", "tools": [CALLER, {"type": kind}]}, False)
        for kind in ("web_search", "web_search_preview_2025_03_11", "file_search", "code_interpreter", "mcp", "image_generation")
    ),
    ("openai", {"input": "x", "tools": [{"name": "without a type"}]}, False),
    ("openai", {"input": "x", "tools": {"type": "mcp"}}, False),
    ("openai", {"input": [{"content": [{"type": "input_file", "file_id": "file-1"}]}]}, False),
    ("openai", {"input": "x", "tools": [CALLER] * 3000 + [{"type": "mcp"}]}, False),
    ("anthropic", {"messages": [], "tools": [{"name": "look", "input_schema": SCHEMA}]}, True),
    ("anthropic", {"messages": [], "tools": [{"type": "bash_20250124", "name": "bash"}]}, True),
    ("anthropic", {"messages": [{"content": [{"type": "tool_use", "input": {"file_id": "mine"}}]}]}, True),
    ("anthropic", {"messages": [], "tools": [{"type": "web_search_20250305", "name": "s"}]}, False),
    ("anthropic", {"messages": [], "tools": [{"type": "code_execution_20250825", "name": "s"}]}, False),
    ("anthropic", {"messages": [], "mcp_servers": [{"url": "https://x"}]}, False),
    ("anthropic", {"messages": [], "container": "c_1"}, False),
    ("anthropic", {"messages": [{"content": [{"source": {"type": "file", "file_id": "f"}}]}]}, False),
    ("google", {"contents": [], "tools": [{"functionDeclarations": [{"name": "look", "parameters": SCHEMA}]}]}, True),
    ("google", {"contents": [], "tools": [{"googleSearch": {}}]}, False),
    ("google", {"contents": [], "tools": [{"functionDeclarations": [], "codeExecution": {}}]}, False),
    ("google", {"contents": [{"parts": [{"fileData": {"fileUri": "gs://b/x"}}]}]}, False),
    ("aws", {"messages": [], "toolConfig": {"tools": [{"toolSpec": {"name": "look"}}]}}, True),
    ("aws", {"messages": [], "toolConfig": {"tools": [{"systemTool": {"name": "nova_grounding"}}]}}, False),
    ("groq", {"model": "groq/compound", "messages": []}, False),
    ("mistral", {"agent_id": "ag_1", "messages": []}, False),
    ("openrouter", {"model": "m:online", "messages": []}, False),
    ("litellm", {"messages": [], "tools": [CALLER]}, True),
    ("litellm", {"messages": [], "tools": [{"type": "mcp"}]}, False),
    ("portkey", {"input": "x", "background": True}, False),
    ("firecrawl", {"url": "https://a.example"}, True),
    ("firecrawl", {"url": "https://a.example", "actions": [{"type": "click"}]}, False),
    ("zyte", {"url": "https://a.example", "httpRequestMethod": "POST"}, False),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{str(case[1])[:60]}")
def test_what_a_request_names(case):
    """Hosted tools, remote MCP servers, background runs, stored conversations and files; a caller's own tools are none of them."""
    name, body, computes = case
    assert only_computes(vendor(name), json.dumps(body).encode(), {}) is computes


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (None, {}),
        (b"not JSON", {}),
        (b"[1]", {}),
        (b"{}", {"content-encoding": "gzip"}),
        (b"--x\r\n", {"content-type": "multipart/form-data; boundary=x"}),
        (b'{"a":' * 100 + b"1" + b"}" * 100, {}),
        (json.dumps({"a": [1] * 30_000}).encode(), {}),
    ],
)
def test_what_cannot_be_read_counts_as_naming_something(body, headers):
    """It fails closed: bodies that are not whole, encoded, too deep or too large to be looked through."""
    assert not only_computes(vendor("openai"), body, headers)


def test_callbacks_in_addresses_and_headers():
    """A transcription that calls back, and a task in the background, are not only computed."""
    audio = {"content-type": "audio/wav"}
    assert only_computes(vendor("deepgram"), b"\0\1", audio, "model=nova")
    assert not only_computes(vendor("deepgram"), b"\0\1", audio, "callback=https%3A%2F%2Fx")
    assert not only_computes(vendor("dashscope"), b"{}", {"x-dashscope-async": "enable"})


SEARCHES = frozenset(
    [
        "bls",
        "brave",
        "couchdb",
        "deepl",
        "elasticsearch",
        "exa",
        "linkup",
        "meilisearch",
        "milvus",
        "pinecone",
        "qdrant",
        "runpod",
        "serpapi",
        "tavily",
        "typesense",
    ]
)
"""Services whose routes look something up, and do nothing else whatever a request names."""


def test_every_model_service_says_what_acts():
    """Each shipped file with routes that compute has the conditions, unless its routes only search."""
    without = {name for name in names() if vendor(name).computes and vendor(name).acts is None}
    assert without == SEARCHES
    assert route_computes(vendor("openai"), "POST", "/v1/responses")
    assert not route_computes(vendor("openai"), "POST", "/v1/files")
