"""Routes: the next upstream is called where the first cannot help, and only if that is safe."""

import asyncio
import json

import pytest

from amends.gateway import read_config
from amends.gateway.config import UpstreamConfig
from amends.gateway.config_file import ConfigError
from tests.gateway.peers import OK, Upstream, answer, free_port, http, serving
from tests.gateway.test_computing import failed
from tests.gateway.test_http_upstream import ask

BODY = {"model": "gpt-5", "messages": [{"role": "user", "content": "x"}], "seed": 1.50}


def chat(*upstreams, first=None, second=None, **options):
    """Return the configurations of two upstreams and of a route to them."""
    names = ("first", "second", "third")
    given = (first or {}, second or {}, {})
    targets = [
        http(up, name=name, prefix=f"/{name}", vendor="openai", **more)
        for up, name, more in zip(upstreams, names, given, strict=False)
    ]
    to = tuple(each.name for each in targets)
    return *targets, UpstreamConfig(name="chat", kind="route", prefix="/chat", to=to, **options)


async def post(gateway, *headers, body=BODY, path="/chat/v1/chat/completions"):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await ask(gateway, path, b"content-type: application/json", *headers, method="POST", body=data)


@pytest.mark.parametrize(
    "first",
    [
        failed(503),
        failed(500),
        failed(429, "rate_limit", b"retry-after: 60"),
        failed(429, "insufficient_quota"),
        failed(529),
        "close",
    ],
)
async def test_the_next_upstream_answers(first):
    """For load, quota and no answer; the caller learns who answered, and the first is preferred again once it works."""
    async with Upstream(first) as one, Upstream(OK) as two, serving(*chat(one, two)) as gateway:
        status, sent, body = await post(gateway)
        assert (status, body) == (200, b"ok")
        assert (dict(sent)[b"amends-upstream"], dict(sent)[b"amends-tries"]) == (b"second", b"2")
        assert (len(one.requests), len(two.requests)) == (1, 1)
        assert (
            gateway.upstreams[2].stats.failovers
            + gateway.upstreams[0].stats.failovers
            + gateway.upstreams[1].stats.failovers
            == 1
        )


async def test_an_upstream_that_cannot_be_reached():
    """The connection is refused."""
    async with Upstream(OK) as two:
        dead = f"http://127.0.0.1:{free_port()}"
        async with serving(*chat(two, two, first={"url": dead})) as gateway:
            assert (await post(gateway))[0] == 200


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_wrong_request_goes_to_no_other_upstream(status):
    """It would be wrong there, too."""
    async with Upstream(failed(status, "invalid_request_error")) as one, Upstream(OK) as two:
        async with serving(*chat(one, two)) as gateway:
            assert (await post(gateway))[0] == status
        assert two.requests == []


@pytest.mark.parametrize(
    ("first", "moves"), [(failed(500), False), ("close", False), (failed(429, "rate_limit"), True)]
)
async def test_what_may_have_happened_is_not_done_elsewhere(first, moves):
    """A hosted tool may have acted: only a refused call goes to the next upstream."""
    async with Upstream(first) as one, Upstream(OK) as two, serving(*chat(one, two)) as gateway:
        await post(gateway, body={**BODY, "tools": [{"type": "mcp"}]})
        assert (len(two.requests) == 1) is moves


async def test_the_model_and_the_credentials_of_the_next_upstream(monkeypatch):
    """Its own name of the model, its own key from the environment; nothing of the caller's. The first gets what the caller sent."""
    monkeypatch.setenv("SECOND_KEY", "of-the-second")
    second = {"model": {"gpt-5": "gpt-5-azure"}, "credentials": {"api-key": "SECOND_KEY"}}
    secrets = (b"authorization: Bearer sk-1", b"cookie: a=sk-2", b"x-api-key: sk-3", b"x-custom-login: sk-4")
    path = "/chat/v1/chat/completions?api-version=1&api_key=sk-5"
    async with (
        Upstream(failed(503)) as one,
        Upstream(OK) as two,
        serving(*chat(one, two, second=second)) as gateway,
    ):
        assert (await post(gateway, *secrets, path=path))[0] == 200
    assert all(f"sk-{number}".encode() in one.requests[0] for number in range(1, 6))
    head, _, body = two.requests[0].partition(b"\r\n\r\n")
    assert b"sk-" not in two.requests[0]
    assert b"api-key: of-the-second" in head
    assert b"api-version=1" in head
    assert body == json.dumps(BODY, separators=(",", ":")).replace(
        '"gpt-5"', '"gpt-5-azure"'
    ).encode().replace(b'[{"role":"user","content":"x"}]', json.dumps(BODY["messages"]).encode())


async def test_an_upstream_without_credentials_of_its_own_gets_none():
    """The caller's key belongs to the first."""
    async with Upstream(failed(503)) as one, Upstream(OK) as two, serving(*chat(one, two)) as gateway:
        assert (await post(gateway, b"authorization: Bearer sk-1"))[0] == 200
    assert b"uthorization" not in two.requests[0]


async def test_the_tries_cover_all_upstreams():
    """No bouncing: three tries in all, and the last failure is passed on."""
    async with Upstream(failed(503)) as one, Upstream(failed(503)) as two, Upstream(failed(503)) as three:
        async with serving(*chat(one, two, three)) as gateway:
            assert (await post(gateway))[0] == 503
        assert len(one.requests) + len(two.requests) + len(three.requests) == 3


async def test_while_the_first_is_held_the_next_answers_at_once_and_it_returns():
    """Callers do not wait for the first; when its time is over, it is called again."""
    limited = failed(429, "rate_limit", b"retry-after: 2")
    async with Upstream(limited, OK) as one, Upstream(OK) as two, serving(*chat(one, two)) as gateway:
        answers = [await post(gateway) for _ in range(4)]
        assert {status for status, *_ in answers} == {200}
        assert len(one.requests) == 1
        async with asyncio.timeout(30):
            while len(one.requests) < 2:
                await post(gateway)
                await asyncio.sleep(0.1)


async def test_a_session_stays_at_its_upstream():
    """A conversation that the second has begun is continued there, by a header or an MCP session."""
    begun = answer(200, b"ok", b"mcp-session-id: s-1")
    async with Upstream(failed(503), OK) as one, Upstream(begun) as two:
        async with serving(*chat(one, two, session="x-conversation")) as gateway:
            await post(gateway, b"x-conversation: c-1")
            for header in (b"x-conversation: c-1", b"mcp-session-id: s-1"):
                for _ in range(2):
                    assert (await post(gateway, header))[0] == 200
        assert (len(one.requests), len(two.requests)) == (1, 5)


async def test_a_context_that_is_too_long():
    """It goes to the upstream that is named for it, and nowhere if none is."""
    long = answer(
        400,
        b'{"error":{"message":"x","type":"invalid_request_error","code":"context_length_exceeded"}}',
        b"content-type: application/json",
    )
    async with Upstream(long) as one, Upstream(OK) as two, Upstream(OK) as three:
        async with serving(*chat(one, two, three, too_long="third")) as gateway:
            assert (await post(gateway))[0] == 200
        async with serving(*chat(one, two, three)) as gateway:
            assert (await post(gateway))[0] == 400
        assert (len(two.requests), len(three.requests)) == (0, 1)


def test_the_configuration(monkeypatch):
    """Routes name upstreams; every mistake has its place."""
    monkeypatch.setenv("KEY", "x")
    text = """
[upstream.openai]
url = "https://api.openai.com"
[upstream.azure]
url = "https://x.openai.azure.com"
model = { "gpt-5" = "gpt-5-azure" }
credentials = { api-key = "KEY" }
[route.chat]
to = ["openai", "azure"]
session = "x-session"
policy = { attempts = 4 }
"""
    found = read_config(text).upstreams[-1]
    assert (found.kind, found.to, found.prefix, found.policy.attempts) == (
        "route",
        ("openai", "azure"),
        "/chat",
        4,
    )
    for wrong, message in (
        ('to = ["openai", "nowhere"]', "nowhere"),
        ("to = []", "is a list of upstreams"),
        ('to = ["openai", "openai"]', "twice"),
        ('to = ["openai"]\ntoo_long = "azure"', "too_long is one of"),
        ('to = ["openai"]\ntoo = 1', "did you mean to"),
    ):
        with pytest.raises(ConfigError, match=message):
            read_config(text.partition("to = [")[0] + wrong)
    with pytest.raises(ConfigError, match="MISSING"):
        read_config(text.replace('"KEY"', '"MISSING"'))
