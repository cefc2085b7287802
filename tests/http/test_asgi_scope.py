"""Reading an ASGI scope and sending a response."""

from amends.http.asgi import encode_headers, request_info


def test_hosts_and_header_lines():
    """Without a Host header the server's address is used; a header value stays on one line."""
    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    assert request_info({**scope, "server": ("127.0.0.1", 8000)}).host == "127.0.0.1:8000"
    assert request_info({**scope, "server": ("/run/app.sock", None)}).host == "/run/app.sock"
    assert request_info(scope).host == ""
    assert encode_headers([("X-A", "a\r\nb: c")]) == [(b"x-a", b"a  b: c")]
