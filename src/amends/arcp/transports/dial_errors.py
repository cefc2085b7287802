"""
Why a WebSocket could not be opened, from the exception of the library or of the network.

Each cause has a name for programs (`ConnectionLost.reason`) and a sentence for people. The exception's own text is not used.
"""

from __future__ import annotations

import asyncio
import ssl
from socket import gaierror
from urllib.parse import urlsplit

from websockets.exceptions import InvalidMessage, InvalidStatus

from amends.arcp.transports.connection import ConnectionLost

__all__ = ["PATH", "dial_error", "shown_url"]

PATH = "/arcp"
"""The path at which runtimes usually serve."""

_PROBE = 2.0
"""Seconds for the check whether a server expects TLS."""
_NOT_FOUND, _FORBIDDEN = 404, 403
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})

# OpenSSL's verification errors (X509_V_ERR_*) that have a cause a person can act on.
_CERTIFICATE = {
    9: "it is not valid yet",
    10: "it has expired",
    18: "it is self-signed",
    19: "its chain ends in a self-signed certificate that this machine does not trust",
    20: "its issuer is not known to this machine",
    21: "its issuer is not known to this machine",
    62: "it is for another host name",
    64: "it is for another address",
}
_CERTIFICATE_ADVICE = "; pass your own with transport={'ssl': ssl.create_default_context(cafile=…)}"


def shown_url(url: str) -> str:
    """
    The URL without user info, query and fragment, which may contain secrets.

    >>> shown_url("wss://user:secret@host:7777/arcp?token=1")
    'wss://host:7777/arcp'
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port is not None else ""
    return f"{parts.scheme}://{shown}{port}{parts.path}"


async def dial_error(error: BaseException, url: str) -> ConnectionLost:
    """The cause as a `ConnectionLost`."""
    if isinstance(error, InvalidStatus):
        return _status(error, urlsplit(url).path)
    if isinstance(error, ssl.SSLCertVerificationError):
        why = _CERTIFICATE.get(error.verify_code, "it cannot be verified")
        return ConnectionLost(
            f"the server's certificate is not trusted: {why}{_CERTIFICATE_ADVICE}",
            reason="untrusted",
            permanent=True,
        )
    if isinstance(error, ConnectionRefusedError):
        return ConnectionLost("the connection was refused: no server listens on this port", reason="refused")
    secure = urlsplit(url).scheme == "wss"
    if isinstance(error, ssl.SSLError) or (secure and isinstance(error, ConnectionError | EOFError)):
        # A server without TLS answers in its own protocol, or closes the connection, as a server that restarts does too.
        return ConnectionLost(
            "the TLS handshake failed: the server may not speak TLS on this port; for a server on this machine use ws:",
            reason="no_tls",
            permanent=isinstance(error, ssl.SSLError),
        )
    if isinstance(error, gaierror):
        return ConnectionLost("the host name cannot be resolved", reason="name_not_found")
    if isinstance(error, TimeoutError):
        return ConnectionLost("the server did not answer in time", reason="unreachable")
    if isinstance(error, InvalidMessage | ConnectionResetError | EOFError):
        if not secure and await _expects_tls(url):
            return ConnectionLost("the server expects TLS: use wss:", reason="tls_needed", permanent=True)
        return ConnectionLost(
            "the server closed the connection or did not answer with HTTP, so it is not a WebSocket server",
            reason="not_websocket",
            # A server that restarts, or a proxy without one, closes the connection too, but without an answer.
            permanent=isinstance(error, InvalidMessage)
            and not isinstance(error.__cause__, EOFError | OSError),
        )
    if isinstance(error, OSError):
        return ConnectionLost("no address of the host can be reached", reason="unreachable")
    return ConnectionLost(
        "the server's answer does not open a WebSocket", reason="not_websocket", permanent=True
    )


def _status(error: InvalidStatus, path: str) -> ConnectionLost:
    status = error.response.status_code
    if status in _BUSY:
        return ConnectionLost(
            f"the server answered with HTTP status {status} instead of opening a WebSocket",
            reason="unavailable",
            details={"status": status},
            retry_after=_seconds(error.response.headers.get("Retry-After")),
        )
    if 300 <= status < 400:
        return ConnectionLost(
            f"the server answered with HTTP status {status}, a redirect to another server, which would get the token",
            reason="redirected",
            details={"status": status},
            permanent=True,
        )
    if status in {_NOT_FOUND, _FORBIDDEN} and path.rstrip("/") != PATH:
        return ConnectionLost(
            f"the server has no WebSocket at {path or '/'} (HTTP status {status}): runtimes usually serve {PATH}",
            reason="wrong_path",
            details={"status": status},
            permanent=True,
        )
    return ConnectionLost(
        f"the server answered with HTTP status {status} instead of opening a WebSocket at {path or '/'}",
        reason="not_websocket",
        details={"status": status},
        permanent=True,
    )


def _seconds(header: object) -> float | None:
    """The number of seconds in a Retry-After header; its dates are not used here."""
    return float(header) if isinstance(header, str) and header.isascii() and header.isdigit() else None


async def _expects_tls(url: str) -> bool:
    """Whether a TLS handshake with the server succeeds. Nothing is sent over it, so its certificate does not matter."""
    parts = urlsplit(url)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(_PROBE):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or 80, ssl=context)
    except (OSError, EOFError, ValueError):
        return False
    # Aborted, because a server may not confirm the end of TLS.
    writer.transport.abort()
    return True
