"""A client with several services that can do the same, on real sockets."""

import asyncio
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import aiohttp
import httpx
import httpx2
import pytest
import requests

from amends import FaultError, Operation, Policy, Upstream
from amends.bindings.aiohttp import recovering
from amends.bindings.httpx import AsyncTransport, Transport
from amends.bindings.requests import Adapter
from amends.recovery import Event, Failover, Options, Target

BODY = {"model": "large", "prompt": "hello"}
HEADERS = {"Authorization": "Bearer first", "X-Api-Key": "first", "Cookie": "a=1"}


class Service:
    """A server whose answers are given; it keeps the requests."""

    def __init__(self, *answers: int | tuple[int, dict]) -> None:
        self.answers, self.requests = list(answers), []
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                service.requests.append((self.path, dict(self.headers), body))
                answer = service.answers.pop(0) if len(service.answers) > 1 else service.answers[0]
                if answer == 0:  # no answer: the connection ends
                    self.close_connection = True
                    return
                status, found = answer if isinstance(answer, tuple) else (answer, {})
                text = json.dumps(found or {"from": service.address}).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def header(self, name: str) -> str | None:
        return {key.lower(): value for key, value in self.requests[-1][1].items()}.get(name.lower())


@pytest.fixture
def serve():
    services = []

    def start(*answers):
        services.append(Service(*answers))
        return services[-1]

    yield start
    for service in services:
        service.server.shutdown()
        service.server.server_close()


def _sync(library):
    def send(method, url, options, **request):
        with library.Client(transport=Transport(options=options)) as client:
            return client.request(method, url, **request)

    return send


def _async(library):
    def send(method, url, options, **request):
        async def main():
            async with library.AsyncClient(transport=AsyncTransport(options=options)) as client:
                return await client.request(method, url, **request)

        return asyncio.run(main())

    return send


def _requests(method, url, options, **request):
    with requests.Session() as session:
        session.mount("http://", Adapter(options=options))
        return session.request(method, url, **request)


CLIENTS: dict[str, Callable] = {
    "httpx2": _sync(httpx2), "httpx": _sync(httpx), "httpx2 async": _async(httpx2), "httpx async": _async(httpx),
    "requests": _requests,
}  # fmt: skip


@pytest.fixture(params=CLIENTS)
def client(request):
    return CLIENTS[request.param]


def small(request):
    """The request of another model, for every library."""
    if isinstance(request, requests.PreparedRequest):
        request.prepare_body(None, None, json={**json.loads(request.body), "model": "small"})
        request.headers["Authorization"] = "Bearer second"
        return request
    library = httpx if isinstance(request, httpx.Request) else httpx2
    headers = {**dict(request.headers), "Authorization": "Bearer second"}
    return library.Request(
        request.method, request.url, headers=headers, json={**json.loads(request.content), "model": "small"}
    )


def of(*services, rewrite=None, **options):
    targets = [
        Target(Upstream(f"service {number}", address=each.address), rewrite=rewrite if number else None)
        for number, each in enumerate(services)
    ]
    return Failover(targets, **options)


def test_the_next_service_is_called(client, serve):
    """Its address, its request and its credentials; events name the target."""
    first, second, events = serve(503), serve(200), []
    options = Options(
        upstream=of(first, second, rewrite=small), operation=Operation(computes=True), on_event=events.append
    )
    answer = client("POST", f"{first.address}/chat?a=1", options, json=BODY, headers=HEADERS)
    assert answer.json() == {"from": second.address}
    path, _, body = second.requests[0]
    assert (path, json.loads(body)) == ("/v1/chat?a=1", {**BODY, "model": "small"})
    assert second.header("authorization") == "Bearer second"
    assert second.header("x-api-key") is second.header("cookie") is None
    assert second.header("host") == second.address.split("/")[2]
    assert first.header("authorization") == "Bearer first"
    assert first.header("traceparent")[:35] == second.header("traceparent")[:35]
    kinds = [(event.kind, event.target) for event in events if isinstance(event, Event)]
    assert kinds == [("retry", "service 0"), ("recovered", "service 1")]


def test_a_read_goes_on_and_credentials_do_not(client, serve):
    """A GET is repeated at the next service as it is, without what belongs to the first."""
    first, second = serve(0), serve(200)
    answer = client("GET", f"{first.address}/items", Options(upstream=of(first, second)), headers=HEADERS)
    assert answer.status_code == 200
    assert [second.header(name) for name in HEADERS] == [None, None, None]


def test_a_request_that_may_have_happened_stays(client, serve):
    """A POST without an answer is not sent to another service."""
    first, second = serve(0), serve(200)
    with pytest.raises(FaultError):
        client("POST", f"{first.address}/pay", Options(upstream=of(first, second)), json=BODY)
    assert not second.requests


def test_the_first_is_preferred_again(client, serve):
    """A held service is not called, and its hint delays nothing; without a hint the first is called again."""
    first, second = serve((503, {"detail": "busy"}), 200), serve(200)
    models = of(first, second)
    options = Options(upstream=models, read_only=True)
    assert client("GET", f"{first.address}/a", options).json() == {"from": second.address}
    assert client("GET", f"{first.address}/a", options).json() == {"from": first.address}


def test_a_context_that_is_too_long(client, serve):
    """It goes to the target that is named for it."""
    refusal = (
        400,
        {"error": {"code": "context_length_exceeded", "message": "m", "type": "invalid_request_error"}},
    )
    first, second, third = serve(refusal), serve(200), serve(200)
    models = of(first, second, third, too_long=2)
    models.targets[0].upstream.vendor = "openai"
    options = Options(upstream=models, operation=Operation(computes=True))
    answer = client("POST", f"{first.address}/chat", options, json=BODY)
    assert answer.json() == {"from": third.address}
    assert not second.requests


def test_the_attempts_cover_all_services(client, serve):
    """Two services that are down get as many calls together as the policy allows, and the last error is raised."""
    first, second = serve(503), serve(503)
    options = Options(upstream=of(first, second), read_only=True, policy=Policy(attempts=2))
    with pytest.raises(FaultError) as caught:
        client("GET", f"{first.address}/a", options)
    assert (len(first.requests), len(second.requests)) == (1, 1)
    assert [attempt.target for attempt in caught.value.history] == ["service 0", "service 1"]


def test_wrong_calls_are_named(client, serve):
    """An address of no target, a target without an address, and options that a client does not have."""
    first = serve(200)
    with pytest.raises(ValueError, match="begins with the address of no target"):
        client("GET", "http://127.0.0.1:9/elsewhere", Options(upstream=of(first)))
    with pytest.raises(ValueError, match="needs a base address"):
        client("GET", first.address, Options(upstream=Failover([Upstream("a")])))
    with pytest.raises(TypeError, match="fallback is no option of a client"):
        client("GET", first.address, Options(fallback=lambda: None))


def test_options_once(serve):
    """What is given beside `options` counts instead, and a wrong name is refused."""
    options = Options(policy=Policy(attempts=2), raises="nothing")
    transport = Transport(options=options, raises="original")
    assert (transport._options.policy.attempts, transport._options.raises) == (2, "original")
    with pytest.raises(TypeError, match="has no option 'retries'; use policy"):
        Transport(retries=3)
    with pytest.raises(TypeError, match="options"):
        AsyncTransport(options={"raises": "nothing"})


async def test_aiohttp_says_that_it_cannot():
    """A middleware of aiohttp cannot change the address."""
    with pytest.raises(TypeError, match="Failover with httpx or requests"):
        recovering(upstream=Failover([Upstream("a", address="http://a.example")]))
    async with aiohttp.ClientSession(middlewares=[recovering(options=Options(raises="nothing"))]):
        pass
