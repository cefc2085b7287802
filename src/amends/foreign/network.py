"""
Which exceptions report that the network did not carry a request: no address, no connection, or a lost connection.

The everyday code for them is SERVICE_UNAVAILABLE, as for a service that answered with 503. The command-line vocabulary
distinguishes the two, so this module looks at the exception once more.
"""

from __future__ import annotations

import errno
import socket
import ssl

from amends.foreign.safe_attr import attribute, inner_exception

__all__ = ["is_network_failure"]

_CLASSES = (ConnectionError, socket.gaierror, socket.herror, ssl.SSLError)
_NAMES = frozenset(
    {
        *(
            f"{module}.{name}"
            for module in ("httpcore", "httpcore2", "httpx", "httpx2")
            for name in ("NetworkError", "ConnectError", "ProxyError", "RemoteProtocolError")
        ),
        "urllib3.exceptions.NewConnectionError",
        "urllib3.exceptions.ProtocolError",
        "urllib3.exceptions.ProxyError",
        "requests.exceptions.ConnectionError",
        "requests.exceptions.ChunkedEncodingError",
        "aiohttp.client_exceptions.ClientConnectionError",
        "aiohttp.client_exceptions.ClientPayloadError",
        "anyio.ConnectionFailed",
        "anyio.BrokenResourceError",
        "asyncio.exceptions.IncompleteReadError",
        "http.client.IncompleteRead",
        "websockets.exceptions.ConnectionClosed",
        "nats.errors.NoServersError",
        "nats.errors.ConnectionClosedError",
    }
)
_ERRNOS = frozenset(
    {
        errno.ENETUNREACH,
        errno.EHOSTUNREACH,
        errno.ENETDOWN,
        errno.ENETRESET,
        errno.EADDRNOTAVAIL,
        errno.ENOTCONN,
        getattr(errno, "EHOSTDOWN", errno.EHOSTUNREACH),
    }
)
_DEPTH = 16
_MAX_PARTS = 1000


def is_network_failure(exc: BaseException) -> bool:
    """
    Return whether an exception, or one that it wraps, reports a failed or lost connection.

    An exception group does if all of its parts do. The text of an exception is not read, and the function does not raise.

    >>> is_network_failure(ConnectionRefusedError()), is_network_failure(PermissionError())
    (True, False)
    """
    try:
        return _is_network_failure(exc, _DEPTH)
    except Exception:  # noqa: BLE001 - an exception class may raise anything when it is inspected
        return False


def _is_network_failure(exc: BaseException | None, depth: int) -> bool:
    if exc is None or depth == 0:
        return False
    cls = type(exc)
    if issubclass(cls, BaseExceptionGroup):
        parts = attribute(exc, "exceptions")
        return isinstance(parts, tuple) and all(
            _is_network_failure(part, depth - 1) for part in parts[:_MAX_PARTS]
        )
    if issubclass(cls, _CLASSES) or any(
        f"{base.__module__}.{base.__qualname__}" in _NAMES for base in cls.__mro__
    ):
        return True
    if issubclass(cls, OSError) and attribute(exc, "errno") in _ERRNOS:
        return True
    return _is_network_failure(inner_exception(exc) or exc.__cause__, depth - 1)
