"""The exceptions of Python itself, of HTTP clients and of sockets."""

from __future__ import annotations

from amends.foreign.outcomes import (
    BROKEN,
    CANCELLED,
    CONFLICT,
    EXPIRED,
    FORBIDDEN,
    INVALID,
    LOST,
    MISSING,
    NOT_STARTED_IN_TIME,
    REFUSED,
    UNREADABLE,
    UNTRUSTED,
)
from amends.foreign.row import INSIDE, Library, Rows

__all__ = ["LIBRARIES"]

_HTTPCORE: Rows = (
    ("ConnectError", REFUSED, INSIDE),
    ("ConnectTimeout", NOT_STARTED_IN_TIME),
    ("PoolTimeout", NOT_STARTED_IN_TIME),
    ("ProxyError", REFUSED),  # the tunnel was not opened
    ("UnsupportedProtocol", INVALID),
    ("TimeoutException", EXPIRED),  # read and write time-outs
    ("NetworkError", LOST),  # read, write and close errors
    ("RemoteProtocolError", LOST),
    ("ProtocolError", BROKEN),  # the local one: part of the request may have been sent
)

LIBRARIES: tuple[Library, ...] = (
    (
        ("builtins",),
        (
            ("OSError", BROKEN, "errno"),
            ("ConnectionRefusedError", REFUSED),
            ("ConnectionError", LOST),  # reset, aborted, broken pipe
            ("TimeoutError", EXPIRED),
            ("PermissionError", FORBIDDEN),
            ("FileNotFoundError", MISSING),
            ("FileExistsError", CONFLICT),
            ("IsADirectoryError", INVALID),
            ("NotADirectoryError", INVALID),
            ("ProcessLookupError", MISSING),
            ("UnicodeError", UNREADABLE),
            ("KeyboardInterrupt", CANCELLED),
            ("GeneratorExit", CANCELLED),
        ),
    ),
    (("socket",), (("gaierror", REFUSED), ("herror", REFUSED))),
    (
        ("ssl",),
        (
            ("SSLCertVerificationError", UNTRUSTED),
            # Of a connection that was established.
            ("SSLEOFError", LOST),
            ("SSLZeroReturnError", LOST),
            ("SSLSyscallError", LOST),
            ("SSLError", REFUSED, "ssl"),
        ),
    ),
    (
        ("asyncio.exceptions",),
        (("CancelledError", CANCELLED), ("IncompleteReadError", LOST)),
    ),
    (("concurrent.futures._base",), (("CancelledError", CANCELLED),)),
    (("trio",), (("Cancelled", CANCELLED), ("TooSlowError", EXPIRED), ("BrokenResourceError", LOST))),
    (
        ("anyio",),
        (
            ("ConnectionFailed", REFUSED, INSIDE),
            ("BrokenResourceError", LOST),
            ("ClosedResourceError", LOST),
            ("EndOfStream", LOST),
            ("IncompleteRead", LOST),
        ),
    ),
    (("subprocess",), (("TimeoutExpired", EXPIRED), ("SubprocessError", BROKEN))),
    (("json.decoder",), (("JSONDecodeError", UNREADABLE, "json"),)),
    (
        ("http.client",),
        (("InvalidURL", INVALID), ("ImproperConnectionState", BROKEN), ("HTTPException", LOST)),
    ),
    (("urllib.error",), (("ContentTooShortError", LOST), ("URLError", LOST, INSIDE))),
    (("httpcore", "httpcore2"), (*_HTTPCORE, ("ConnectionNotAvailable", REFUSED))),
    (
        ("httpx", "httpx2"),
        (
            *_HTTPCORE,
            ("InvalidURL", INVALID),
            ("TransportError", LOST),
            ("DecodingError", LOST),  # the answer's compressed body is corrupt
            ("HTTPError", BROKEN),  # too many redirects
        ),
    ),
    (
        ("urllib3.exceptions",),
        (
            ("NewConnectionError", REFUSED),  # name resolution too
            ("ConnectTimeoutError", NOT_STARTED_IN_TIME),
            ("ReadTimeoutError", EXPIRED),
            ("TimeoutError", EXPIRED),
            ("ProxyError", REFUSED),  # raised only if the proxy was not reached
            ("EmptyPoolError", REFUSED),
            ("ClosedPoolError", REFUSED),
            ("MaxRetryError", LOST, INSIDE),
            ("SSLError", LOST, INSIDE),
            ("ProtocolError", LOST),
            ("IncompleteRead", LOST),
            ("InvalidChunkLength", LOST),
            ("ResponseError", LOST),
            ("DecodeError", LOST),
            ("LocationValueError", INVALID),
            ("HTTPError", BROKEN),
        ),
    ),
    (
        ("requests.exceptions",),
        (
            ("ConnectTimeout", NOT_STARTED_IN_TIME),
            ("Timeout", EXPIRED),
            ("ProxyError", REFUSED),
            ("SSLError", LOST, INSIDE),
            ("ConnectionError", LOST, INSIDE),
            ("ChunkedEncodingError", LOST),
            ("ContentDecodingError", LOST),
            ("RetryError", LOST, INSIDE),
            ("InvalidURL", INVALID),
            ("InvalidSchema", INVALID),
            ("MissingSchema", INVALID),
            ("InvalidHeader", INVALID),
            ("URLRequired", INVALID),
            ("JSONDecodeError", BROKEN),  # a response, not a request
            ("InvalidJSONError", INVALID),
            ("RequestException", BROKEN),
        ),
    ),
    (
        ("aiohttp.client_exceptions",),
        (
            ("ClientConnectorError", REFUSED, INSIDE),  # name resolution, TLS and proxies too
            ("ServerFingerprintMismatch", UNTRUSTED),
            ("ConnectionTimeoutError", NOT_STARTED_IN_TIME),
            ("ServerTimeoutError", EXPIRED),
            ("ClientHttpProxyError", REFUSED),
            ("ClientResponseError", BROKEN, INSIDE),
            ("ClientConnectionError", LOST),
            ("ClientPayloadError", LOST),
            ("InvalidURL", INVALID),
            ("NonHttpUrlClientError", INVALID),
            ("ClientError", BROKEN),
        ),
    ),
    (("aiohttp.http_exceptions",), (("HttpProcessingError", LOST),)),
    (
        ("websockets.exceptions",),
        (("InvalidURI", INVALID), ("InvalidHandshake", REFUSED), ("ConnectionClosed", LOST, "websocket")),
    ),
)
