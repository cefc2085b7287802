"""Why a connection failed: a name for programs, a sentence for people, and nothing of the exception's text."""

import ssl
from socket import gaierror

import pytest
from websockets.datastructures import Headers
from websockets.exceptions import InvalidMessage, InvalidStatus
from websockets.http11 import Response

from amends.arcp.transports.dial_errors import dial_error, shown_url


def status(code, **headers):
    return InvalidStatus(Response(code, "x", Headers(headers)))


@pytest.mark.parametrize(
    ("error", "url", "reason", "permanent"),
    [
        (ConnectionRefusedError("secret"), "ws://127.0.0.1:1/arcp", "refused", False),
        (gaierror("secret"), "wss://host/arcp", "name_not_found", False),
        (TimeoutError("secret"), "wss://host/arcp", "unreachable", False),
        (OSError("secret"), "wss://host/arcp", "unreachable", False),
        (ssl.SSLError("secret"), "wss://host/arcp", "no_tls", True),
        (ConnectionResetError("secret"), "wss://host/arcp", "no_tls", False),
        (InvalidMessage("secret"), "ws://127.0.0.1:1/arcp", "not_websocket", True),
        (ConnectionResetError("secret"), "ws://127.0.0.1:1/arcp", "not_websocket", False),
        (status(404), "wss://host/x", "wrong_path", True),
        (status(404), "wss://host/arcp/", "not_websocket", True),
        (status(200), "wss://host/arcp", "not_websocket", True),
        (status(503), "wss://host/arcp", "unavailable", False),
        (ValueError("secret"), "wss://host/arcp", "not_websocket", True),
    ],
)
async def test_causes(error, url, reason, permanent):
    lost = await dial_error(error, url)
    assert (lost.reason, lost.permanent) == (reason, permanent)
    assert "secret" not in str(lost)


async def test_a_busy_server_names_its_wait():
    """Seconds; dates are not used."""
    assert (await dial_error(status(503, **{"Retry-After": "7"}), "wss://host/arcp")).retry_after == 7.0
    assert (await dial_error(status(503, **{"Retry-After": "Mon"}), "wss://host/arcp")).retry_after is None


@pytest.mark.parametrize(
    ("code", "text"), [(10, "has expired"), (18, "self-signed"), (62, "another host name"), (1, "verified")]
)
async def test_certificates(code, text):
    error = ssl.SSLCertVerificationError("secret")
    error.verify_code = code
    lost = await dial_error(error, "wss://host/arcp")
    assert (lost.reason, lost.permanent) == ("untrusted", True)
    assert text in str(lost)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("wss://user:secret@host:7777/arcp?token=1#x", "wss://host:7777/arcp"),
        ("ws://[::1]:7777/arcp", "ws://[::1]:7777/arcp"),
        ("ws://host", "ws://host"),
    ],
)
def test_urls_are_shown_without_secrets(url, shown):
    assert shown_url(url) == shown
