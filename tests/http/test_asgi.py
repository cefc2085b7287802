"""Reading an ASGI scope and sending a response."""

import pytest

from amends.errors import RateLimitedError
from amends.http.asgi import (
    ECHO,
    FAULT,
    encode_headers,
    exception_answer,
    header,
    request_info,
    send_response,
)
from amends.http.responses import RawResponse, Settings

SCOPE = {"type": "http", "method": "GET", "path": "/", "headers": []}


def test_hosts_and_header_lines():
    """Without a Host header the server's address is used; a header value stays on one line."""
    assert request_info({**SCOPE, "server": ("127.0.0.1", 8000)}).host == "127.0.0.1:8000"
    assert request_info({**SCOPE, "server": ("::1", 8000)}).host == "[::1]:8000"
    assert request_info({**SCOPE, "server": ("/run/app.sock", None)}).host == "/run/app.sock"
    assert request_info(SCOPE).host == ""
    named = {**SCOPE, "server": ("127.0.0.1", 8000), "headers": [(b"host", b"shop.example")]}
    assert (request_info(named).host, request_info(named).server) == ("shop.example", "127.0.0.1")
    assert encode_headers([("X-A", "a\r\nb: c"), ("X-B", "€")]) == [(b"x-a", b"a  b: c"), (b"x-b", b"?")]


@pytest.mark.parametrize(
    ("root", "path", "expected"),
    [
        ("", "/a", "/a"),
        ("/api", "/api/a", "/a"),
        ("/api", "/api", "/"),
        ("/api", "/apis", "/apis"),
        ("/api", "/a", "/a"),
    ],
)
def test_the_path_below_the_root(root, path, expected):
    """The root is removed from the path if the server has left it there."""
    info = request_info({**SCOPE, "root_path": root, "path": path})
    assert (info.root, info.path) == (root, expected)


def test_what_an_answer_depends_on():
    """Method, scheme, Accept and traceparent are read; what is missing is None or http."""
    headers = [(b"accept", b"text/html"), (b"traceparent", b"00-1-2-3")]
    info = request_info({**SCOPE, "method": "PUT", "scheme": "https", "headers": headers})
    assert (info.method, info.scheme, info.accept, info.traceparent) == (
        "PUT",
        "https",
        "text/html",
        "00-1-2-3",
    )
    bare = request_info(SCOPE)
    assert (bare.scheme, bare.accept, bare.traceparent) == ("http", None, None)


def test_a_header_by_name():
    """The name of a header is compared without regard to case."""
    assert header([(b"X-A", b"1"), (b"x-b", b"2")], b"x-a") == "1"
    assert header([(b"x-b", b"2")], b"x-a") is None


def test_the_answer_of_an_exception():
    """The fault is stored in the scope; the answer has the given headers and the echoed key."""
    scope = {**SCOPE, ECHO: b"k-1"}
    response = exception_answer(scope, RateLimitedError(retry_after=3), Settings(pages=None), [("x-a", "1")])
    found = dict(response.headers)
    assert (response.status, found["x-a"], found["idempotency-key"]) == (429, "1", "k-1")
    assert scope[FAULT].retry_after == 3
    assert "idempotency-key" not in dict(
        exception_answer(dict(SCOPE), RateLimitedError(), Settings(pages=None)).headers
    )


@pytest.mark.parametrize(("method", "body"), [("GET", b"x"), ("HEAD", b"")])
async def test_sending_a_response(method, body):
    """A response is one start and one body; HEAD gets an empty body."""
    sent = []

    async def send(message):
        sent.append(message)

    await send_response({**SCOPE, "method": method}, send, RawResponse(418, [("X-A", "1")], b"x"))
    assert sent == [
        {"type": "http.response.start", "status": 418, "headers": [(b"x-a", b"1")]},
        {"type": "http.response.body", "body": body, "more_body": False},
    ]
