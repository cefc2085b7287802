"""The recipes of docs/sdks.md with streams, and with limits in the headers of successful answers."""

import asyncio

import pytest

from amends import from_exception
from tests.sdks import clients
from tests.sdks.server import Answer, serving
from tests.sdks.test_models import LONG, PART, SSE, START, chunk, claude, failed, stream


@pytest.fixture(autouse=True)
def keys(monkeypatch, amends_clock):
    """Nothing waits, and the SDKs have keys."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, "k")


def openai_client(url):
    import httpx2
    import openai

    from amends.bindings.httpx import Transport

    client = httpx2.Client(transport=Transport(raises="nothing", vendor="openai"))
    return openai.OpenAI(base_url=f"{url}/v1", http_client=client, max_retries=0)


def openai(url):
    yield from openai_client(url).chat.completions.create(model="m", messages=clients.CHAT, stream=True)


def anthropic(url):
    import anthropic
    import httpx2

    from amends.bindings.httpx import Transport

    client = httpx2.Client(transport=Transport(raises="nothing", vendor="anthropic"))
    sdk = anthropic.Anthropic(base_url=url, http_client=client, max_retries=0)
    yield from sdk.messages.create(model="m", max_tokens=9, messages=clients.CHAT, stream=True)


def google_genai(url):
    import httpx2
    from google import genai
    from google.genai import types

    from amends.bindings.httpx import Transport

    client = httpx2.Client(transport=Transport(raises="nothing", vendor="google"))
    retries = types.HttpRetryOptions(attempts=1)
    options = types.HttpOptions(base_url=url, httpx_client=client, retry_options=retries)
    sdk = genai.Client(http_options=options)
    yield from sdk.models.generate_content_stream(model="m", contents="x")


def text(value):
    return ("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": value}})  # fmt: skip


def events(*values, **more):
    return Answer(200, stream(*values), SSE, **more)


BUSY, OVER = failed("rate_limit_exceeded", "tokens"), failed("insufficient_quota", "insufficient_quota")
DOWN = {"error": {"code": 503, "message": "x", "status": "UNAVAILABLE"}}
FINE = {
    openai: Answer(200, stream(chunk(content="a"), chunk(content="b"), last="data: [DONE]\n\n"), SSE),
    anthropic: events(START, text("a"), ("message_stop", {"type": "message_stop"})),
    google_genai: events(PART, PART),
}
STREAMS = [
    # (the SDK, its first answer, calls, events that the caller gets, code of the failure)
    (openai, events(BUSY), 2, 2, None),
    (openai, events(chunk(role="assistant", content=""), BUSY), 2, 2, None),
    (openai, events(OVER), 1, 0, "QUOTA_EXCEEDED"),
    (openai, events(chunk(content="a"), BUSY), 1, 1, "RATE_LIMITED"),
    (openai, events(chunk(content="a"), OVER), 1, 1, "QUOTA_EXCEEDED"),
    (openai, events(chunk(content="a"), chunk(content=LONG), cut=300), 1, 1, "SERVICE_UNAVAILABLE"),
    (openai, events(chunk(content=LONG), cut=10), 2, 2, None),
    (anthropic, events(claude("overloaded_error")), 2, 3, None),
    (anthropic, events(START, ("ping", {"type": "ping"}), claude("overloaded_error")), 2, 3, None),
    (anthropic, events(claude("billing_error")), 1, 0, "QUOTA_EXCEEDED"),
    (anthropic, events(START, text("a"), claude("overloaded_error")), 1, 2, "OVERLOADED"),
    (google_genai, events(DOWN), 2, 2, None),
    (google_genai, events(PART, DOWN), 1, 1, "SERVICE_UNAVAILABLE"),
]


@pytest.mark.parametrize(("call", "first", "calls", "delivered", "code"), STREAMS)
def test_a_stream(call, first, calls, delivered, code):
    """A failure before the first token is repeated, one after it is raised, and exhausted money never is repeated."""
    got = []
    with serving(first, FINE[call]) as server:
        error = None
        try:
            for each in call(server.url):
                got.append(each)
        except Exception as raised_error:
            error = raised_error
    assert (len(server.requests), len(got)) == (calls, delivered)
    assert (None if error is None else from_exception(error).code) == code


COMPLETION = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": []}


def test_limits_of_a_successful_answer(amends_clock):
    """An answer that allows no more calls for 20 seconds delays the next one."""
    limits = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20s"}
    with serving(Answer(200, COMPLETION, limits), Answer(200, COMPLETION)) as server:
        client = openai_client(server.url)
        for _ in range(2):
            client.chat.completions.create(model="m", messages=clients.CHAT)
    assert amends_clock.waited == pytest.approx(20, abs=1)


def test_limits_with_requests(amends_clock):
    """The same over requests, as stripe and PyGithub use it."""
    import requests

    from amends.bindings.requests import Adapter

    with serving(Answer(200, {}, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "20"}), Answer(200, {})) as server:  # fmt: skip
        session = requests.Session()
        session.mount("http://", Adapter(raises="nothing", vendor="github"))
        for _ in range(2):
            session.get(server.url)
    assert amends_clock.waited == pytest.approx(20, abs=1)


def test_limits_with_aiohttp(amends_clock):
    """The same over aiohttp, as slack-sdk uses it."""
    import aiohttp

    from amends.bindings.aiohttp import recovering

    async def call(url):
        async with aiohttp.ClientSession(
            middlewares=[recovering(raises="nothing", vendor="slack")]
        ) as session:
            for _ in range(2):
                async with session.get(url) as response:
                    await response.read()

    with serving(Answer(200, {"ok": True}, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "20"}), Answer(200, {"ok": True})) as server:  # fmt: skip
        asyncio.run(call(server.url))
    assert amends_clock.waited == pytest.approx(20, abs=1)
