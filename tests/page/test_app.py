"""The page over HTTP: what it shows, filters, access, headers, and the live stream."""

import asyncio
import json
import re
import subprocess
import sys
import threading
from contextlib import asynccontextmanager

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

import amends
from amends import Fault, decide
from amends.core import recording
from amends.gateway.stats import UpstreamStatus
from amends.page import Page, access, app
from amends.page.models import upstream_rows
from amends.recorder import Event
from tests.page.conftest import TOKEN

SECRET = "sk-live-4eC39HqLyjWDarjtT1zdp7dc"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def fill(url):
    """Record a recovered call, a failure that was sent, and one with hostile text and secrets."""
    with amends.record(url):
        limited = Fault(code="RATE_LIMITED", status=429, retry_after=1.0, message="Slow down")
        facts = {"trace_id": TRACE, "name": "GET /prices", "upstream": "shop", "vendor": "stripe"}
        recording.emit(
            "http client", "retry", limited, decision=decide(limited), wait=1.0, elapsed=0.2, **facts
        )
        recording.emit("http client", "recovered", limited, attempt=2, elapsed=1.4, **facts)
        recording.emit(
            "mcp server", "sent", Fault(code="CONFLICT", status=409), name="book", trace_id="aa" * 16
        )
        hostile = Fault(
            code="INTERNAL_ERROR",
            message=f"<script>alert(1)</script> Authorization: Bearer {SECRET}",
            details={"api_key": SECRET, "html": "<img src=x onerror=alert(1)>"},
        )
        recording.emit(
            "gateway",
            "passed-on",
            hostile,
            name="GET /x",
            url=f"https://u:{SECRET}@h/x?key={SECRET}",
            upstream="<b>",
        )


@pytest.fixture
def store(tmp_path):
    url = f"sqlite:///{tmp_path}/failures.db"
    fill(url)
    return url


@asynccontextmanager
async def client(app, host="127.0.0.1", base="http://localhost", *, token=TOKEN):
    """Return a client of the app that calls from a host, with the token."""
    transport = httpx.ASGITransport(app, client=(host, 1234))
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with httpx.AsyncClient(transport=transport, base_url=base, headers=headers) as found:
        yield found
    if isinstance(app, Page):
        await app.close()


async def test_the_first_page_shows_failures_and_what_was_saved(store):
    """The list has code, vendor, decision, tries and outcome; markup of a sender is text; secrets do not appear."""
    async with client(amends.dashboard(store)) as browser:
        text = (await browser.get("/")).text
        trace = (await browser.get(f"/trace/{TRACE}")).text
        event = (await browser.get("/event/" + re.findall(r"event/([\d.]+)", text)[0])).text
    for expected in (
        "RATE_LIMITED",
        "stripe",
        "retry",
        "recovered after 2 tries",
        "GET /prices",
        "CONFLICT",
        "<svg",
    ):
        assert expected in text, expected
    assert "of 2 failed calls (50 %); 1 sent to callers" in text
    for expected in (
        *("GET /prices", "the failing service said how long to wait", "Slow down", "+", "retry after"),
        *("What a model would have read", "the result of a later try", 'class="waterfall"'),
    ):
        assert expected in trace, expected
    for page in (text, trace, event):
        assert SECRET not in page
        assert "<script>alert" not in page
        assert "<img" not in page
        assert "<b>" not in page
        assert "http://" not in page.replace("http://localhost", "").replace('xmlns="http://www.w3.org', "")
        assert not re.search(r"<[^>]*\s(style|on\w+)=", page)
    assert "INTERNAL_ERROR" in event


async def test_filters(store):
    """Each filter selects, and an unknown value finds nothing; values that cannot be read are ignored."""
    cases = {
        "code=CONFLICT": ("CONFLICT", "GET /prices"),
        "upstream=shop": ("GET /prices", "book</a>"),
        "outcome=sent": ("book</a>", "GET /prices"),
        f"trace={TRACE[:6]}": ("GET /prices", "book</a>"),
        "code=NONE": ("No failure matches", "GET /prices"),
        "before=1": ("No failure matches", "GET /prices"),
        "before=nan&trace=": ("GET /prices", "No failure matches"),
        "trace=%00%ff%3Cscript%3E": ("No failure matches", "<script>&"),
    }
    async with client(amends.dashboard(store)) as browser:
        for query, (there, absent) in cases.items():
            answer = await browser.get(f"/?{query}")
            assert answer.status_code == 200, query
            assert there in answer.text, query
            assert absent not in answer.text, query


async def test_headers_forbid_everything_but_our_own_files(store):
    """A strict CSP on every answer; static files are ours alone; unknown pages are 404."""
    async with client(amends.dashboard(store)) as browser:
        for path, status in {
            "/": 200,
            "/trace/ffff": 404,
            "/nothing": 404,
            "/event/9.9": 404,
            "/sign-in": 200,
            "/static/page.css": 200,
            "/static/page.js": 200,
            "/static/icon.svg": 200,
            "/static/app.py": 404,
            "/static/..%2Fapp.py": 404,
        }.items():
            answer = await browser.get(path)
            assert answer.status_code == status, path
            policy = answer.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'")
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
        script = (await browser.get("/static/page.js")).text
        assert script.count("\n") <= 150


async def test_every_request_needs_the_token(store):
    """Of this machine, too: a proxy on it forwards the requests of others. A wrong token is refused."""
    page = amends.dashboard(store, token="the-t0ken-of-these-tests")
    outside = [
        ("127.0.0.1", "http://localhost", {}),
        ("127.0.0.1", "http://127.0.0.1:8700", {}),
        ("::1", "http://[::1]", {}),
        ("10.0.0.7", "http://localhost", {}),
        ("127.0.0.1", "http://evil.example", {}),
        ("127.0.0.1", "http://localhost", {"x-forwarded-for": "10.0.0.7"}),
        ("not an address", "http://localhost", {}),
    ]
    for host, base, headers in outside:
        async with client(page, host, base, token=None) as browser:
            for path in ("/", "/live", f"/trace/{TRACE}", "/nothing"):
                answer = await browser.get(path, headers=headers)
                assert answer.status_code == 401, (host, base, path)
                assert "RATE_LIMITED" not in answer.text
            assert (
                await browser.get("/", headers={**headers, "authorization": "Bearer no"})
            ).status_code == 401
            seen = await browser.get(
                "/", headers={**headers, "authorization": "Bearer the-t0ken-of-these-tests"}
            )
            assert "RATE_LIMITED" in seen.text


async def test_sign_in(store):
    """The form takes the token and sets a cookie that scripts cannot read; a foreign origin cannot sign in."""
    page = amends.dashboard(store, token="the-t0ken-of-these-tests")
    async with client(page, "10.0.0.7", "http://page.example", token=None) as browser:
        assert (await browser.post("/sign-in", data={"token": "no"})).status_code == 403
        foreign = {"origin": "http://evil.example"}
        assert (
            await browser.post("/sign-in", data={"token": "the-t0ken-of-these-tests"}, headers=foreign)
        ).status_code == 403
        assert (await browser.post("/sign-in", content=b"token=" + b"t" * 100_000)).status_code == 403
        answer = await browser.post("/sign-in", data={"token": "the-t0ken-of-these-tests"})
        assert answer.status_code == 303
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert "the-t0ken-of-these-tests" not in cookie
        seen = await browser.get("/")
        assert "RATE_LIMITED" in seen.text
        assert (await browser.post("/sign-out")).status_code == 403
        csrf = re.search(r'name="csrf" value="(\w+)"', seen.text)[1]
        assert (await browser.post("/sign-out", data={"csrf": csrf}, headers=foreign)).status_code == 403
        assert (await browser.post("/sign-out", data={"csrf": csrf})).status_code == 303
        assert (await browser.get("/")).status_code == 401
        for forged in ("1.abc", "x.y", "", "9999999999999999.a", "²." + "a" * 64):
            raw = {"cookie": f"amends_page={forged}".encode()}
            assert (await browser.get("/", headers=raw)).status_code == 401, forged


async def test_it_mounts_into_any_application(store):
    """By a router with a store, and around an application, whose own paths stay."""
    inner = Starlette(routes=[Route("/hello", lambda _: PlainTextResponse("hello"))])
    routed = Starlette(routes=[Mount("/failures", amends.dashboard(store))])
    async with client(routed) as browser:
        answer = await browser.get("/failures", follow_redirects=True)
        assert 'href="/failures/static/page.css' in answer.text
        assert f'href="/failures/trace/{TRACE}"' in answer.text
        assert (await browser.get("/failures/static/page.css")).status_code == 200
    with amends.record(store):
        wrapped = amends.dashboard(inner)
        async with client(wrapped) as browser:
            assert (await browser.get("/hello")).text == "hello"
            answer = await browser.get("/_amends", follow_redirects=True)
            assert f'href="/_amends/trace/{TRACE}"' in answer.text
            assert (await browser.get("/_amendsx")).status_code == 404


class FakeGateway:
    """Has the figures of two upstreams."""

    stopping = False

    def statuses(self):
        """Return the figures."""
        given = {
            "kind": "http",
            "prefix": "/",
            "in_flight": 1,
            "refused": 0,
            "rate": 2.5,
            "p50": 0.012,
            "p99": 1.5,
        }
        counts = {"calls": 40, "failed": 4, "recovered": 3, "codes": {"RATE_LIMITED": 3, "TIMEOUT": 1}}
        return [
            UpstreamStatus(name="shop", state="open", resumes_in=0.0, waiting=0, **given, **counts),
            UpstreamStatus(name="bank", state="shut", resumes_in=30.0, waiting=7, **given, **counts),
            UpstreamStatus(name="new", state="ramp", resumes_in=0.0, waiting=0, **given, **counts),
        ]


async def test_upstreams_of_a_gateway(store):
    """State, rate, failure share by kind, quantiles and waiting calls."""
    async with client(amends.dashboard(store, upstreams=FakeGateway())) as browser:
        text = (await browser.get("/")).text
    for expected in (
        *(
            "shut until ",
            "ramping up",
            ">healthy<",
            "2.5/s",
            "4 (10.0 %)",
            "12 ms",
            "1.5 s",
            "RATE_LIMITED 3",
        ),
        '<td class="n" data-name="Waiting">7</td>',
    ):
        assert expected in text, expected


async def test_a_new_failure_comes_over_the_live_stream(store):
    """The stream sends rendered fragments at once, and again after a new failure; it ends when the gateway stops."""
    gateway = FakeGateway()
    page = Page(store, upstreams=gateway)
    sent: asyncio.Queue = asyncio.Queue()
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/live",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"localhost"), (b"authorization", b"Bearer " + TOKEN.encode())],
        "client": ("127.0.0.1", 1),
        "asgi": {"version": "3.0", "spec_version": "2.3"},
    }
    first = asyncio.Event()

    async def receive():
        if first.is_set():
            await asyncio.Event().wait()
        first.set()
        return {"type": "http.request", "body": b"", "more_body": False}

    running = asyncio.create_task(page(scope, receive, sent.put))
    async with asyncio.timeout(30):
        start = await sent.get()
        assert (b"content-type", b"text/event-stream; charset=utf-8") in start["headers"]
        assert "GET /prices" in await fragment(sent, "failures")
        with amends.record(store):
            recording.emit(
                "http server", "sent", Fault(code="CONFLICT"), name="POST /fresh", trace_id="bb" * 16
            )
        assert "POST /fresh" in await fragment(sent, "failures")
        gateway.stopping = True
        await running
    await page.close()


class Viewer:
    """A browser that watches the first page: what it was sent."""

    def __init__(self, page, query=b""):
        self.sent = asyncio.Queue()
        self._read = False
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/live",
            "query_string": query,
            "root_path": "",
            "headers": [(b"host", b"localhost"), (b"authorization", b"Bearer " + TOKEN.encode())],
            "client": ("127.0.0.1", 1),
            "asgi": {"version": "3.0", "spec_version": "2.3"},
        }
        self.running = asyncio.create_task(page(scope, self._receive, self.sent.put))

    async def _receive(self):
        if self._read:
            await asyncio.Event().wait()
        self._read = True
        return {"type": "http.request", "body": b"", "more_body": False}


async def test_browsers_that_watch_the_same_share_one_rendering(store, monkeypatch):
    """Each change is rendered once for all of them, and not on the thread of the event loop."""
    threads = []
    render = app.overview_fragments

    def counted(*arguments):
        threads.append(threading.current_thread().name)
        return render(*arguments)

    monkeypatch.setattr(app, "overview_fragments", counted)
    gateway = FakeGateway()
    page = Page(store, upstreams=gateway)
    async with asyncio.timeout(60):
        viewers = [Viewer(page) for _ in range(40)]
        for viewer in viewers:
            assert "GET /prices" in await fragment(viewer.sent, "failures")
        with amends.record(store):
            recording.emit(
                "http server", "sent", Fault(code="CONFLICT"), name="POST /fresh", trace_id="b" * 32
            )
        for viewer in viewers:
            while "POST /fresh" not in await fragment(viewer.sent, "failures"):
                continue
        assert 2 <= len(threads) <= 4
        assert all(name.startswith("amends-page") for name in threads)
        gateway.stopping = True
        await asyncio.gather(*(viewer.running for viewer in viewers))
    await page.close()


async def test_the_number_of_browsers_and_of_filters_is_bounded(store):
    """Beyond 64 browsers, or 16 different filters, the answer is 503 with a wait."""
    gateway = FakeGateway()
    page = Page(store, upstreams=gateway)
    async with asyncio.timeout(60):
        viewers = [Viewer(page, b"code=C%d" % (number % 16)) for number in range(64)]
        for viewer in viewers:
            assert (await viewer.sent.get())["status"] == 200
            await viewer.sent.get()
        refused = Viewer(page, b"code=C1")
        assert (await refused.sent.get())["status"] == 503
        gateway.stopping = True
        await asyncio.gather(*(viewer.running for viewer in viewers), refused.running)
        gateway.stopping = False
        other = Viewer(page, b"code=OTHER")
        assert (await other.sent.get())["status"] == 503
    await page.close()


async def fragment(sent, id):
    """Return the next fragment with this id."""
    while True:
        body = (await sent.get()).get("body", b"").decode()
        for line in body.splitlines():
            if line.startswith("data: ") and json.loads(line[6:])["id"] == id:
                return json.loads(line[6:])["html"]


async def test_trace_ids_of_any_text_have_a_page(tmp_path):
    """An id that a caller chose is quoted in links, and every link opens."""
    url = f"sqlite:///{tmp_path}/failures.db"
    ids = ["a b", "a?b#c", "a%2fb", 'a"b', "../x", "a/b", "..", "é"]
    with amends.record(url):
        for id in ids:
            recording.emit("call", "gave-up", Fault(code="CONFLICT"), name="of any text", trace_id=id)
    async with client(amends.dashboard(url)) as browser:
        text = (await browser.get("/")).text
        links = re.findall(r'class="call"><a href="([^"]*)"', text)
        assert len(links) == len(ids)
        for link in links:
            answer = await browser.get(link)
            assert answer.status_code == 200, link
            assert "of any text" in answer.text, link


def test_a_wrong_source_is_refused():
    """A text that is no store URL is a ValueError that says so."""
    with pytest.raises(ValueError, match="store"):
        amends.dashboard("failures.db")


async def test_wrong_tokens_are_limited(store):
    """Five a minute from one address, by form or header, each answered late; the right one works all the same: a proxy has one address."""
    page = amends.dashboard(store, token="the-t0ken-of-these-tests")
    async with client(page, host="192.0.2.1", base="http://page.example", token=None) as browser:
        await browser.post("/sign-in", data={"token": "the-t0ken-of-these-tests"})
        for _ in range(4):
            assert (await browser.post("/sign-in", data={"token": "no"})).status_code == 403
        stranger = httpx.AsyncClient(transport=browser._transport, base_url="http://page.example")
        assert (await stranger.get("/", headers={"authorization": "Bearer no"})).status_code == 401
        answer = await browser.post("/sign-in", data={"token": "still wrong"})
        assert answer.status_code == 429
        assert 0 < int(answer.headers["retry-after"]) <= 60
        right = {"authorization": "Bearer the-t0ken-of-these-tests"}
        assert (await stranger.get("/", headers=right)).status_code == 200
        assert (await browser.post("/sign-in", data={"token": "the-t0ken-of-these-tests"})).status_code == 303
        assert (await browser.get("/")).status_code == 200
    async with client(page, host="192.0.2.2", base="http://page.example", token=None) as browser:
        assert (await browser.post("/sign-in", data={"token": "the-t0ken-of-these-tests"})).status_code == 303


async def test_wrong_tokens_are_slowed_in_total(store):
    """From any number of addresses, only so many are answered at once; each takes its time, and the right one does not wait."""
    page = amends.dashboard(store, token="the-t0ken-of-these-tests")
    async with client(page, host="192.0.2.1", base="http://page.example", token=None) as browser:
        wrong = [
            asyncio.create_task(browser.get("/", headers={"authorization": f"Bearer no-{number}"}))
            for number in range(60)
        ]
        async with asyncio.timeout(20):
            while not any(task.done() for task in wrong):
                await asyncio.sleep(0.001)
        right = {"authorization": "Bearer the-t0ken-of-these-tests"}
        assert (await browser.get("/", headers=right)).status_code == 200
        statuses = [answer.status_code for answer in await asyncio.gather(*wrong)]
        assert statuses.count(401) < 60
        assert set(statuses) == {401, 429}


@pytest.mark.parametrize("token", ["", None, "x" * 20, "x" * 19])
def test_a_short_token_is_refused(token, store):
    """One of fewer than 20 characters can be found by trying."""
    if token and len(token) < 20:
        with pytest.raises(ValueError, match="fewer than 20"):
            amends.dashboard(store, token=token)
    else:
        amends.dashboard(store, token=token)


def test_counts_of_wrong_tokens_are_forgotten(monkeypatch):
    """After a minute, and the oldest if there are too many addresses."""
    now = 1000.0
    monkeypatch.setattr(access.time, "monotonic", lambda: now)
    monkeypatch.setattr(access, "_ADDRESSES", 2)
    attempts = access.Attempts()
    for _ in range(5):
        attempts.wrong("a")
    assert attempts.wait("a") == 60
    now += 60
    assert attempts.wait("a") == 0
    attempts.wrong("a")
    assert attempts.wait("a") == 0
    attempts.wrong("b")
    attempts.wrong("c")
    assert list(attempts._wrong) == ["b", "c"]


@pytest.mark.parametrize("missing", ["starlette", "jinja2"])
def test_without_its_extra_the_page_names_the_pip_command(missing):
    """A missing package is an ImportError that says what to install."""
    code = f"import sys; sys.modules['{missing}'] = None\nimport amends\namends.dashboard('memory:')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ImportError: the page needs an extra: pip install 'amends[server]'" in done.stderr


def test_failures_by_kind_count_calls():
    """A recovered call is counted once, and not once more for each failed try; one that has not ended is counted by its try."""
    fault = Fault(code="TIMEOUT")
    tried = Event(at=1.0, where="call", outcome="retry", fault=fault, upstream="shop")
    ended = Event(at=2.0, where="call", outcome="recovered", fault=fault, upstream="shop", attempt=2)
    for events in ([tried], [tried, tried, ended]):
        (row,) = upstream_rows([], events, 3.0)
        assert [(code, count) for code, count, _ in row.codes] == [("TIMEOUT", 1)]
