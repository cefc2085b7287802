"""The libraries' own auth flows and event hooks work through our transports, and typed errors are raised after them."""

import asyncio
import hashlib
import pickle
from contextlib import suppress

import aiohttp
import httpx
import httpx2
import pytest
import requests
from requests.auth import HTTPDigestAuth

from amends import FaultError, Policy
from amends.bindings.aiohttp import recovering
from amends.bindings.httpx import AsyncTransport, Transport
from amends.bindings.requests import Adapter
from amends.errors import NotFoundError, UnauthenticatedError
from tests.http.raw_server import answer, raw_server

CHALLENGE = {"WWW-Authenticate": 'Digest realm="shop", nonce="abc", qop="auth", algorithm=MD5'}


def md5(text):
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def digest(password="secret"):
    """Answer 401 with a challenge until the request carries the right digest."""

    def respond(server, connection):
        method, path, headers, _ = server.requests[-1]
        given = headers.get("authorization", "")
        parts = dict(
            part.strip().split("=", 1) for part in given.removeprefix("Digest ").split(",") if "=" in part
        )
        parts = {name: value.strip('"') for name, value in parts.items()}
        if not parts:
            return answer(401, b"who?", CHALLENGE)
        first, second = md5(f"ann:shop:{password}"), md5(f"{method}:{path}")
        middle = ":".join(parts[name] for name in ("nonce", "nc", "cnonce", "qop"))
        right = parts["response"] == md5(f"{first}:{middle}:{second}")
        return answer(200, b"welcome") if right else answer(401, b"no", CHALLENGE)

    return respond


def send(module, kind, url, *, client=None, method="GET", options=None, **request):
    """Send one request with an httpx client, sync or async."""
    if kind == "sync":
        with module.Client(transport=Transport(**(options or {})), **(client or {})) as session:
            return session.request(method, url, **request)

    async def run():
        async with module.AsyncClient(
            transport=AsyncTransport(**(options or {})), **(client or {})
        ) as session:
            return await session.request(method, url, **request)

    return asyncio.run(run())


BOTH = pytest.mark.parametrize(
    ("module", "kind"),
    [(httpx2, "sync"), (httpx, "sync"), (httpx2, "async"), (httpx, "async")],
    ids=["httpx2", "httpx", "httpx2-async", "httpx-async"],
)


@BOTH
def test_digest_auth_of_httpx(module, kind):
    """DigestAuth sees the 401 with its challenge and sends the request again; a wrong password is a typed error."""
    with raw_server(digest()) as server:
        found = send(module, kind, f"{server.url}/a", auth=module.DigestAuth("ann", "secret"))
        assert (found.status_code, found.text, len(server.requests)) == (200, "welcome", 2)
        assert [old.status_code for old in found.history] == [401]
        with pytest.raises(UnauthenticatedError) as caught:
            send(module, kind, f"{server.url}/a", auth=module.DigestAuth("ann", "wrong"))
        assert caught.value.response.text == "no"
        assert caught.value.decision.action == "fix"


@BOTH
def test_digest_auth_of_a_post_keeps_a_key_unproven(module, kind):
    """A POST after the challenge is sent as before: a 500 is not repeated, because no key is known to count."""
    with raw_server(answer(401, b"", CHALLENGE), answer(500), answer(201)) as server:
        with pytest.raises(FaultError) as caught:
            send(
                module,
                kind,
                f"{server.url}/a",
                method="POST",
                json={},
                auth=module.DigestAuth("ann", "secret"),
            )
        assert caught.value.decision.action == "verify"
        assert len(server.requests) == 2


@BOTH
@pytest.mark.parametrize("needs_body", [False, True])
def test_a_custom_auth_flow(module, kind, needs_body):
    """A flow that renews its token after a 401 gets the response; the transport's flow also its body."""
    bodies = []

    def send_with(flow, url):
        if needs_body:
            return send(module, kind, url, options={"auth": flow})
        return send(module, kind, url, auth=flow)

    class Renewing(module.Auth):
        requires_response_body = needs_body

        def auth_flow(self, request):
            request.headers["X-Token"] = "old"
            response = yield request
            if response.status_code == 401:
                bodies.append(response.content if needs_body else b"")
                request.headers["X-Token"] = "new"
                yield request

    with raw_server(answer(401, b"expired"), answer(200, b"welcome")) as server:
        assert send_with(Renewing(), server.url).text == "welcome"
        assert [request[2]["x-token"] for request in server.requests] == ["old", "new"]
        assert bodies == [b"expired" if needs_body else b""]
        server.script = [answer(401, b"never")]
        with pytest.raises(UnauthenticatedError):
            send_with(Renewing(), server.url)


@BOTH
def test_a_flow_of_the_client_that_reads_a_failed_body_gets_its_error(module, kind):
    """No public API tells a transport who reads: the first read after the hooks raises. Successful bodies can be read."""
    seen = []

    class Reading(module.Auth):
        requires_response_body = True

        def auth_flow(self, request):
            response = yield request
            seen.append(response.content)

    with raw_server(answer(200, b"welcome"), answer(403, b"never")) as server:
        assert send(module, kind, server.url, auth=Reading()).text == "welcome"
        with pytest.raises(FaultError) as caught:
            send(module, kind, server.url, auth=Reading())
        assert (caught.value.response.text, seen) == ("never", [b"welcome"])


@BOTH
def test_event_hooks_of_httpx_see_every_answer(module, kind):
    """Response hooks run for failed answers too, and can read their bodies; the typed error follows."""
    seen = []

    def look(response):
        seen.append((response.status_code, response.read(), str(response.request.url)))

    async def alook(response):
        seen.append((response.status_code, await response.aread(), str(response.request.url)))

    with raw_server(answer(404, b"gone")) as server:
        hooks = {"response": [look if kind == "sync" else alook]}
        with pytest.raises(NotFoundError):
            send(module, kind, f"{server.url}/a", client={"event_hooks": hooks})
        assert seen == [(404, b"gone", f"{server.url}/a")]


@BOTH
def test_on_response_sees_the_answers_that_hooks_do_not(module, kind, clock):
    """Answers that were followed by a further attempt, once each and in order, with body, request and elapsed time."""
    seen = []

    def look(response):
        response.read()
        seen.append((response.status_code, response.content, str(response.request.url)))

    async def alook(response):
        await response.aread()
        seen.append((response.status_code, response.content, str(response.request.url)))

    def first(response):
        assert response.elapsed.total_seconds() >= 0
        seen.append((response.status_code, response.content, str(response.request.url)))

    async def afirst(response):
        first(response)

    sync = kind == "sync"
    hooks = {"response": [look if sync else alook]}
    cut = answer(200, b"half", length=1000, close=True)
    for script, expected in [
        ([answer(503, b"a"), answer(429, b"b"), answer(200, b"c")], [(503, b"a"), (429, b"b"), (200, b"c")]),
        ([answer(503, b"a"), answer(404, b"b")], [(503, b"a"), (404, b"b")]),
    ]:
        for on_response in (first, first if sync else afirst):
            seen.clear()
            with raw_server(*script) as server:
                with suppress(NotFoundError):
                    send(
                        module,
                        kind,
                        f"{server.url}/a",
                        client={"event_hooks": hooks},
                        options={"on_response": on_response},
                    )
                assert seen == [(*each, f"{server.url}/a") for each in expected]
    seen.clear()
    with raw_server(cut, answer(503, b"a"), answer(200, b"whole")) as server:
        statuses = []
        options = {"on_response": lambda found: statuses.append((found.status_code, found.content))}
        assert send(module, kind, server.url, options=options).content == b"whole"
        assert statuses == [(503, b"a"), (200, b"whole")]


@BOTH
def test_what_on_response_raises_is_raised_as_it_is(module, kind, clock):
    """It is neither repeated nor classified."""

    def fail(response):
        raise RuntimeError("of the hook")

    with raw_server(answer(503), answer(200)) as server:
        with pytest.raises(RuntimeError, match="of the hook"):
            send(module, kind, server.url, options={"on_response": fail})
        assert len(server.requests) == 1


@BOTH
def test_cookies_of_a_failed_answer_are_kept(module, kind):
    """A failed answer reaches the client's cookie jar."""
    with raw_server(answer(404, headers={"Set-Cookie": "seen=1"}), answer(200)) as server:
        if kind == "async":

            async def run():
                async with module.AsyncClient(transport=AsyncTransport()) as session:
                    with pytest.raises(NotFoundError):
                        await session.get(server.url)
                    await session.get(server.url)

            asyncio.run(run())
        else:
            with module.Client(transport=Transport()) as session:
                with pytest.raises(NotFoundError):
                    session.get(server.url)
                session.get(server.url)
        assert server.requests[1][2]["cookie"] == "seen=1"


@pytest.mark.parametrize("module", [httpx2, httpx])
def test_a_streamed_failure_is_raised_at_the_latest_when_it_is_closed(module):
    """With `stream`, the block gets the failed response; read, raise_for_status or the end of the block raises."""
    with raw_server(answer(404, b"gone")) as server, module.Client(transport=Transport()) as session:
        with pytest.raises(NotFoundError), session.stream("GET", server.url) as response:
            assert (response.status_code, response.content) == (404, b"gone")
        with pytest.raises(NotFoundError), session.stream("GET", server.url) as response:
            response.read()
        with pytest.raises(NotFoundError), session.stream("GET", server.url) as response:
            response.raise_for_status()
        with pytest.raises(KeyError), session.stream("GET", server.url) as response:
            raise KeyError


@pytest.mark.parametrize("module", [httpx2, httpx])
async def test_a_streamed_failure_of_an_async_client(module):
    """The same for async clients."""
    with raw_server(answer(404, b"gone")) as server:
        async with module.AsyncClient(transport=AsyncTransport()) as session:
            with pytest.raises(NotFoundError):
                async with session.stream("GET", server.url) as response:
                    assert response.content == b"gone"
            with pytest.raises(NotFoundError):
                async with session.stream("GET", server.url) as response:
                    await response.aread()


@BOTH
def test_a_returned_failure_has_request_and_elapsed_time(module, kind):
    """`error.response` has its request, and a returned failure the elapsed time, as any response of the library."""
    with raw_server(answer(404, b"gone")) as server:
        found = send(module, kind, server.url, options={"raises": "nothing"})
        assert found.elapsed.total_seconds() >= 0
        with pytest.raises(NotFoundError) as caught:
            send(module, kind, f"{server.url}/a")
        response = caught.value.response
        assert str(response.request.url) == f"{server.url}/a"
        assert pickle.loads(pickle.dumps(response)).status_code == 404
        assert type(pickle.loads(pickle.dumps(found))) is module.Response


def test_digest_auth_of_requests():
    """HTTPDigestAuth works, and a wrong password is a typed error; a POST carries one key per request."""
    with raw_server(digest()) as server, requests.Session() as session:
        session.mount("http://", Adapter())
        found = session.get(f"{server.url}/a", auth=HTTPDigestAuth("ann", "secret"))
        assert (found.text, len(server.requests)) == ("welcome", 2)
        for stream in (False, True):
            with pytest.raises(UnauthenticatedError) as caught:
                session.get(f"{server.url}/a", auth=HTTPDigestAuth("ann", "wrong"), stream=stream)
            assert caught.value.response.text == "no"
        server.script = [answer(401, b"", CHALLENGE), answer(500), answer(201)]
        server.requests.clear()
        with pytest.raises(FaultError) as caught:
            session.post(f"{server.url}/a", auth=HTTPDigestAuth("ann", "secret"), json={})
        assert (caught.value.decision.action, len(server.requests)) == ("verify", 2)


def test_netrc_of_requests(tmp_path, monkeypatch):
    """Credentials from netrc are sent, and those of another host after a redirect are not those of the first."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login ann password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with raw_server() as server, requests.Session() as session:
        session.mount("http://", Adapter())
        session.get(server.url)
        assert server.requests[0][2]["authorization"].startswith("Basic ")


def test_hooks_of_requests_see_every_answer():
    """Response hooks run for failed answers and can read them; cookies are kept; the typed error follows."""
    seen = []
    with raw_server(answer(404, b"gone", {"Set-Cookie": "seen=1"})) as server, requests.Session() as session:
        session.mount("http://", Adapter())
        session.hooks["response"].append(lambda found, **_: seen.append((found.status_code, found.content)))
        for stream in (False, True):
            with pytest.raises(NotFoundError):
                session.get(server.url, stream=stream)
        assert seen == [(404, b"gone")] * 2
        assert session.cookies["seen"] == "1"


def test_hooks_of_requests_see_the_answers_that_were_repeated(clock):
    """Once each and in order, with the arguments that a session gives; the hooks of an auth flow act on the last only."""
    seen = []

    def look(found, **arguments):
        seen.append((found.status_code, found.content, found.elapsed.total_seconds() >= 0, sorted(arguments)))

    names = ["cert", "proxies", "stream", "timeout", "verify"]
    with raw_server(answer(503, b"a"), answer(429, b"b"), answer(200, b"c")) as server:
        with requests.Session() as session:
            session.mount("http://", Adapter())
            session.auth = HTTPDigestAuth("ann", "secret")
            session.hooks["response"].append(look)
            assert session.get(server.url).content == b"c"
        assert seen == [(503, b"a", True, names), (429, b"b", True, names), (200, b"c", True, names)]
        assert len(server.requests) == 3
        with pytest.raises(RuntimeError), requests.Session() as session:
            session.mount("http://", Adapter())
            server.requests.clear()
            session.get(server.url, hooks={"response": lambda *_, **__: fail()})
        assert len(server.requests) == 1


def fail():
    raise RuntimeError("of the hook")


async def test_middlewares_of_aiohttp_behind_recovering_see_every_answer(clock):
    """A middleware in front sees the last answer."""
    behind, front = [], []

    def looking(seen):
        async def middleware(request, handler):
            response = await handler(request)
            seen.append(response.status)
            return response

        return middleware

    with raw_server(answer(503), answer(429), answer(200)) as server:
        middlewares = (looking(front), recovering(), looking(behind))
        async with aiohttp.ClientSession(middlewares=middlewares) as session:
            assert (await session.get(server.url)).status == 200
    assert (behind, front) == ([503, 429, 200], [200])


async def test_digest_auth_of_aiohttp():
    """aiohttp's digest middleware works behind ours, and a wrong password is a typed error. In front it does not work."""
    with raw_server(digest()) as server:
        for password, expected in (("secret", 200), ("wrong", None)):
            auth = aiohttp.DigestAuthMiddleware("ann", password)
            middlewares = (recovering(policy=Policy(attempts=2)), auth)
            async with aiohttp.ClientSession(middlewares=middlewares) as session:
                if expected is None:
                    with pytest.raises(UnauthenticatedError):
                        await session.get(f"{server.url}/a")
                else:
                    assert (await session.get(f"{server.url}/a")).status == expected
        in_front = (aiohttp.DigestAuthMiddleware("ann", "secret"), recovering(policy=Policy(attempts=2)))
        async with aiohttp.ClientSession(middlewares=in_front) as session:
            with pytest.raises(UnauthenticatedError):
                await session.get(f"{server.url}/a")
