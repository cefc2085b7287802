"""Forwards a call to a test service of the user. Status, headers and body come back as they are."""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

from amends.rehearse.exchange import Answer, Request

__all__ = ["FORWARDING", "forward"]

FORWARDING = threading.local()
"""Has `on` in a thread that forwards: the guard of the same process lets it connect."""

_SECONDS = 300.0
_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "host",
        "content-length",
    }
)
_READ = 65_536


def forward(address: str, request: Request) -> Answer:
    """Return the answer of the service at `address`; 502 if there is none."""
    parts = urlsplit(address)
    host, port = parts.hostname or "", parts.port
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(
            host, port, timeout=_SECONDS, context=ssl.create_default_context()
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=_SECONDS)
    FORWARDING.on = True
    try:
        connection.putrequest(
            request.method, parts.path + request.target, skip_host=True, skip_accept_encoding=True
        )
        connection.putheader("Host", parts.netloc)
        for name, value in request.headers:
            if name.lower() not in _HOP:
                connection.putheader(name, value)
        if request.body or request.method in {"POST", "PUT", "PATCH"}:
            connection.putheader("Content-Length", str(len(request.body)))
        connection.endheaders(request.body or None)
        response = connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        text = f"the test service at {address} did not answer: {type(error).__name__}"
        return Answer(status=502, headers=(("content-type", "text/plain"),), body=text.encode())
    finally:
        FORWARDING.on = False
    headers = tuple(
        (name, value)
        for name, value in response.getheaders()
        if name.lower() not in _HOP - {"content-length"}
    )
    if response.chunked:
        return Answer(status=response.status, headers=headers, parts=_pieces(connection, response))
    body = response.read()
    connection.close()
    return Answer(status=response.status, headers=headers, body=body)


def _pieces(connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> Iterator[bytes]:
    """Yield what arrives, as it arrives."""
    try:
        while piece := response.read1(_READ):
            yield piece
    finally:
        connection.close()
