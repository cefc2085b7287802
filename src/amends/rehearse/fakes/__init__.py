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
from typing import Any, Protocol

from amends.rehearse.examples import Example
from amends.rehearse.exchange import SAFE_METHODS, Answer, Request

__all__ = ["Fake", "FakeService", "make_fake"]


class Fake(Protocol):
    """A service of the stage that answers successes."""

    model: bool
    """Whether it is a model: what is sent to it is read by a model."""

    def counts(self, request: Request) -> bool:
        """Return whether a request is a call of the program, and not a handshake of its client."""

    def acts(self, request: Request) -> bool:
        """Return whether a request has an effect beyond its answer."""

    def answer(self, request: Request) -> Answer:
        """Return the ordinary answer, and do what the request asks for."""

    def failed(self, request: Request, example: Example, answer: Answer) -> Answer:
        """Return the answer of an example in the form in which this service sends it."""

    def events(self, request: Request, answer: Answer) -> tuple[bytes, ...]:
        """Return the events of a stream that report the failure of an answer."""

    def reset(self) -> None:
        """Forget everything."""


class FakeService:
    """What most fakes have in common."""

    model = False

    def counts(self, request: Request) -> bool:
        """Every request is a call."""
        return True

    def acts(self, request: Request) -> bool:
        """Requests act by their method."""
        return request.method not in SAFE_METHODS

    def answer(self, request: Request) -> Answer:
        """Each fake has its own answers."""
        raise NotImplementedError

    def failed(self, request: Request, example: Example, answer: Answer) -> Answer:
        """Failures are sent as their examples are."""
        return answer

    def events(self, request: Request, answer: Answer) -> tuple[bytes, ...]:
        """An example of a stream is its events."""
        return (answer.body,)

    def reset(self) -> None:
        """Nothing is kept."""


def make_fake(kind: str, service: str, script: Sequence[Any] = ()) -> Fake:
    """
    Return a fake service.

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
