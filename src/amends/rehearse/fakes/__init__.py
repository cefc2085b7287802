"""
Services that answer successes, so that a rehearsal needs nothing outside.

    openai      an OpenAI-compatible model: chat, responses, embeddings, streams, tool calls
    anthropic   an Anthropic-compatible model: messages, streams, tool calls
    rest        a store with collections, as of orders; every POST makes a record
    mcp         an MCP server with tools (streamable HTTP)
    a2a         an A2A agent (JSON-RPC)

Models are scripted and answer by what is in the request alone, so that a repeat gets the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amends.rehearse.fakes.fake import Fake, FakeService

__all__ = ["Fake", "FakeService", "make_fake"]


def make_fake(kind: str, service: str, script: Sequence[Any] = ()) -> Fake:
    """
    Return a fake service.

    >>> from amends.rehearse.exchange import Request
    >>> make_fake("rest", "orders").answer(Request("orders", "POST", "/orders", body=b'{"item": "tea"}')).status
    201
    """
    if kind == "openai":
        from amends.rehearse.fakes.openai import OpenAIFake

        return OpenAIFake(script)
    if kind == "anthropic":
        from amends.rehearse.fakes.anthropic import AnthropicFake

        return AnthropicFake(script)
    if kind == "mcp":
        from amends.rehearse.fakes.mcp import McpFake

        return McpFake()
    if kind == "a2a":
        from amends.rehearse.fakes.a2a import A2AFake

        return A2AFake()
    if kind == "rest":
        from amends.rehearse.fakes.rest import RestFake

        return RestFake(service)
    raise ValueError(f"there is no fake {kind!r}; there are openai, anthropic, rest, mcp and a2a")
